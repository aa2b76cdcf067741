/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu run: makes a slice, starts a program in it, and clears up after it. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/child.h"
#include "cli/command.h"
#include "cli/compute_limits.h"
#include "cli/mps.h"
#include "cli/size.h"
#include "node/nvml_library.h"
#include "node/place.h"
#include "node/slice.h"
#include "node/turn_folder.h"
#include "policy/device_name.h"
#include "probe/probe.h"

#define STATUS_NOT_EXECUTABLE 126
#define STATUS_NOT_FOUND      127
#define NAME_ATTEMPTS	      9

const char help_run[] =
	"  --memory SIZE    device memory that the slice may hold, on each of its devices, like "
	"2.5g\n"
	"                   or 50%; unlimited is no such quota, and may be left out where compute "
	"is\n"
	"                   granted\n"
	"  --device DEVICE  a device of the slice, by index, UUID, or the beginning of its UUID;\n"
	"                   may be given several times; all devices where it is not given\n"
	"  --cores PERCENT  compute time that the slice is sure to get of each device, and "
	"without\n"
	"                   --cap never gets more than; like 30 or 12.5\n"
	"  --cap PERCENT    compute time that it never gets more than, even where no other slice\n"
	"                   wants it; 100 is no limit\n"
	"  --weight N       its part of time that no slice is sure of, 1 to 10000; 100 if not "
	"given\n"
	"  --priority N     which slice goes first on a device: 0 before 1 (the default), up to 9\n"
	"  --mps            side by side with other slices under NVIDIA's MPS, which divides the\n"
	"                   multiprocessors by --cap or --cores; a daemon is started where none "
	"is\n"
	"  --exports WHICH  whether descriptors of device memory are given out, by which another\n"
	"                   process could keep it beyond the quota: all (the default) or none\n"
	"  --imports WHICH  whose handles of plain device memory (cudaIpcOpenMemHandle) are "
	"opened:\n"
	"                   own (the default) are those of the slice's processes; any costs what\n"
	"                   SECURITY.md says, as a handle that was changed is believed\n"
	"  --name NAME      the slice's name; made from the program's where it is not given\n"
	"  --sim            on the simulated node instead of this machine's driver\n"
	"  --board NAME     the simulated node's board, for the first program on it\n"
	"\n"
	"The slice is the program, what it starts, and what that starts; it ends with the last of\n"
	"them. The exit status is the program's; 128 and its number for a signal; 127 where there "
	"is\n"
	"no such program, and 126 where it cannot be run.\n";

struct request {
	struct size_quota memory;
	const char *devices[SHARE_DEVICES];
	unsigned device_count;
	struct compute_limits limits; /* on each device */
	const char *name, *board;
	bool is_sim, is_mps, has_no_exports, imports_any;
	char **program;
};

/* The request with all that it names found. */
struct plan {
	struct share grant;
	char visible[SHARE_DEVICES * SHARE_UUID_BYTES]; /* CUDA_VISIBLE_DEVICES; "": leave it */
	char library[PLACE_BYTES];
	struct place_sim sim;
	char mps_program[PLACE_BYTES];
	unsigned visible_count; /* devices that the program sees; with MPS */
};

static int set_name(const char *text, struct request *r, struct err *err)
{
	if (!share_name_is_valid(text))
		return command_refuse(err,
			"--name '%s': up to %d letters, digits, dots, dashes and underscores are "
			"right, the first no dot",
			text, SHARE_NAME_BYTES - 1);
	r->name = text;
	return 0;
}

static int add_device(const char *text, struct request *r, struct err *err)
{
	if (r->device_count == SHARE_DEVICES)
		return command_refuse(
			err, "--device '%s': a slice has at most %d devices", text, SHARE_DEVICES);
	r->devices[r->device_count++] = text;
	return 0;
}

static int set_exports(const char *text, struct request *r, struct err *err)
{
	r->has_no_exports = strcmp(text, "none") == 0;
	if (!r->has_no_exports && strcmp(text, "all") != 0)
		return command_refuse(err, "--exports '%s': none and all are right", text);
	return 0;
}

static int set_imports(const char *text, struct request *r, struct err *err)
{
	r->imports_any = strcmp(text, "any") == 0;
	if (!r->imports_any && strcmp(text, "own") != 0)
		return command_refuse(err, "--imports '%s': own and any are right", text);
	return 0;
}

