/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu doctor: whether quotas are in force, from where, and what is in their way. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "cli/command.h"
#include "cli/diagnosis.h"
#include "cli/doctor_limits.h"
#include "cli/doctor_machine.h"
#include "cli/doctor_show.h"
#include "cli/left_out.h"
#include "node/devices.h"
#include "node/far.h"
#include "node/nvml_library.h"
#include "node/sites.h"
#include "node/user.h"
#include "region/process.h"

const char help_doctor[] =
	"  --json         for programs: everything that was found, sizes in bytes\n"
	"  --machine      look at the folders that users share instead: who may write to them, and "
	"which\n"
	"                 of them are not as they have to be\n"
	"\n"
	"Looks at one process by its PID, at one slice by its name, or at all slices: whether\n"
	"the library is loaded, which files and options give the limits, whether NVML tells\n"
	"what the driver gave to the process, how often memory was refused or its accounting\n"
	"corrected, with how many other slices it shares its devices in time slices, and which\n"
	"limit cannot be kept, and why.\n"
	"Without a PID and a name it also says which processes hold device memory, by NVML, in\n"
	"no slice, and whether programs that begin here have their share.\n"
	"Exits with 1 where something is wrong. Processes of other users are for root to look\n"
	"at.\n";

#define MEASURE_NS UINT64_C(100000000) /* how long compute time is measured */

struct request {
	bool is_json, is_machine;
	const char *slice; /* NULL: all */
	int pid;	   /* 0: any */
};

static int read_request(int argc, char **argv, struct request *ret_request, struct err *err)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"machine", no_argument, NULL, 'm'}, {0}};
	struct request request = {.is_json = false};
	uint64_t number;
	int option;

	while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
		if (option == 'j')
			request.is_json = true;
		else if (option == 'm')
			request.is_machine = true;
		else
			return command_refuse_option(err, option, argv);
	}
	if (request.is_machine && optind < argc)
		return command_refuse(
			err, "doctor --machine looks at no slice, not '%s'", argv[optind]);
	if (argc - optind > 1)
		return command_refuse(err, "doctor looks at one process or slice, not at '%s' too",
			argv[optind + 1]);
	if (optind < argc && parse_u64(argv[optind], INT32_MAX, &number) == 0 && number)
		request.pid = (int)number;
	else if (optind < argc)
		request.slice = argv[optind];
	*ret_request = request;
	return 0;
}

static bool is_wanted(const struct request *request, const struct site *site, const struct view *v)
{
	if (request->slice)
		return sites_is_called(site, request->slice);
	for (unsigned i = 0; request->pid && i < v->process_count; i++)
		if (v->processes[i].pid == request->pid)
			return true;
	return !request->pid && v->is_running;
}

static int read_views(const struct request *request, const struct sites *sites,
	const struct inventory *devices, struct left_out *left, struct diagnosis *d)
{
	d->views = calloc(sites->count + 1, sizeof(*d->views));
	if (!d->views)
		return -ENOMEM;
	for (size_t i = 0; i < sites->count; i++) {
		struct view *v = &d->views[d->view_count];
		struct err failure = ERR_NULL;
		int r = view_read(&sites->list[i], devices, v, &failure);

		if (r != 0) {
			left_out_note(left, &sites->list[i], r);
			if (!sites->list[i].is_guess && !request->slice && !request->pid)
				diagnosis_add(&d->problems, "%s", failure.text);
			continue;
		}
		if (is_wanted(request, &sites->list[i], v))
			d->view_count++;
		else
			view_clear(v);
	}
	return 0;
}

static void add_patient(
	struct diagnosis *d, const struct view *v, const struct view_process *p, int pid)
{
	struct patient *patient = &d->patients[d->patient_count++];

	*patient = (struct patient){.view = v, .process = p, .pid = pid};
	inspect_process(pid, &patient->seen);
}

/* Of each user but who looks: to look at a process takes time, and a region may name a thousand. */
#define PATIENTS_OF_USER 256

/* Whose the slice's processes are; of a region alone nothing tells that. */
static const char *owner_of(const struct view *v)
{
	return *v->user ? v->user : v->region;
}

/* How many more are looked at of the slice's. */
static size_t room_for(const struct diagnosis *d, const struct view *v)
{
	size_t count = 0;

	if (*v->user && !v->is_others)
		return v->process_count;
	for (size_t i = 0; i < d->patient_count; i++)
		count += strcmp(owner_of(d->patients[i].view), owner_of(v)) == 0;
	return count < PATIENTS_OF_USER ? PATIENTS_OF_USER - count : 0;
}

static void tell_unseen(unsigned count)
{
	struct err told = ERR_NULL;

	(void)err_set(&told, E2BIG,
		"of users and containers with more than %u processes in slices %u were not looked "
		"at",
		PATIENTS_OF_USER, count);
	command_warn(&told);
}

