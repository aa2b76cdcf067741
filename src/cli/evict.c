/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving the device memory of a suspended slice's processes to the host, and back.
 *
 * All processes are locked first, then checkpointed one by one, and the ledger follows each (region/evict.h):
 * lowered after the memory is away, raised before it comes back. The driver waits for the work of a
 * process that it locks; that the slice was quiet before makes this wait short.
 *
 * The file "evicted" in the slice's folder is there from before the first lock until all are back: it
 * says, to the next resume, that the driver is to be asked, even after this was killed.
 */
#include "cli/evict.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/command.h"
#include "gpu/checkpoint.h"
#include "node/evictee.h"
#include "node/free_memory.h"
#include "node/nvml_library.h"
#include "region/evict.h"
#include "region/snapshot.h"

#define JOURNAL "evicted"

/* How long the driver waits for a process's work, and its calls under way. */
#define LOCK_MS 10000

struct eviction {
	struct checkpoint driver;
	struct nvml_library library;
	const struct nvml_driver *nvml; /* NULL: free memory is taken for granted */
	struct region region;
	struct snapshot *seen; /* before anything was done */
	struct evictees evictees;
};

#define EVICTION_NULL                 \
	(struct eviction)             \
	{                             \
		.region = REGION_NULL \
	}

static void cleanup_eviction(struct eviction *e)
{
	nvml_library_close(&e->library);
	region_close(&e->region);
	free(e->evictees.list);
	free(e->seen);
}

/* Ctrl-C leaves no process locked. */
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

/* Says what the driver refused of the process; 0 where it refused because the process has ended. */
static int refuse(const struct eviction *e, const struct evictee *p, const char *what,
	CUresult result, struct err *err)
{
	struct err ignored = ERR_NULL;
	int r;

	if (evictee_look(p, &ignored) == EVICTEE_E_ENDED)
		return 0;
	r = checkpoint_explain(&e->driver, what, result, err);
	err_wrap(err, "process %d (%.16s)", p->pid, p->command);
	return r;
}

/*
 * Whether the driver will not restore the process later either. Measured of these two (node/free_memory.h): the one that
 * comes at first, and the one from then on.
 */
static bool is_for_good(CUresult result)
{
	return result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_OPERATING_SYSTEM;
}

static int refuse_for_good(
	const struct eviction *e, const struct evictee *p, CUresult result, struct err *err)
{
	return refuse(e, p,
		"the driver cannot bring its memory back, now or later; end the process, and "
		"resume again",
		result, err);
}

/* Takes the memory out of the ledger; 0 where the process has ended, too. */
static int book_out(struct eviction *e, const struct evictee *p, struct err *err)
{
	int r = evict_take(&e->region, &p->process);

	if (r == EVICT_E_GONE)
		return 0;
	if (r == EVICT_E_BUSY)
		r = -EBUSY;
	return r < 0 ? err_set(err, -r, "process %d (%.16s): its accounting: %s", p->pid,
			       p->command, strerror(-r))
		     : 0;
}

static int book_in(struct eviction *e, const struct evictee *p, struct err *err)
{
	int r = evict_return(&e->region, &p->process);

	return r < 0 ? err_set(err, -r, "process %d (%.16s): its accounting: %s", p->pid,
			       p->command, strerror(-r))
		     : 0;
}

/* Whether there is nothing to ask the driver of the process: *ret_r is 0 where it has ended, or -errno with err set where it cannot be looked at. */
static bool is_out_of_reach(const struct evictee *p, int *ret_r, struct err *err)
{
	int r = evictee_look(p, err);

	*ret_r = r == EVICTEE_E_ENDED ? 0 : r;
	return r != 0;
}