static int read_option(int option, struct request *r, char **argv, struct err *err)
{
	if (compute_limits_is_option(option))
		return compute_limits_read(option, optarg, &r->limits, err);
	switch (option) {
	case 'm':
		return size_read_quota(optarg, &r->memory, err);
	case 'd':
		return add_device(optarg, r, err);
	case 'n':
		return set_name(optarg, r, err);
	case 's':
		r->is_sim = true;
		return 0;
	case 'M':
		r->is_mps = true;
		return 0;
	case 'b':
		r->board = optarg;
		return 0;
	case 'x':
		return set_exports(optarg, r, err);
	case 'i':
		return set_imports(optarg, r, err);
	default:
		return command_refuse_option(err, option, argv);
	}
}

static int read_request(int argc, char **argv, struct request *ret_request, struct err *err)
{
	static const struct option options[] = {
		{"memory", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'},
		{"mps", no_argument, NULL, 'M'},
		{"exports", required_argument, NULL, 'x'},
		{"imports", required_argument, NULL, 'i'},
		{"name", required_argument, NULL, 'n'},
		COMPUTE_LIMITS_OPTIONS,
		{"sim", no_argument, NULL, 's'},
		{"board", required_argument, NULL, 'b'},
		{0},
	};
	struct request request = {.name = NULL};
	struct share_compute compute = {.cores_permille = 0};
	int option, r;

	while ((option = getopt_long(argc, argv, "+:", options, NULL)) != -1) {
		r = read_option(option, &request, argv, err);
		if (r)
			return r;
	}
	if (!size_is_given(&request.memory) && compute_limits_is_empty(&request.limits) &&
		!request.is_mps)
		return command_refuse(err,
			"run needs --memory SIZE, like --memory 2g, a part of the compute time, "
			"like --cores 30, or --memory unlimited for neither");
	if (!size_is_given(&request.memory))
		request.memory.bytes = SHARE_UNLIMITED;
	if (compute_limits_apply(&request.limits, &compute, err) < 0)
		return COMMAND_E_USAGE;
	if (request.board && !request.is_sim)
		return command_refuse(
			err, "--board '%s' is for the simulated node; add --sim", request.board);
	if (request.is_mps && (request.limits.has_weight || request.limits.has_priority))
		return command_refuse(err,
			"%s is for time slices, and slices under --mps run side by side",
			request.limits.has_weight ? "--weight" : "--priority");
	if (optind == argc)
		return command_refuse(
			err, "run needs a program; like: vgpu run --memory 2g -- python3 train.py");
	request.program = argv + optind;
	*ret_request = request;
	return 0;
}

static int grant(const struct request *request, struct share *share, const char *uuid,
	uint64_t total_bytes, struct err *err)
{
	struct share_device *line = &share->devices[share->device_count];
	int r;

	for (unsigned i = 0; i < share->device_count; i++)
		if (device_name_is_same(share->devices[i].uuid, uuid))
			return err_set(err, EINVAL,
				"device %s is named twice; once gives the slice all of its quota",
				uuid);
	r = size_of_quota(&request->memory, uuid, total_bytes, &line->memory_bytes, err);
	if (r < 0)
		return r;
	snprintf(line->uuid, sizeof(line->uuid), "%s", uuid);
	share->device_count++;
	return 0;
}

/* Grants the devices that were asked for, and makes exactly them visible, in that order. */
static int grant_chosen(const struct request *request, const struct inventory *there,
	struct plan *plan, struct err *err)
{
	size_t used = 0;

	for (unsigned i = 0; i < request->device_count; i++) {
		const struct inventory_device *d;
		int r = inventory_find(there, request->devices[i], &d, err);

		if (r == 0)
			r = grant(request, &plan->grant, d->uuid, d->total_bytes, err);
		if (r < 0)
			return r;
		size_note_excess(request->memory.bytes, d);
		used += (size_t)snprintf(plan->visible + used, sizeof(plan->visible) - used, "%s%s",
			i ? "," : "", d->uuid);
	}
	return 0;
}

/* Grants every device: by name as far as a share has room for them, else whichever it is. */
static int grant_all(const struct request *request, const struct inventory *there,
	struct plan *plan, struct err *err)
{
	int r = 0;

	if (there->count == 0 || there->count > SHARE_DEVICES)
		return grant(request, &plan->grant, SHARE_ANY_DEVICE, 0, err);
	for (unsigned i = 0; i < there->count && r == 0; i++) {
		const struct inventory_device *d = &there->device[i];

		r = grant(request, &plan->grant, d->uuid, d->total_bytes, err);
		if (r == 0)
			size_note_excess(request->memory.bytes, d);
	}
	return r;
}

/* MPS needs to be told each device that the program sees, and no other. */
static int check_mps(const struct request *request, const struct inventory *there,
	struct plan *plan, struct err *err)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");

	if (there->count == 0)
		return err_set(err, ENODEV, "--mps: NVML tells no device on this machine");
	for (unsigned i = 0; i < there->count; i++)
		if (there->device[i].is_mig &&
			(!request->device_count ||
				share_device(&plan->grant, there->device[i].uuid)))
			return err_set(err, EOPNOTSUPP,
				"--mps: device %u is in MIG mode, which divides it already; "
				"run without --mps",
				there->device[i].index);
	if (!request->device_count && visible)
		return err_set(err, EINVAL,
			"--mps: CUDA_VISIBLE_DEVICES is set to '%.80s'; choose devices with "
			"--device, "
			"or unset it",
			visible);
	plan->visible_count = request->device_count ? request->device_count : there->count;
	return 0;
}