/* Adds those of the slice's processes that are asked for, and counts those for which there is no room. */
static void add_patients(
	const struct request *request, const struct view *v, struct diagnosis *d, unsigned *unseen)
{
	size_t room = room_for(d, v);

	for (unsigned i = 0; i < v->process_count; i++) {
		const struct view_process *p = &v->processes[i];

		if (request->pid && p->pid != request->pid)
			continue;
		if (room) {
			add_patient(d, v, p, p->pid);
			room--;
		} else {
			(*unseen)++;
		}
	}
}

static bool is_in_slice(const struct diagnosis *d, int pid)
{
	for (size_t i = 0; i < d->view_count; i++)
		for (unsigned k = 0; k < d->views[i].process_count; k++)
			if (d->views[i].processes[k].pid == pid)
				return true;
	return false;
}

/* Whether it is for this user to look at: NVML lists everybody's. */
static bool is_ours_to_see(int pid)
{
	uid_t user;

	return user_who_started(pid, &user) && (geteuid() == 0 || user == geteuid());
}

/*
 * Adds those that hold device memory in no slice. Drivers list the machine's PIDs, which in a namespace of PIDs are others' than ours: only what has
 * the driver is taken for the one that is meant there.
 */
static void add_strays(const struct inventory *devices, struct diagnosis *d)
{
	struct process_identity me;
	size_t count;
	_cleanup_free_ struct nvml_holder *holders = nvml_library_list_holders(devices, &count);
	struct patient *patients =
		reallocarray(d->patients, d->patient_count + count + 1, sizeof(*patients));

	if (!patients)
		return;
	d->patients = patients;
	process_identify_self(&me);
	for (size_t i = 0; i < count; i++) {
		const struct nvml_holder *h = &holders[i];
		struct patient *p = &d->patients[d->patient_count];

		if (is_in_slice(d, h->pid) || !is_ours_to_see(h->pid))
			continue;
		add_patient(d, NULL, NULL, h->pid);
		p->stray_bytes = h->bytes;
		if (process_is_in_first_namespace(&me) || *p->seen.driver)
			continue;
		inspect_clear(&p->seen);
		d->patient_count--;
	}
}

static int look_at_processes(
	const struct request *request, const struct inventory *devices, struct diagnosis *d)
{
	unsigned unseen = 0;
	size_t most = 1;

	for (size_t i = 0; i < d->view_count; i++)
		most += room_for(d, &d->views[i]);
	d->patients = calloc(most, sizeof(*d->patients));
	if (!d->patients)
		return -ENOMEM;
	for (size_t i = 0; i < d->view_count; i++)
		add_patients(request, &d->views[i], d, &unseen);
	if (request->pid && d->patient_count == 0) {
		add_patient(d, NULL, NULL, request->pid);
		d->patients[0].stray_bytes = nvml_library_read_held(devices, request->pid);
	}
	if (!request->pid && !request->slice)
		add_strays(devices, d);
	if (unseen)
		tell_unseen(unseen);
	return 0;
}

static bool has_quota(const struct inspection *seen)
{
	const struct options *o = &seen->options;

	return seen->shares[0].path || seen->shares[1].path || o->region_path || o->cores_percent ||
	       o->has_indexed_cores || o->memory_limit_bytes || o->has_indexed_limit ||
	       o->is_broken;
}

/* Why no quota binds it, as far as that is to be seen, and what is to be done; "" where nothing tells. */
static const char *explain_unbound(const struct inspection *seen)
{
	if (!seen->is_readable)
		return geteuid() ? "it cannot be looked at from here, so nothing tells whether a "
				   "quota binds it; root can look"
				 : "it cannot be looked at from here, so nothing tells whether a "
				   "quota binds it";
	if (!*seen->library)
		return "libvgpu.so is not loaded, so no quota binds it: begin it anew by `vgpu "
		       "run`, or in a container that has the library and a share";
	if (!has_quota(seen))
		return "no share file and no option sets a quota, so none binds it: begin it anew "
		       "with a share, in " SHARE_SYSTEM_PATH " or named by VGPU_SHARE";
	return "";
}

/* Whatever it has loaded, or says that it has: books that it is not in bind it by nothing. */
static void judge_stray(struct diagnosis *d, const struct patient *p)
{
	const char *why = explain_unbound(&p->seen);

	diagnosis_add(&d->problems,
		"process %d: it holds %" PRIu64 " MiB of device memory by NVML, and is in no slice "
		"that is seen from here; %s",
		p->pid, p->stray_bytes >> 20,
		*why ? why : "nothing tells that a quota binds it: end it, and begin it anew");
}

