/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of a process: of each of its sources the smallest (policy/grant.h). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/doctor_limits.h"
#include "mps/daemon.h"
#include "node/far.h"
#include "node/turn_folder.h"
#include "policy/device_name.h"
#include "policy/grant.h"

#define ENVIRONMENT_MEMORY  "CUDA_DEVICE_MEMORY_LIMIT"
#define ENVIRONMENT_COMPUTE "CUDA_DEVICE_SM_LIMIT"

static void add_device(struct limit *limits, unsigned *count, const char *uuid)
{
	for (unsigned i = 0; i < *count; i++)
		if (device_name_is_same(limits[i].uuid, uuid))
			return;
	if (*count == SHARE_DEVICES)
		return;
	limits[*count] = (struct limit){.memory_bytes = SHARE_UNLIMITED};
	snprintf(limits[(*count)++].uuid, SHARE_UUID_BYTES, "%s", uuid);
}

static bool is_limited(const struct share_compute *c)
{
	return c->cores_permille || (c->cap_permille && c->cap_permille < SHARE_WHOLE_PERMILLE);
}

/* The lesser of each is in force, with the source that made it less. */
static void lower(struct limit *l, uint64_t memory_bytes, const char *memory_from,
	const struct share_compute *compute, const char *compute_from)
{
	if (memory_bytes < l->memory_bytes) {
		l->memory_bytes = memory_bytes;
		l->memory_from = memory_from;
	}
	if (grant_lower(&l->compute, compute) && is_limited(&l->compute))
		l->compute_from = compute_from;
}

static bool is_in_force(const struct inspected_share *s)
{
	return s->path && !s->why;
}

/* What the machine's share says of the device's time; NULL without one (grant_bind()). */
static const struct share_compute *find_binding(const struct inspection *seen, const char *uuid)
{
	static const struct share_compute none;
	const struct inspected_share *system = &seen->shares[0];
	const struct share_device *line =
		is_in_force(system) ? share_device(&system->share, uuid) : NULL;

	if (!system->path)
		return NULL;
	return line ? &line->compute : &none;
}

/* binding: NULL for the machine's own. */
static void lower_by_share(
	struct limit *l, const struct inspected_share *from, const struct share_compute *binding)
{
	const struct share_device *line = share_device(&from->share, l->uuid);
	struct share_compute compute = {.cores_permille = 0};

	if (line)
		compute = line->compute;
	grant_bind(&compute, binding);
	/* A device without a line is not granted. */
	lower(l, line ? line->memory_bytes : 0, from->path, &compute, from->path);
}

/* The device's index; options of one device mean NVML's order. */
static int index_of(const struct patient *p, const char *uuid)
{
	for (unsigned i = 0; p->view && i < p->view->device_count; i++)
		if (device_name_is_same(p->view->devices[i].uuid, uuid))
			return p->view->devices[i].index;
	return -1;
}

static void lower_by_environment(
	struct limit *l, const struct inspection *seen, int index, bool has_turns)
{
	const struct options *o = &seen->options;
	struct share_compute compute = grant_environment_compute(o, index, has_turns);

	grant_bind(&compute, find_binding(seen, l->uuid));
	lower(l, grant_environment_bytes(o, index), ENVIRONMENT_MEMORY, &compute,
		ENVIRONMENT_COMPUTE);
	grant_force(&l->compute, o, &compute);
}

unsigned limits_find(const struct patient *patient, struct limit ret_limits[SHARE_DEVICES])
{
	const struct inspection *seen = &patient->seen;
	unsigned count = 0;

	for (unsigned i = 0; patient->view && i < patient->view->device_count; i++)
		add_device(ret_limits, &count, patient->view->devices[i].uuid);
	for (unsigned s = 0; s < INSPECT_SHARES; s++)
		for (unsigned i = 0;
			is_in_force(&seen->shares[s]) && i < seen->shares[s].share.device_count;
			i++)
			add_device(ret_limits, &count, seen->shares[s].share.devices[i].uuid);
	if (count == 0)
		add_device(ret_limits, &count, SHARE_ANY_DEVICE);
	for (unsigned i = 0; i < count; i++) {
		for (unsigned s = 0; s < INSPECT_SHARES; s++)
			if (is_in_force(&seen->shares[s]))
				lower_by_share(&ret_limits[i], &seen->shares[s],
					s ? find_binding(seen, ret_limits[i].uuid) : NULL);
		lower_by_environment(&ret_limits[i], seen, index_of(patient, ret_limits[i].uuid),
			limits_turns(patient) != NULL);
	}
	return count;
}

const char *limits_mps(const struct patient *patient)
{
	const struct inspection *seen = &patient->seen;

	for (unsigned s = 0; s < INSPECT_SHARES; s++)
		if (is_in_force(&seen->shares[s]) && *seen->shares[s].share.mps)
			return seen->shares[s].share.mps;
	return NULL;
}

bool limits_mps_is_alive(const struct patient *patient)
{
	const char *pipe = limits_mps(patient);
	_cleanup_(far_close) struct far far = FAR_NULL;

	/* The path is the process's own. */
	return pipe && far_open_tree(patient->pid, pipe, &far) == 0 &&
	       mps_daemon_is_alive(far.path);
}