static void point_to_sim(struct err *err)
{
	size_t used = strlen(err->text);

	snprintf(err->text + used, sizeof(err->text) - used,
		"; --sim runs the program on a simulated device");
}

/* Turns the error into a note. */
static void note_absence(struct err *err)
{
	err_wrap(err, "note: no device is seen here");
	point_to_sim(err);
	command_warn(err);
	*err = (struct err)ERR_NULL;
}

static int find_devices(const struct request *request, struct plan *plan, struct err *err)
{
	_cleanup_free_ struct inventory *there = calloc(1, sizeof(*there));
	int r;

	if (!there)
		return err_set(err, ENOMEM, "no memory");
	r = nvml_library_read_inventory(request->is_sim ? plan->sim.nvml : NULL, there, err);
	if (r == NVML_LIBRARY_E_NONE && (request->device_count || request->is_sim)) {
		if (request->device_count)
			err_wrap(err, "device '%s' cannot be looked up", request->devices[0]);
		if (!request->is_sim)
			point_to_sim(err);
		return -ENODEV;
	}
	if (r == NVML_LIBRARY_E_NONE)
		note_absence(err); /* the driver may come later; the quota is there */
	else if (r < 0)
		return r;
	r = request->device_count ? grant_chosen(request, there, plan, err)
				  : grant_all(request, there, plan, err);
	return r == 0 && request->is_mps ? check_mps(request, there, plan, err) : r;
}

/* Sets a variable to value, a separator, and what it held. */
static int put_before(
	const char *variable, const char *value, const char *separator, struct err *err)
{
	const char *old = getenv(variable);
	_cleanup_free_ char *whole = NULL;

	if (!old || !*old)
		separator = old = "";
	if (asprintf(&whole, "%s%s%s", value, separator, old) < 0) {
		whole = NULL;
		return err_set(err, ENOMEM, "no memory");
	}
	if (setenv(variable, whole, 1) < 0)
		return err_set(err, errno, "set %s: %s", variable, strerror(errno));
	return 0;
}

static int make_plan(const struct request *request, struct plan *plan, struct err *err)
{
	struct err warning = ERR_NULL;
	int r = place_find_library(plan->library, err);

	plan->grant.priority = SHARE_DEFAULT_PRIORITY;
	plan->grant.has_no_exports = request->has_no_exports;
	plan->grant.imports_any = request->imports_any;
	if (r == 0 && request->is_sim)
		r = place_find_sim(&plan->sim, err);
	if (r == 0 && request->is_mps)
		r = mps_find_program(request->is_sim, plan->mps_program, err);
	/* before NVML is asked: the first question makes the simulated machine */
	if (r == 0 && request->board &&
		(setenv("VGPU_SIM_BOARD", request->board, 1) < 0 ||
			setenv("VGPU_SIM_BOARD_ASKED", request->board, 1) < 0))
		r = err_set(err, errno, "set VGPU_SIM_BOARD: %s", strerror(errno));
	if (r == 0)
		r = find_devices(request, plan, err);
	unsetenv("VGPU_SIM_BOARD_ASKED");
	if (r == 0)
		r = compute_limits_apply_all(&request->limits, &plan->grant, err);
	if (r == 0 && !request->is_mps)
		turn_folder_find(plan->grant.turns, &warning);
	if (warning.text[0])
		command_warn(&warning);
	return r;
}