static int lock(struct eviction *e, struct evictee *p, struct err *err)
{
	CUcheckpointLockArgs args = {.timeoutMs = LOCK_MS};
	CUprocessState state;
	CUresult r;
	int look;

	/* The number may be another's since it was checked. */
	if (is_out_of_reach(p, &look, err))
		return look;
	r = e->driver.cuCheckpointProcessGetState(p->pid, &state);
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

/*
 * Once the books are away the library lets nobody of the slice bring the memory back. Who did so before, or without the library, is found out
 * here: the books follow.
 */
static int check_away(struct eviction *e, struct evictee *p, struct err *err)
{
	CUprocessState state;
	CUresult result;
	int r;

	if (is_out_of_reach(p, &r, err))
		return r;
	result = e->driver.cuCheckpointProcessGetState(p->pid, &state);
	if (result != CUDA_SUCCESS)
		return refuse(e, p, "ask for its state", result, err);
	if (state == CU_PROCESS_STATE_CHECKPOINTED)
		return 0;
	p->stage = state == CU_PROCESS_STATE_LOCKED ? STAGE_LOCKED : STAGE_RUNNING;
	r = book_in(e, p, err);
	return r < 0 ? r
		     : err_set(err, EBUSY,
			       "process %d (%.16s): another process has brought its memory back",
			       p->pid, p->command);
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
	if (booked < 0)
		return booked;
	p->stage = STAGE_BOOKED;
	return check_away(e, p, err);
}

/* Where it fails, the ledger says again where the memory is. */
static int restore_memory(struct eviction *e, struct evictee *p, struct err *err)
{
	struct err ignored = ERR_NULL;
	CUresult result;
	int r;

	evict_weigh(&e->region, &p->process, p->bytes);
	r = free_memory_check(e->nvml, &e->evictees, p, e->seen, err);
	if (r == 0)
		r = book_in(e, p, err);
	if (r < 0)
		return r;
	result = e->driver.cuCheckpointProcessRestore(p->pid, NULL);
	if (result == CUDA_SUCCESS) {
		p->stage = STAGE_LOCKED;
		return 0;
	}
	if (book_out(e, p, &ignored) < 0)
		command_warn(&ignored);
	return is_for_good(result) ? refuse_for_good(e, p, result, err)
				   : refuse(e, p, "bring its memory back", result, err);
}

/* The way back from wherever the process is. */
static int bring_back(struct eviction *e, struct evictee *p, struct err *err)
{
	int failure = p->stage >= STAGE_AWAY ? restore_memory(e, p, err) : 0;
	CUresult r;

	if (failure < 0 || p->stage != STAGE_LOCKED)
		return failure;
	r = e->driver.cuCheckpointProcessUnlock(p->pid, NULL);
	if (r != CUDA_SUCCESS)
		return refuse(e, p, "unlock", r, err);
	p->stage = STAGE_RUNNING;
	return 0;
}

/* Undoes all that was done, in spite of failures; false where something stays. */
static bool undo(struct eviction *e)
{
	bool is_whole = true;

	for (unsigned i = e->evictees.count; i-- > 0;) {
		struct err failure = ERR_NULL;

		if (bring_back(e, &e->evictees.list[i], &failure) == 0)
			continue;
		is_whole = false;
		command_warn(&failure);
	}
	return is_whole;
}

/* A process that ends keeps its slot until the kernel has taken its memory down: so many looks at all of them. */
#define ENDING_LOOKS 100u

static void rest(void)
{
	const struct timespec ten_ms = {.tv_nsec = 10000000};

	nanosleep(&ten_ms, NULL);
}

/* Of one that seems to have ended, by its number and when it began. Its slot says whether that is so. *looks: that are left. */
static int check_ended(
	const struct eviction *e, const struct evictee *p, unsigned *looks, struct err *err)
{
	for (; *looks; --*looks) {
		if (!evict_is_there(&e->region, &p->process))
			return 0;
		rest();
	}
	return err_set(err, EBUSY,
		"process %d (%.16s) holds memory, and its accounting is not of the process that "
		"has this number now: which one is meant cannot be told; end it",
		p->pid, p->command);
}

/*
 * Those that have ended leave the list: their numbers, and when they began, are the region's word alone. With is_evicting none may seem to
 * have ended that lives.
 */
static int check_all(struct eviction *e, uid_t owner, bool is_evicting, struct err *err)
{
	struct evictees *all = &e->evictees;
	unsigned left = 0, looks = ENDING_LOOKS;

	for (unsigned i = 0; i < all->count; i++) {
		int r = evictee_check(&all->list[i], e->region.file, owner, err);

		if (r == EVICTEE_E_ENDED && is_evicting &&
			check_ended(e, &all->list[i], &looks, err) < 0)
			return -EBUSY;
		if (r < 0)
			return r;
		if (r == 0)
			all->list[left++] = all->list[i];
	}
	all->count = left;
	return 0;
}

static int open_all(struct eviction *e, const struct edit *slice,
	const struct evict_libraries *libraries, bool is_evicting, struct err *err)
{
	int r = region_open_existing(slice->region, &e->region);
	struct err ignored = ERR_NULL;
	void *cuda;

	if (r)
		return err_set(err, r < 0 ? -r : EINVAL, "the slice's accounting file: %s",
			region_explain(r));
	r = check_all(e, slice->folder_owner, is_evicting, err);
	if (r < 0 || e->evictees.count == 0)
		return r;
	cuda = dlopen(libraries->cuda ? libraries->cuda : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!cuda)
		return err_set(err, ENOENT, "there is no CUDA driver: %s", dlerror());
	r = checkpoint_start(cuda, dlsym, &e->driver, err);
	/* After the driver's start, which takes some memory of each device. */
	if (r == 0 && nvml_library_open(libraries->nvml, &e->library, &ignored) == 0)
		e->nvml = &e->library.driver;
	return r;
}

/* Whatever has the name already does. A new one becomes the slice's owner's, and nothing else ever does. */
static int make_journal(const struct edit *slice, struct err *err)
{
	_cleanup_fd_ int fd = openat(slice->folder_fd, JOURNAL,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 || fchmod(fd, 0600) < 0 ||
		(slice->folder_owner != geteuid() &&
			fchown(fd, slice->folder_owner, slice->group) < 0))
		return err_set(err, errno, "make the file '%s' in the slice's folder: %s", JOURNAL,
			strerror(errno));
	return 0;
}

static bool is_booked(const struct eviction *e, unsigned slot)
{
	for (unsigned i = 0; i < e->evictees.count; i++)
		if (e->evictees.list[i].process.slot == slot)
			return e->evictees.list[i].stage == STAGE_BOOKED;
	return false;
}

/* The first process that holds anything and was not moved; NULL: there is none. */
static const struct snapshot_process *find_rest(const struct eviction *e, const struct snapshot *s)
{
	for (unsigned i = 0; i < s->process_count; i++)
		if (!is_booked(e, s->processes[i].slot) && evictee_holds(s, i))
			return &s->processes[i];
	return NULL;
}

/* No other one holds anything: none that was passed over lives, and no call that was under way took memory since. */
static int check_rest(const char *region, const struct eviction *e, struct err *err)
{
	for (unsigned looks = 0;; looks++) {
		_cleanup_free_ struct snapshot *now = NULL;
		int r = evictee_read(region, false, &now, err);
		const struct snapshot_process *p = r == 0 && now ? find_rest(e, now) : NULL;

		if (!p)
			return r;
		if (looks == ENDING_LOOKS)
			return err_set(err, EBUSY,
				"process %u (%.16s) holds memory that was not moved, or was taken "
				"meanwhile; try again, or end it",
				p->pid, p->command);
		rest();
	}
}

static int evict_all(struct eviction *e, struct err *err)
{
	int r = 0;

	for (unsigned i = 0; i < e->evictees.count && r == 0; i++)
		r = lock(e, &e->evictees.list[i], err);
	for (unsigned i = 0; i < e->evictees.count && r == 0; i++)
		r = move_away(e, &e->evictees.list[i], err);
	return r;
}

int evict_slice(const struct edit *slice, const struct evict_libraries *libraries, struct err *err)
{
	_cleanup_(cleanup_eviction) struct eviction e = EVICTION_NULL;
	bool had_journal;
	int folder_fd = slice->folder_fd;
	int r = evictee_read(slice->region, true, &e.seen, err);

	if (r < 0 || !e.seen)
		return r;
	r = evictee_list(e.seen, false, &e.evictees, err);
	if (r < 0 || e.evictees.count == 0)
		return r;
	SIGNALS_BLOCKED;
	r = open_all(&e, slice, libraries, true, err);
	had_journal = faccessat(folder_fd, JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	if (r == 0 && e.evictees.count)
		r = make_journal(slice, err);
	if (r < 0)
		return r;
	r = evict_all(&e, err);
	if (r == 0)
		r = check_rest(slice->region, &e, err);
	if (r < 0 && undo(&e) && !had_journal)
		unlinkat(folder_fd, JOURNAL, 0);
	return r;
}

/* Where the process is, by the driver. */
static int find_stage(const struct eviction *e, struct evictee *p, struct err *err)
{
	CUprocessState state;
	CUresult r;
	int look;

	p->stage = STAGE_RUNNING;
	/* as in lock() */
	if (is_out_of_reach(p, &look, err))
		return look;
	r = e->driver.cuCheckpointProcessGetState(p->pid, &state);
	/* Of a process without a context the driver may know nothing. */
	if (r != CUDA_SUCCESS)
		return p->is_away ? refuse(e, p, "ask for its state", r, err) : 0;
	if (state == CU_PROCESS_STATE_CHECKPOINTED)
		p->stage = STAGE_BOOKED;
	else if (state == CU_PROCESS_STATE_LOCKED)
		p->stage = STAGE_LOCKED;
	else if (state == CU_PROCESS_STATE_FAILED)
		return refuse_for_good(e, p, CUDA_ERROR_ILLEGAL_STATE, err);
	return 0;
}

static int restore_one(struct eviction *e, struct evictee *p, struct err *err)
{
	int r = find_stage(e, p, err);

	/* Another process brought it back; the ledger is to follow. */
	if (r == 0 && p->is_away && p->stage < STAGE_AWAY)
		r = book_in(e, p, err);
	return r == 0 ? bring_back(e, p, err) : r;
}

/* Nothing is brought back by halves: there has to be room for all before the first. */
static int check_room(struct eviction *e, struct err *err)
{
	for (unsigned i = 0; i < e->evictees.count; i++) {
		struct evictee *p = &e->evictees.list[i];
		struct err ignored = ERR_NULL;

		/* Of whom the driver says nothing, it is told when it is that one's turn. */
		if (find_stage(e, p, &ignored) == 0)
			evict_weigh(&e->region, &p->process, p->bytes);
	}
	return free_memory_check(e->nvml, &e->evictees, NULL, e->seen, err);
}

/*
 * One that cannot be brought back keeps no other away: it may be that it never can. The slice stays suspended
 * all the same, for its processes may be parts of one piece of work, and their owner says what becomes of
 * the rest.
 */
static int restore_all(struct eviction *e, struct err *err)
{
	unsigned failures = 0;
	char pids[100] = "";
	int r = check_room(e, err);

	for (unsigned i = 0; i < e->evictees.count && (r == 0 || failures); i++) {
		struct evictee *p = &e->evictees.list[i];
		struct err failure = ERR_NULL;
		int one = restore_one(e, p, &failure);
		size_t used = strlen(pids);

		if (one == 0)
			continue;
		snprintf(pids + used, sizeof(pids) - used, "%s%d", failures ? ", " : "", p->pid);
		if (failures++ == 0) {
			*err = failure;
			r = one;
		}
	}
	if (failures > 1)
		err_wrap(err, "%u processes are not back (%s), first", failures, pids);
	return r;
}

int evict_restore(
	const struct edit *slice, const struct evict_libraries *libraries, struct err *err)
{
	int folder_fd = slice->folder_fd;
	_cleanup_(cleanup_eviction) struct eviction e = EVICTION_NULL;
	bool has_journal = faccessat(folder_fd, JOURNAL, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	bool is_needed = false;
	int r = evictee_read(slice->region, false, &e.seen, err);

	if (r < 0 || !e.seen)
		return r;
	for (unsigned i = 0; i < e.seen->process_count; i++)
		is_needed |= has_journal || evictee_is_away(e.seen, i);
	if (is_needed) {
		SIGNALS_BLOCKED;
		r = evictee_list(e.seen, has_journal, &e.evictees, err);
		if (r == 0)
			r = open_all(&e, slice, libraries, false, err);
		if (r == 0)
			r = restore_all(&e, err);
	}
	if (r == 0)
		unlinkat(folder_fd, JOURNAL, 0);
	return r;
}