static const char *mps_pipe(const struct patient *p)
{
	return grant_mps_pipe(inspect_option(&p->seen, "CUDA_MPS_PIPE_DIRECTORY"));
}

/* Whether the driver was told of the daemon of its share. */
static bool is_client(const struct patient *p)
{
	const char *pipe = limits_mps(p);

	return pipe && strcmp(pipe, mps_pipe(p)) == 0;
}

const char *limits_turns(const struct patient *patient)
{
	const struct inspected_share *shares = patient->seen.shares;

	return grant_turns_path(
		(const struct share *[]){is_in_force(&shares[0]) ? &shares[0].share : NULL,
			is_in_force(&shares[1]) ? &shares[1].share : NULL},
		mps_pipe(patient), &patient->seen.options);
}

int limits_count_peers(const struct patient *patient, unsigned *ret_count)
{
	const char *turns = limits_turns(patient), *own = patient->view ? patient->view->name : "";
	struct limit limits[SHARE_DEVICES];
	unsigned count = limits_find(patient, limits), total = 0;
	_cleanup_(far_close) struct far folder = FAR_NULL;
	int r;

	if (!turns)
		return -ENOENT;
	/* The path is the process's own. */
	r = far_open_tree(patient->pid, turns, &folder);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < count; i++) {
		unsigned peers;

		r = turn_folder_count_slices(folder.path, limits[i].uuid, own, &peers);
		if (r < 0)
			return r;
		total += peers;
	}
	*ret_count = total;
	return 0;
}

static bool has_compute_limit(const struct patient *p)
{
	struct limit limits[SHARE_DEVICES];
	unsigned count = limits_find(p, limits);

	for (unsigned i = 0; i < count; i++)
		if (is_limited(&limits[i].compute))
			return true;
	return false;
}

static void judge_turns(const struct patient *p, struct findings *notes)
{
	const char *turns = limits_turns(p);
	unsigned peers;
	int r;

	if (!turns) {
		diagnosis_add(notes,
			"process %d: it has no folder for time slices, so time in which other "
			"slices work on its devices counts for it, too",
			p->pid);
		return;
	}
	r = limits_count_peers(p, &peers);
	if (r < 0)
		diagnosis_add(notes,
			"process %d: the folder for time slices %.200s cannot be read (%s), so "
			"time in which other slices work on its devices may count for it, too",
			p->pid, turns, far_explain(r));
}

static void judge_mps(const struct patient *p, struct findings *notes, struct findings *problems)
{
	const char *pipe = limits_mps(p);

	if (!limits_mps_is_alive(p))
		diagnosis_add(problems,
			"process %d: no MPS daemon runs in %.200s, so what it starts cannot use "
			"the device side by side with other slices",
			p->pid, pipe);
	if (!is_client(p))
		diagnosis_add(notes,
			"process %d: its slice is for MPS, but CUDA_MPS_PIPE_DIRECTORY is not "
			"%.200s, so it is limited by time",
			p->pid, pipe);
}

void limits_judge(const struct patient *patient, struct findings *notes, struct findings *problems)
{
	const struct inspection *seen = &patient->seen;
	const struct options *o = &seen->options;

	for (unsigned s = 0; s < INSPECT_SHARES; s++)
		if (is_in_force(&seen->shares[s]) && seen->shares[s].share.is_suspended)
			diagnosis_add(notes, "process %d: its slice is suspended by %.200s",
				patient->pid, seen->shares[s].path);
	for (unsigned s = 0; s < INSPECT_SHARES; s++)
		if (is_in_force(&seen->shares[s]) && seen->shares[s].is_mount)
			diagnosis_add(notes,
				"process %d: %.200s is mounted as a single file, so it never sees "
				"the "
				"file that takes its place; mount its folder",
				patient->pid, seen->shares[s].path);
	if (*seen->library && !seen->preloaded_by)
		diagnosis_add(notes,
			"process %d: libvgpu.so is not preloaded, so driver functions that the "
			"program is linked with may go past it",
			patient->pid);
	if (o->policy == OPTIONS_POLICY_DISABLE && (o->cores_percent || o->has_indexed_cores))
		diagnosis_add(notes,
			"process %d: GPU_CORE_UTILIZATION_POLICY is disable, "
			"so " ENVIRONMENT_COMPUTE " is not kept",
			patient->pid);
	if (seen->has_rights_of_file)
		diagnosis_add(notes,
			"process %d: it runs with rights of its file's (setuid, setgid or "
			"capabilities), so of its environment only limits count, and no path",
			patient->pid);
	if (limits_mps(patient))
		judge_mps(patient, notes, problems);
	if (is_client(patient) || !has_compute_limit(patient))
		return;
	judge_turns(patient, notes);
	if (inspect_option(seen, "CUDA_MPS_PIPE_DIRECTORY") ||
		inspect_option(seen, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"))
		diagnosis_add(notes,
			"process %d: it is told to use MPS, under which work of several processes "
			"runs at once: time that it keeps a device busy counts whole, however "
			"little of the device it uses",
			patient->pid);
}
