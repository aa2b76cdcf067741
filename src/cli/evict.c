/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving the device memory of a suspended slice's processes to the host, and back.
 *
 * All processes are locked first, then checkpointed one by one, and the books follow each (region/evict.h):
 * lowered after the memory is away, raised before it comes back. The driver waits for the work of a
 * process that it locks; that the slice was quiet before makes this wait short.
 *
 * The file "evicted" in the slice's folder is there from before the first lock until all are back: it
 * says, to whoever resumes the slice, that the driver is to be asked, even after this was killed.
 */
#include "cli/evict.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/checkpoint.h"
#include "cli/command.h"
#include "cli/pids.h"
#include "region/evict.h"
#include "region/process.h"
#include "region/snapshot.h"

#define JOURNAL "evicted"

/* Every process looks at its share within 50 ms of the next call; twice that is sure. */
#define NOTICE_NS UINT64_C(100000000)
/* Longest wait for work that is on the devices; after it the driver waits. */
#define QUIET_NS UINT64_C(3000000000)
/* How long the driver waits for a process's work, and its calls under way. */
#define LOCK_MS 10000

enum stage { STAGE_RUNNING, STAGE_LOCKED, STAGE_AWAY, STAGE_BOOKED };

struct evictee {
	struct evict_process process;
	int pid; /* as seen from here */
	char command[17];
	bool is_away; /* by its books, before we came */
	enum stage stage;
};

struct eviction {
	struct checkpoint driver;
	struct region region;
	struct evictee *evictees;
	unsigned count;
};

static void cleanup_eviction(struct eviction *e)
{
	region_close(&e->region);
	free(e->evictees);
}

/* Nobody who presses Ctrl-C leaves processes locked. */
static void block_signals(sigset_t *ret_before)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, ret_before);
}

static void cleanup_signals(sigset_t *before)
{
	sigprocmask(SIG_SETMASK, before, NULL);
}

#define SIGNALS_BLOCKED                                      \
	_cleanup_(cleanup_signals) sigset_t signals_before_; \
	block_signals(&signals_before_)

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

static bool sum_is_some(const uint64_t *bytes, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (bytes[i])
			return true;
	return false;
}

/* Those who hold something or whose memory is away; with is_all, every process of the slice. */
static int list_evictees(struct eviction *e, const struct snapshot *s, bool is_all, struct err *err)
{
	e->evictees = calloc(s->process_count + 1, sizeof(*e->evictees));
	if (!e->evictees)
		return err_set(err, ENOMEM, "no memory");
	for (unsigned i = 0; i < s->process_count; i++) {
		const struct snapshot_process *from = &s->processes[i];
		struct evictee *to = &e->evictees[e->count];

		to->is_away = sum_is_some(from->evicted_bytes, s->device_count);
		if (!is_all && !to->is_away && !sum_is_some(from->held_bytes, s->device_count))
			continue;
		to->process = (struct evict_process){
			.slot = from->slot, .pid = from->pid, .start_time = from->start_time};
		to->pid = pids_find(from->pid, from->pid_namespace, from->start_time);
		memcpy(to->command, from->command, sizeof(to->command));
		e->count++;
		if (to->pid == 0)
			return err_set(err, ESRCH,
				"process (%u) of another PID namespace cannot be reached from here",
				from->pid);
	}
	return 0;
}

static bool has_ended(const struct evictee *p)
{
	struct process_identity seen;

	return process_identify(p->pid, &seen) != 0 || seen.start_time != p->process.start_time ||
	       seen.is_gone || seen.is_leaving;
}

/* What the driver refused of the process; 0 where it refused because the process has ended. */
static int refuse(const struct eviction *e, const struct evictee *p, const char *what,
	CUresult result, struct err *err)
{
	int r;

	if (has_ended(p))
		return 0;
	r = checkpoint_explain(&e->driver, what, result, err);
	err_wrap(err, "process %d (%.16s)", p->pid, p->command);
	return r;
}

