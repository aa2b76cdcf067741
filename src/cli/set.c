/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu set: changes what a slice may have, while it runs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/compute.h"
#include "cli/compute_limits.h"
#include "cli/edit.h"
#include "cli/size.h"
#include "base/text.h"
#include "node/nvml_library.h"
#include "node/place.h"
#include "policy/device_name.h"
#include "region/snapshot.h"

const char help_set[] =
	"  --device DEVICE  one device of the slice, by index, UUID, or the beginning of its "
	"UUID;\n"
	"                   all of its devices where it is not given\n"
	"  --memory SIZE    device memory that the slice may hold on it; unlimited takes the "
	"quota\n"
	"                   away\n"
	"  --cores PERCENT  compute time that the slice is sure to get; none takes the limit away\n"
	"  --cap PERCENT    compute time that it never gets more than; it moves with the cores\n"
	"                   where the two are equal\n"
	"  --weight N       its part of time that no slice is sure of, 1 to 10000\n"
	"  --priority N     which slice goes first: 0 before 1, up to 9; on all devices\n"
	"  --sim            ask the simulated node for the device of an index\n"
	"\n"
	"The slice's processes keep to it within a tenth of a second. What is not named stays as\n"
	"it is. A quota below what the slice holds takes nothing away: it gets no more until it "
	"is\n"
	"below.\n";

struct request {
	const char *slice;
	const char *device;	  /* NULL: all */
	struct size_quota memory; /* not given: as it is */
	struct compute_limits limits;
	bool is_sim;
};

static int read_option(int option, struct request *r, char **argv, struct err *err)
{
	if (compute_limits_is_option(option))
		return compute_limits_read(option, optarg, &r->limits, err);
	switch (option) {
	case 'm':
		return size_read_quota(optarg, &r->memory, err);
	case 'd':
		if (r->device)
			return command_refuse(err,
				"--device '%s': one device is set at a time; all are without it",
				optarg);
		r->device = optarg;
		return 0;
	case 's':
		r->is_sim = true;
		return 0;
	default:
		return command_refuse_option(err, option, argv);
	}
}

static int read_request(int argc, char **argv, struct request *ret_request, struct err *err)
{
	static const struct option options[] = {
		{"memory", required_argument, NULL, 'm'},
		{"device", required_argument, NULL, 'd'},
		COMPUTE_LIMITS_OPTIONS,
		{"sim", no_argument, NULL, 's'},
		{0},
	};
	struct request request = {.slice = NULL};
	int option, r;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		r = read_option(option, &request, argv, err);
		if (r)
			return r;
	}
	if (optind == argc)
		return command_refuse(err, "set needs a slice; like: vgpu set web --memory 4g");
	if (argc - optind > 1)
		return command_refuse(err, "set changes one slice, not '%s' too", argv[optind + 1]);
	if (!size_is_given(&request.memory) && compute_limits_is_empty(&request.limits))
		return command_refuse(err,
			"set needs something to change: --memory, --cores, --cap, --weight or "
			"--priority");
	request.slice = argv[optind];
	*ret_request = request;
	return 0;
}

/* The line that text is the UUID of, or the beginning of no other's; NULL where there is none. */
static struct share_device *find_line(struct share *share, const char *text)
{
	struct share_device *found = NULL;
	unsigned matches = 0;

	for (unsigned i = 0; i < share->device_count && *text; i++) {
		struct share_device *d = &share->devices[i];

		if (device_name_is_same(d->uuid, text))
			return d;
		if (strncmp(d->uuid, text, strlen(text)) != 0)
			continue;
		found = d;
		matches++;
	}
	return matches == 1 ? found : NULL;
}

/* What the change needs to know of the machine: read once, and only where it is needed. */
struct machine {
	struct inventory *there;
	bool is_sim, is_read;
	struct err failure;
};

static const struct inventory *read_machine(struct machine *m)
{
	struct place_sim sim;
	int r = 0;

	if (m->is_read)
		return m->there;
	m->is_read = true;
	m->there = calloc(1, sizeof(*m->there));
	if (!m->there) {
		err_set(&m->failure, ENOMEM, "no memory");
		return NULL;
	}
	if (m->is_sim)
		r = place_find_sim(&sim, &m->failure);
	if (r == 0)
		r = nvml_library_read_inventory(m->is_sim ? sim.nvml : NULL, m->there, &m->failure);
	if (r)
		m->there->count = 0;
	return m->there;
}

static void cleanup_machine(struct machine *m)
{
	free(m->there);
}

/* The device that was named, on this machine: for an index, and for one that is under the "*" line. */
static int look_up(const struct request *request, struct machine *m,
	char ret_uuid[SHARE_UUID_BYTES], struct err *err)
{
	const struct inventory *there = read_machine(m);
	const struct inventory_device *device;
	int r;

	if (!there || m->failure.text[0]) {
		*err = m->failure;
		err_wrap(err, "device '%.80s' cannot be looked up", request->device);
		return -ENODEV;
	}
	r = inventory_find(there, request->device, &device, err);
	if (r == 0)
		snprintf(ret_uuid, SHARE_UUID_BYTES, "%s", device->uuid);
	return r;
}

/* The memory of the line's device; of the "*" line's, which may be any, the smallest. 0: nothing tells. */
static uint64_t total_of(const char *uuid, const struct inventory *there)
{
	const struct inventory_device *device = inventory_lookup(there, uuid);
	uint64_t least = 0;

	if (device)
		return device->total_bytes;
	for (unsigned i = 0; strcmp(uuid, SHARE_ANY_DEVICE) == 0 && i < there->count; i++)
		if (least == 0 || there->device[i].total_bytes < least)
			least = there->device[i].total_bytes;
	return least;
}