static void judge_patient(struct diagnosis *d, const struct patient *p)
{
	const struct inspection *seen = &p->seen;
	const char *why = explain_unbound(seen);

	if (p->stray_bytes)
		judge_stray(d, p);
	else if (*why && (seen->is_readable || !p->view))
		diagnosis_add(&d->problems, "process %d: %s", p->pid, why);
	if (!seen->is_readable)
		return;
	if (*seen->library && seen->preloaded_by && *seen->before && seen->shares[0].path)
		diagnosis_add(&d->notes,
			"process %d: LD_PRELOAD names %.200s before libvgpu.so, which makes itself "
			"first where %s is there",
			p->pid, seen->before, seen->shares[0].path);
	else if (*seen->library && seen->preloaded_by && *seen->before)
		diagnosis_add(&d->problems,
			"process %d: libvgpu.so is not first: LD_PRELOAD names %.200s before it, "
			"so "
			"driver functions go past it",
			p->pid, seen->before);
	for (unsigned i = 0; i < INSPECT_SHARES; i++)
		if (seen->shares[i].why)
			diagnosis_add(&d->problems, "process %d: share file %s, line %u: %s",
				p->pid, seen->shares[i].path, seen->shares[i].line,
				seen->shares[i].why);
	for (unsigned i = 0; i < seen->options.unclear_count; i++)
		diagnosis_add(&d->problems, "process %d: the value of %s is not understood", p->pid,
			seen->options.unclear[i]);
	if (seen->options.is_broken)
		diagnosis_add(&d->problems,
			"process %d: a quota is not understood, so all memory is refused", p->pid);
	if (*seen->library && has_quota(seen) && seen->region.why)
		diagnosis_add(&d->problems,
			"process %d: its region %s on %s cannot be used, so all memory is refused: "
			"%s; %s",
			p->pid, seen->region.path, seen->region.file_system, seen->region.why,
			seen->region.right);
	if (seen->region.is_strange)
		diagnosis_add(&d->problems, "process %d: its region %s: %s", p->pid,
			seen->region.path, far_explain(-EMEDIUMTYPE));
	limits_judge(p, &d->notes, &d->problems);
}

/* What every program that begins here has for its own, this one too. */
static void judge_system_share(struct diagnosis *d)
{
	struct inspection own;

	inspect_process(getpid(), &own);
	if (own.is_readable && own.shares[0].why)
		diagnosis_add(&d->problems, "programs that begin here: share file %s: %s",
			own.shares[0].path, own.shares[0].why);
	inspect_clear(&own);
}

static void judge(const struct request *request, struct diagnosis *d)
{
	if (!request->pid && !request->slice)
		judge_system_share(d);
	for (size_t i = 0; i < d->view_count; i++)
		for (unsigned k = 0; k < d->views[i].device_count; k++) {
			const struct view_device *device = &d->views[i].devices[k];

			if (device->quota_bytes && device->use.used_bytes > device->quota_bytes)
				diagnosis_add(&d->problems, "slice %s: device %s is over its quota",
					d->views[i].name, device->uuid);
		}
	for (size_t i = 0; i < d->patient_count; i++)
		judge_patient(d, &d->patients[i]);
}

static int examine(const struct request *request, struct diagnosis *d, struct err *err)
{
	_cleanup_(sites_clear) struct sites sites = SITES_FEW;
	_cleanup_free_ struct inventory *devices = calloc(1, sizeof(*devices));
	struct left_out left = {.lease_count = 0};
	int r;

	/* What is named is found wherever it stands. */
	if (request->slice)
		sites = SITES_NULL;
	r = sites_find(&sites, err);
	if (r < 0)
		return r;
	if (!devices)
		return err_set(err, ENOMEM, "no memory");
	r = devices_read(false, &sites, devices, err);
	if (r == 0)
		r = read_views(request, &sites, devices, &left, d);
	view_measure(d->views, d->views ? d->view_count : 0, MEASURE_NS);
	if (r == 0)
		r = look_at_processes(request, devices, d);
	if (r < 0)
		return err_set(err, ENOMEM, "no memory");
	left_out_tell(&sites, &left);
	if (request->slice && d->view_count == 0)
		return err_set(err, ENOENT, "there is no slice '%s'; `vgpu list --all` shows them",
			request->slice);
	if (request->pid && !d->patients[0].seen.is_there)
		return err_set(err, ESRCH, "there is no process %d", request->pid);
	judge(request, d);
	return 0;
}

int command_doctor(int argc, char **argv, int *ret_status, struct err *err)
{
	_cleanup_(diagnosis_clear) struct diagnosis diagnosis = {.view_count = 0};
	struct request request = {0};
	int r = read_request(argc, argv, &request, err);

	if (r == 0 && request.is_machine)
		return doctor_machine(request.is_json, ret_status, err);
	if (r == 0)
		r = examine(&request, &diagnosis, err);
	if (r)
		return r;
	if (request.is_json)
		diagnosis_show_json(&diagnosis);
	else
		diagnosis_show_text(&diagnosis);
	*ret_status = diagnosis.problems.count ? 1 : 0;
	return 0;
}