/* Takes the memory off the books; 0 where the process has ended, too. */
static int book_out(struct eviction *e, const struct evictee *p, struct err *err)
{
	int r = evict_take(&e->region, &p->process);

	if (r == EVICT_E_GONE)
		return 0;
	if (r == EVICT_E_BUSY)
		r = -EBUSY;
	return r < 0 ? err_set(err, -r, "process %d (%.16s): its books: %s", p->pid, p->command,
			       strerror(-r))
		     : 0;
}

static int book_in(struct eviction *e, const struct evictee *p, struct err *err)
{
	int r = evict_return(&e->region, &p->process);

	return r < 0 ? err_set(err, -r, "process %d (%.16s): its books: %s", p->pid, p->command,
			       strerror(-r))
		     : 0;
}

static int lock(struct eviction *e, struct evictee *p, struct err *err)
{
	CUcheckpointLockArgs args = {.timeoutMs = LOCK_MS};
	CUprocessState state;
	CUresult r = e->driver.cuCheckpointProcessGetState(p->pid, &state);

	if (r != CUDA_SUCCESS)
		return refuse(e, p, "ask for its state", r, err);
	if (state == CU_PROCESS_STATE_CHECKPOINTED) {
		p->stage = p->is_away ? STAGE_BOOKED : STAGE_AWAY;
		return 0;
	}
	if (state == CU_PROCESS_STATE_RUNNING)
		r = e->driver.cuCheckpointProcessLock(p->pid, &args);
	if (r != CUDA_SUCCESS)
		return refuse(e, p, "lock", r, err);
	p->stage = STAGE_LOCKED;
	return 0;
}

static int move_away(struct eviction *e, struct evictee *p, struct err *err)
{
	CUresult r = CUDA_SUCCESS;
	int booked;

	if (p->stage == STAGE_LOCKED)
		r = e->driver.cuCheckpointProcessCheckpoint(p->pid, NULL);
	if (r != CUDA_SUCCESS)
		return refuse(e, p, "move its memory to the host", r, err);
	if (p->stage == STAGE_LOCKED)
		p->stage = STAGE_AWAY;
	if (p->stage != STAGE_AWAY)
		return 0;
	booked = book_out(e, p, err);
	if (booked == 0)
		p->stage = STAGE_BOOKED;
	return booked;
}

/* The way back from wherever the process is; where it fails, the books say again where the memory is. */
static int bring_back(struct eviction *e, struct evictee *p, struct err *err)
{
	struct err ignored = ERR_NULL;
	CUresult r;
	int failure;

	if (p->stage >= STAGE_AWAY) {
		failure = book_in(e, p, err);
		if (failure < 0)
			return failure;
		r = e->driver.cuCheckpointProcessRestore(p->pid, NULL);
		if (r != CUDA_SUCCESS) {
			if (book_out(e, p, &ignored) < 0)
				command_warn(&ignored);
			return refuse(e, p, "bring its memory back", r, err);
		}
		p->stage = STAGE_LOCKED;
	}
	if (p->stage == STAGE_LOCKED) {
		r = e->driver.cuCheckpointProcessUnlock(p->pid, NULL);
		if (r != CUDA_SUCCESS)
			return refuse(e, p, "unlock", r, err);
		p->stage = STAGE_RUNNING;
	}
	return 0;
}

/* Undoes all that was done, in spite of failures; false where something stays. */
static bool undo(struct eviction *e)
{
	bool is_whole = true;

	for (unsigned i = e->count; i-- > 0;) {
		struct err failure = ERR_NULL;

		if (bring_back(e, &e->evictees[i], &failure) == 0)
			continue;
		is_whole = false;
		command_warn(&failure);
	}
	return is_whole;
}

static int open_all(struct eviction *e, const char *region, const char *library, struct err *err)
{
	int r = checkpoint_open(library, &e->driver, err);

	if (r < 0)
		return r;
	r = region_open(region, &e->region);
	return r ? err_set(err, r < 0 ? -r : EINVAL, "region '%.200s': %s", region,
			   region_explain(r))
		 : 0;
}

