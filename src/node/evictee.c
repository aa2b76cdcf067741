/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a slice whose device memory is moved to the host, or comes back. */
#include "node/evictee.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "node/mappings.h"
#include "node/pids.h"
#include "node/user.h"
#include "region/process.h"
#include "region/region.h"

/* Every process looks at its share within 50 ms of the next call; twice that is sure. */
#define NOTICE_NS UINT64_C(100000000)
/* Longest wait for work that is on the devices; after it the driver waits. */
#define QUIET_NS UINT64_C(3000000000)

static bool is_busy(const struct snapshot *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < s->process_count; i++)
		for (unsigned d = 0; d < s->device_count; d++)
			if (s->processes[i].busy_until_ns[d] > now_ns)
				return true;
	return false;
}

/* Reads the region when the slice is quiet, or the wait for that was long enough. */
static int read_quiet(const char *region, struct snapshot *s)
{
	uint64_t start_ns = clock_now_ns(), now_ns = start_ns;
	struct timespec pause = {.tv_nsec = 20000000};
	int r = snapshot_read(region, s);

	while (r == 0 && s->process_count > 0 && now_ns - start_ns < QUIET_NS &&
		(now_ns - start_ns < NOTICE_NS || is_busy(s, now_ns))) {
		nanosleep(&pause, NULL);
		r = snapshot_read(region, s);
		now_ns = clock_now_ns();
	}
	return r;
}

int evictee_read(const char *region, bool is_quiet, struct snapshot **ret_snapshot, struct err *err)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return err_set(err, ENOMEM, "no memory");
	r = is_quiet ? read_quiet(region, s) : snapshot_read(region, s);
	if (r != 0 && r != -ENOENT)
		return err_set(err, r < 0 ? -r : EINVAL, "the slice's accounting file: %s",
			region_explain(r));
	*ret_snapshot = NULL;
	if (r == 0) {
		*ret_snapshot = s;
		s = NULL;
	}
	return 0;
}

static bool sum_is_some(const uint64_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (bytes[i])
			return true;
	return false;
}

bool evictee_is_away(const struct snapshot *s, unsigned process)
{
	return sum_is_some(s->processes[process].evicted_bytes, s->device_count);
}

bool evictee_holds(const struct snapshot *s, unsigned process)
{
	return sum_is_some(s->processes[process].held_bytes, s->device_count);
}

int evictee_list(
	const struct snapshot *s, bool is_all, struct evictees *ret_evictees, struct err *err)
{
	ret_evictees->count = 0;
	ret_evictees->list = calloc(s->process_count + 1, sizeof(*ret_evictees->list));
	if (!ret_evictees->list)
		return err_set(err, ENOMEM, "no memory");
	for (unsigned i = 0; i < s->process_count; i++) {
		const struct snapshot_process *from = &s->processes[i];
		struct evictee *to = &ret_evictees->list[ret_evictees->count];

		to->is_away = evictee_is_away(s, i);
		if (!is_all && !to->is_away && !evictee_holds(s, i))
			continue;
		to->process = (struct evict_process){
			.slot = from->slot, .pid = from->pid, .start_time = from->start_time};
		to->pid = pids_find(from->pid, from->pid_namespace, from->start_time);
		memcpy(to->command, from->command, sizeof(to->command));
		ret_evictees->count++;
		if (to->pid == 0)
			return err_set(err, ESRCH,
				"process (%u) of another PID namespace cannot be reached from here",
				from->pid);
	}
	return 0;
}

int evictee_check(const struct evictee *p, const void *region_file, uid_t owner, struct err *err)
{
	uid_t user;
	int r = evictee_look(p, err);

	if (r != 0)
		return r;
	/* Under a slice of root's its programs may be any user's. */
	if (owner != 0 && (!user_of_process(p->pid, &user) || user != owner))
		return err_set(err, EPERM,
			"its accounting file names process %d, which is not of the slice's user "
			"(%u): somebody wrote that into it",
			p->pid, (unsigned)owner);
	if (!mappings_has_file_at(p->pid, region_file))
		return err_set(err, EPERM,
			"its accounting file names process %d, which has not mapped that file: "
			"somebody wrote that into it",
			p->pid);
	return 0;
}

int evictee_look(const struct evictee *p, struct err *err)
{
	struct process_identity seen;
	int r = process_identify(p->pid, &seen);

	/* /proc may hide it from us. */
	if (r == -ESRCH && process_has_ended(p->pid))
		return EVICTEE_E_ENDED;
	if (r < 0)
		return err_set(err, r == -ESRCH ? EACCES : -r,
			"process %d (%.16s) cannot be looked at: %s; whether it has ended is not "
			"known",
			p->pid, p->command, strerror(r == -ESRCH ? EACCES : -r));
	return seen.start_time != p->process.start_time || seen.is_gone || seen.is_leaving
		       ? EVICTEE_E_ENDED
		       : 0;
}