/* The daemon takes one for all devices. */
static uint64_t least_quota(const struct share *share)
{
	uint64_t least = SHARE_UNLIMITED;

	for (unsigned i = 0; i < share->device_count; i++)
		if (share->devices[i].memory_bytes < least)
			least = share->devices[i].memory_bytes;
	return least;
}

static int set_environment(const struct request *request, const struct plan *plan,
	const struct mps *mps, const char *share, struct err *err)
{
	int r = put_before("LD_PRELOAD", plan->library, ":", err);

	if (r == 0 && request->is_sim)
		r = put_before("LD_LIBRARY_PATH", plan->sim.library_path, ":", err);
	if (r == 0 && setenv("VGPU_SHARE", share, 1) < 0)
		r = err_set(err, errno, "set VGPU_SHARE: %s", strerror(errno));
	if (r == 0 && plan->visible[0] && setenv("CUDA_VISIBLE_DEVICES", plan->visible, 1) < 0)
		r = err_set(err, errno, "set CUDA_VISIBLE_DEVICES: %s", strerror(errno));
	/* All devices of a request have the same limits. */
	if (r == 0 && request->is_mps)
		r = mps_set_environment(mps, &plan->grant.devices[0].compute,
			least_quota(&plan->grant), plan->visible_count, err);
	return r;
}

/* A name from the program's: what a name cannot have becomes an underscore. */
static void make_name(const char *program, unsigned attempt, char ret_name[SHARE_NAME_BYTES])
{
	const char *slash = strrchr(program, '/'), *base = slash ? slash + 1 : program;
	char more[16] = "", stem[SHARE_NAME_BYTES - 32];

	snprintf(stem, sizeof(stem), "%s", *base ? base : "program");
	for (char *c = stem; *c; c++) {
		char one[2] = {*c, '\0'};

		if (!(c > stem && *c == '.') && !share_name_is_valid(one))
			*c = '_';
	}
	if (attempt)
		snprintf(more, sizeof(more), "-%u", attempt + 1);
	snprintf(ret_name, SHARE_NAME_BYTES, "%s-%d%s", stem, (int)getpid(), more);
}

static int make_slice(const struct request *request, const struct plan *plan,
	struct slice *ret_slice, struct err *err)
{
	char name[SHARE_NAME_BYTES];
	int r = SLICE_E_TAKEN;

	slice_sweep();
	mps_sweep(NULL);
	if (request->name) {
		r = slice_create(request->name, &plan->grant, request->is_sim, ret_slice, err);
		return r == SLICE_E_TAKEN ? -EEXIST : r;
	}
	/* A slice of an earlier process of our PID may still have living processes. */
	for (unsigned i = 0; i < NAME_ATTEMPTS && r == SLICE_E_TAKEN; i++) {
		*err = (struct err)ERR_NULL;
		make_name(request->program[0], i, name);
		r = slice_create(name, &plan->grant, request->is_sim, ret_slice, err);
	}
	return r == SLICE_E_TAKEN ? -EEXIST : r;
}

int command_run(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_free_ struct plan *plan = calloc(1, sizeof(*plan));
	/* before the slice, so that it is left after that */
	_cleanup_(mps_leave) struct mps mps = MPS_NULL;
	_cleanup_(slice_finish) struct slice slice = SLICE_NULL;
	struct request request = {0};
	struct child child;
	int r = read_request(argc, argv, &request, err);

	if (r)
		return r;
	if (!plan)
		return err_set(err, ENOMEM, "no memory");
	r = make_plan(&request, plan, err);
	if (r == 0 && request.is_mps) {
		r = mps_join(plan->mps_program, plan->visible, request.is_sim, &mps, err);
		strcpy(plan->grant.mps, mps.pipe);
	}
	if (r == 0)
		r = make_slice(&request, plan, &slice, err);
	mps_let_go(&mps);
	if (r == 0)
		r = set_environment(&request, plan, &mps, slice.share, err);
	if (r)
		return r;
	r = child_start(request.program, &child, err);
	if (r) {
		*ret_status = r == -ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_EXECUTABLE;
		return 0;
	}
	slice_note_child(&slice, child.pid);
	/* Nothing is asked while the program runs. */
	probe_end();
	*ret_status = child_wait(&child);
	return 0;
}