static int make_journal(int folder_fd, struct err *err)
{
	_cleanup_fd_ int fd = openat(
		folder_fd, JOURNAL, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	return fd < 0 ? err_set(err, errno, "make the file '%s' in the slice's folder: %s", JOURNAL,
				strerror(errno))
		      : 0;
}

static int evict_all(struct eviction *e, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; i < e->count && r == 0; i++)
		r = lock(e, &e->evictees[i], err);
	for (unsigned i = 0; i < e->count && r == 0; i++)
		r = move_away(e, &e->evictees[i], err);
	return r;
}

/* Reads the region; a slice without one has no process that ever used a device. */
static int read_region(
	const char *region, bool is_quiet, struct snapshot *s, bool *ret_is_there, struct err *err)
{
	int r = is_quiet ? read_quiet(region, s) : snapshot_read(region, s);

	*ret_is_there = r == 0;
	if (r == 0 || r == -ENOENT)
		return 0;
	return err_set(err, r < 0 ? -r : EINVAL, "region '%.200s': %s", region, region_explain(r));
}

int evict_slice(int folder_fd, const char *region, const char *library, struct err *err)
{
	_cleanup_(cleanup_eviction) struct eviction e = {.region = REGION_NULL};
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	bool is_there, had_journal;
	int r = s ? read_region(region, true, s, &is_there, err)
		  : err_set(err, ENOMEM, "no memory");

	if (r < 0 || !is_there)
		return r;
	r = list_evictees(&e, s, false, err);
	if (r < 0 || e.count == 0)
		return r;
	SIGNALS_BLOCKED;
	r = open_all(&e, region, library, err);
	had_journal = faccessat(folder_fd, JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (r == 0)
		r = make_journal(folder_fd, err);
	if (r < 0)
		return r;
	r = evict_all(&e, err);
	if (r < 0 && undo(&e) && !had_journal)
		unlinkat(folder_fd, JOURNAL, 0);
	return r;
}

/* Where the process is, by the driver. */
static int find_stage(const struct eviction *e, struct evictee *p, struct err *err)
{
	CUprocessState state;
	CUresult r = e->driver.cuCheckpointProcessGetState(p->pid, &state);

	/* Of a process without a context the driver may know nothing. */
	if (r != CUDA_SUCCESS)
		return p->is_away ? refuse(e, p, "ask for its state", r, err) : 0;
	if (state == CU_PROCESS_STATE_CHECKPOINTED)
		p->stage = STAGE_BOOKED;
	else if (state == CU_PROCESS_STATE_LOCKED)
		p->stage = STAGE_LOCKED;
	else if (state == CU_PROCESS_STATE_FAILED)
		return refuse(e, p, "bring its memory back", CUDA_ERROR_ILLEGAL_STATE, err);
	return 0;
}

static int restore_one(struct eviction *e, struct evictee *p, struct err *err)
{
	int r = find_stage(e, p, err);

	/* Somebody else brought it back; the books are to follow. */
	if (r == 0 && p->is_away && p->stage < STAGE_AWAY)
		r = book_in(e, p, err);
	return r == 0 ? bring_back(e, p, err) : r;
}

int evict_restore(int folder_fd, const char *region, const char *library, struct err *err)
{
	_cleanup_(cleanup_eviction) struct eviction e = {.region = REGION_NULL};
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	bool is_there, has_journal = faccessat(folder_fd, JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	bool is_needed = false;
	int r = s ? read_region(region, false, s, &is_there, err)
		  : err_set(err, ENOMEM, "no memory");

	if (r < 0 || !is_there)
		return r;
	for (unsigned i = 0; i < s->process_count; i++)
		is_needed |=
			has_journal || sum_is_some(s->processes[i].evicted_bytes, s->device_count);
	if (is_needed) {
		SIGNALS_BLOCKED;
		r = list_evictees(&e, s, has_journal, err);
		if (r == 0)
			r = open_all(&e, region, library, err);
		for (unsigned i = 0; i < e.count && r == 0; i++)
			r = restore_one(&e, &e.evictees[i], err);
	}
	if (r == 0)
		unlinkat(folder_fd, JOURNAL, 0);
	return r;
}