static int change_memory(const struct size_quota *memory, struct machine *m,
	struct share_device *line, struct err *err)
{
	const struct inventory *there = read_machine(m);
	const struct inventory_device *device;
	int r;

	if (!there)
		return err_set(err, ENOMEM, "no memory");
	r = size_of_quota(
		memory, line->uuid, total_of(line->uuid, there), &line->memory_bytes, err);
	if (r < 0 && !m->is_sim)
		snprintf(err->text + strlen(err->text), sizeof(err->text) - strlen(err->text),
			"; --sim asks the simulated node");
	device = inventory_lookup(there, line->uuid);
	if (r == 0 && device)
		size_note_excess(line->memory_bytes, device);
	return r;
}

static int change_line(const struct request *request, struct machine *m, struct share_device *line,
	struct err *err)
{
	int r = size_is_given(&request->memory) ? change_memory(&request->memory, m, line, err) : 0;

	return r < 0 ? r : compute_limits_apply(&request->limits, &line->compute, err);
}

static int change(
	const struct request *request, struct machine *m, struct share *share, struct err *err)
{
	struct share_device *line;
	char uuid[SHARE_UUID_BYTES];
	int r = 0;

	if (request->limits.has_priority)
		share->priority = request->limits.priority;
	if (!request->device) {
		for (unsigned i = 0; i < share->device_count && r == 0; i++)
			r = change_line(request, m, &share->devices[i], err);
		return r;
	}
	line = find_line(share, request->device);
	if (!line) {
		r = look_up(request, m, uuid, err);
		if (r < 0)
			return r;
		r = edit_line(share, uuid, &line, err);
	}
	return r < 0 ? r : change_line(request, m, line, err);
}

/* A quota below what is held is no mistake, but worth a note. */
static void note_excess(const struct edit *edit)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	const struct share *share = &edit->share;

	if (!s || snapshot_read(edit->region, s) != 0)
		return;
	for (unsigned i = 0; i < s->device_count; i++) {
		uint64_t quota = share_memory_bytes(share, s->devices[i].uuid);
		char used_text[SIZE_TEXT_BYTES], quota_text[SIZE_TEXT_BYTES];
		struct err note = ERR_NULL;

		if (s->devices[i].used_bytes <= quota)
			continue;
		size_print(s->devices[i].used_bytes, used_text);
		size_print(quota, quota_text);
		err_set(&note, 0,
			"note: slice '%s' holds %s of device %.96s, above its quota of %s; it gets "
			"no "
			"more until it is below",
			edit->name, used_text, s->devices[i].uuid, quota_text);
		command_warn(&note);
	}
}

#define NOTICE_NS \
	UINT64_C(150000000) /* a process looks at its share each 50 ms in which it calls */

enum arrival { ARRIVED, WAITING_FOR_A_CALL, WAITING_FOR_A_PROGRAM };

/* Whether the slice's processes have the share file in force that was just put there; waits for a moment. */
static enum arrival await_arrival(const struct edit *edit)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	uint64_t deadline_ns = clock_now_ns() + NOTICE_NS;
	struct timespec pause = {.tv_nsec = 10000000};
	struct file_identity share;

	if (!s || file_identify_at(edit->folder_fd, "share", &share) < 0)
		return WAITING_FOR_A_CALL;
	do {
		/* A container's has a path of the container's. */
		if (snapshot_read(edit->region, s) != 0)
			return WAITING_FOR_A_CALL;
		if (s->process_count == 0)
			return WAITING_FOR_A_PROGRAM;
		if (s->share_ns == share.changed_ns)
			return ARRIVED;
		/* No process of it has a device yet, or none tells. */
		if (s->share_ns == 0)
			return WAITING_FOR_A_CALL;
		nanosleep(&pause, NULL);
	} while (clock_now_ns() < deadline_ns);
	return WAITING_FOR_A_CALL;
}

static void say_line(const struct share_device *line)
{
	char memory[SIZE_TEXT_BYTES] = "unlimited", compute[COMPUTE_TEXT_BYTES];

	if (line->memory_bytes != SHARE_UNLIMITED)
		size_print(line->memory_bytes, memory);
	compute_print_granted(&line->compute, compute, sizeof(compute));
	fputs("  ", stdout);
	text_put(stdout, strcmp(line->uuid, SHARE_ANY_DEVICE) ? line->uuid : "any device");
	printf(": memory %s, compute %s\n", memory, *compute ? compute : "unlimited");
}

/* What the slice may have now, and since when. */
static void say(const struct edit *edit)
{
	static const char *const since[] = {[ARRIVED] = "in force",
		[WAITING_FOR_A_CALL] =
			"in force for each of its programs from that one's next call on",
		[WAITING_FOR_A_PROGRAM] = "in force from its next program on"};

	fputs("slice ", stdout);
	text_put(stdout, edit->name);
	printf(", %s\n", since[await_arrival(edit)]);
	for (unsigned i = 0; i < edit->share.device_count; i++)
		say_line(&edit->share.devices[i]);
}

int command_set(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_(edit_end) struct edit edit = EDIT_NULL;
	_cleanup_(cleanup_machine) struct machine machine = {.there = NULL};
	struct request request = {0};
	char folder[EDIT_FOLDER_BYTES];
	int r = read_request(argc, argv, &request, err);

	if (r)
		return r;
	r = edit_find(request.slice, folder, &machine.is_sim, err);
	machine.is_sim |= request.is_sim;
	if (r == 0)
		r = edit_begin(folder, request.slice, &edit, err);
	if (r == 0)
		r = change(&request, &machine, &edit.share, err);
	if (r == 0)
		r = edit_commit(&edit, err);
	if (r < 0)
		return r;
	if (size_is_given(&request.memory))
		note_excess(&edit);
	say(&edit);
	*ret_status = 0;
	return 0;
}
