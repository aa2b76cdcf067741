/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's part in its slice.
 *
 * A child of fork() must not use its parent's slot. The mode therefore stands on a page that the
 * kernel gives the child as zeroes (MADV_WIPEONFORK), whatever kind of fork it was, so the child's
 * first hooked call begins anew; the region's mapping itself is not inherited. On a kernel older
 * than 4.14, which lacks this, a handler of fork() does the same.
 */
#define LOG_TOPIC LOG_REGION
#include "tenant/slice/state.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/log.h"
#include "gpu/uuid.h"
#include "region/filesystem.h"
#include "region/ledger.h"
#include "region/slot.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/environment.h"
#include "tenant/slice/parts.h"
#include "tenant/slice/quota.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

struct state state = {.region = {.fd = -1}}; /* no file is open yet, and 0 is the program's */

/* Before the page is there, and where there is none: then it is never wiped by the kernel. */
static struct state_word plain_word;
HOT_WORD _Atomic(struct state_word *) state_word = &plain_word;
static _Atomic bool was_begun; /* by this process, or by one whose child it is */
/*
 * Calls of cuInit() that are under way or have succeeded, of this process or of one whose child it is. In memory that a child of any
 * fork inherits, so that it knows of them when its word does not.
 */
static _Atomic uint64_t driver_inits;
enum { RESETTING = 1, RESET };

/* Longest wait for the thread that clears up. */
#define RESET_WAIT_NS UINT64_C(1000000000)

static struct lock begin_lock;
static struct lock device_lock;
static struct lock limit_lock; /* who reads the quota later sets the limit later */
static struct device devices[STATE_ORDINALS];
static _Atomic bool device_is_known[STATE_ORDINALS];

static void wipe(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&plain_word.mode, STATE_NEW, memory_order_relaxed);
	atomic_store_explicit(&plain_word.fork_reset, 0, memory_order_relaxed);
	atomic_store_explicit(&plain_word.has_asked_driver, 0, memory_order_relaxed);
}

/*
 * Once a program; a child of fork() inherits the page, wiped, and makes its own where fork() came
 * before it was in place. Under begin_lock.
 */
static void make_word(void)
{
	static bool is_made;
	void *page;

	if (is_made)
		return;
	page = mmap(NULL, sizeof(struct state_word), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page != MAP_FAILED && madvise(page, sizeof(struct state_word), MADV_WIPEONFORK) == 0) {
		/* relaxed: who still sees the other word finds nothing begun there, and comes here */
		atomic_store_explicit(&state_word, page, memory_order_relaxed);
		is_made = true;
		return;
	}
	if (page != MAP_FAILED)
		munmap(page, sizeof(struct state_word));
	if (pthread_atfork(NULL, NULL, wipe) != 0)
		log_warn("children of fork cannot be told from their parent");
	is_made = true;
}

/* What the parent of a forked process left in our memory is not ours. */
static void reset(void)
{
	begin_lock = device_lock = limit_lock = (struct lock)LOCK_INIT;
	for (int i = 0; i < STATE_ORDINALS; i++)
		device_is_known[i] = false;
	region_reset_after_fork(&state.region);
	parts_reset_after_fork();
}

static const char *explain_claim(int r)
{
	switch (r) {
	case SLOT_E_FULL:
		return "1024 processes are alive";
	case SLOT_E_MUTE:
		return "its file system drops the locks of mapped files, and no System V shared "
		       "memory can be had in their place";
	case SLOT_E_NAMELESS:
		return "/proc does not tell which process this is";
	default:
		return strerror(-r);
	}
}

static const char *find_remedy(int r)
{
	switch (r) {
	case SLOT_E_FULL:
		return "fewer processes";
	case SLOT_E_NAMELESS:
		return "let it read its own files in /proc (stat, status, ns/pid)";
	case -EMFILE:
	case -ENFILE:
		return "leave it file descriptors (ulimit -n)";
	case -ENOMEM:
		return "leave it address space (ulimit -v)";
	default:
		return region_remedy(REGION_E_REMOTE);
	}
}

/*
 * Another user may make a file at the common path at any moment, and remove it: it is looked at when it is used. What root makes
 * there is for all, but not where who started the program is somebody else.
 */
static int open_default(void)
{
	mode_t roots_mode = environment_is_anothers() ? 0600 : 0666;
	int r = region_open_default(quota_region_path(), roots_mode, &state.region);

	if (r != REGION_E_STRANGERS)
		return r;
	quota_take_own_region();
	return region_open_default(quota_region_path(), roots_mode, &state.region);
}

static enum state_mode open_region(void)
{
	const char *path, *why = "", *right;
	int r;

	state.region = REGION_NULL;
	r = quota_has_default_region() ? open_default()
				       : region_open(quota_region_path(), &state.region);
	path = quota_region_path();

	FAULT("begin: region open");
	if (r) {
		why = region_explain(r);
		right = file_is_want(r) ? find_remedy(r) : region_remedy(r);
	} else {
		region_follow_clock(&state.region);
		state.region.share = quota_system_share();
		slot_charge_dead(&state.region, REGION_SLOTS);
		r = slot_claim(&state.region, &state.slot);
		if (r == 0)
			r = slot_leave_to_children(&state.region, state.slot);
		why = explain_claim(r);
		right = find_remedy(r);
	}
	if (r) {
		log_error("the slice's accounting file cannot be used, so all device memory is "
			  "refused",
			STR("path", path), STR("on", filesystem_at(path)->name), STR("why", why),
			STR("right", right));
		region_close(&state.region);
		return STATE_CLOSED;
	}
	region_drop_fd(&state.region);
	return STATE_OPEN;
}

static bool is_closed_for_ever;

void state_close_for_ever(void)
{
	is_closed_for_ever = true;
}

/* For good: a call that asks twice what the mode is must be told the same, but for a limit that falls. */
static enum state_mode decide(void)
{
	if (is_closed_for_ever)
		return STATE_CLOSED;
	switch (quota_start()) {
	case QUOTA_NONE:
		return STATE_ASIDE;
	case QUOTA_BROKEN:
		return STATE_CLOSED;
	default:
		return open_region();
	}
}

/*
 * In a child of fork(): this process began before (the variable says so), and yet its word says that
 * nothing was begun (the page was wiped). Of the child's threads the first one clears up. Where that takes too long, as it is
 * stopped there, or this is a handler of a signal above it, the process is refused for good: calls ask more than once.
 */
static void reset_once(void)
{
	uint64_t deadline;
	struct state_word *word;
	uint32_t nothing = 0;

	/* pairs with the release in state_begin(), which also makes the word's address visible */
	if (!atomic_load_explicit(&was_begun, memory_order_acquire))
		return;
	word = atomic_load_explicit(&state_word, memory_order_relaxed);
	if (atomic_compare_exchange_strong(&word->fork_reset, &nothing, RESETTING)) {
		FAULT("begin: resetting");
		reset();
		/* pairs with the acquire below */
		atomic_store_explicit(&word->fork_reset, RESET, memory_order_release);
	}
	deadline = clock_now_ns() + RESET_WAIT_NS;
	/* pairs with the release above; the other thread needs microseconds */
	for (unsigned i = 0; atomic_load_explicit(&word->fork_reset, memory_order_acquire) != RESET;
		i++) {
		if (clock_now_ns() > deadline) {
			state_on_failure("fork", "another thread takes too long to begin anew");
			return;
		}
		lock_rest(i);
	}
}

static bool has_anothers_driver(void)
{
	struct state_word *word;

	/* pairs with the addition in state_driver_begins(): who sees the count sees the word */
	if (!atomic_load(&driver_inits))
		return false;
	/* relaxed: as the count was seen */
	word = atomic_load_explicit(&state_word, memory_order_relaxed);
	return !atomic_load(&word->has_asked_driver);
}

/* The word before the count: another thread must not take the driver for an ancestor's meanwhile. */
void state_driver_begins(void)
{
	int saved_errno = errno;
	struct state_word *word;

	reset_once();
	LOCK_SCOPE_OWN(&begin_lock);
	make_word();
	/* relaxed: changed under the lock only */
	word = atomic_load_explicit(&state_word, memory_order_relaxed);
	atomic_store(&word->has_asked_driver, 1);
	atomic_fetch_add(&driver_inits, 1);
	errno = saved_errno;
}

void state_driver_begun(bool is_initialised)
{
	if (!is_initialised)
		atomic_fetch_sub(&driver_inits, 1);
}

void state_meet_driver(void)
{
	if (has_anothers_driver())
		state_begin();
}

enum state_mode state_begin(void)
{
	int saved_errno = errno;
	struct state_word *word;
	enum state_mode mode;

	reset_once();
	LOCK_SCOPE_OWN(&begin_lock);
	FAULT("begin: locked");
	make_word();
	FAULT("begin: word made");
	/* relaxed: changed under the lock only */
	word = atomic_load_explicit(&state_word, memory_order_relaxed);
	mode = (enum state_mode)atomic_load_explicit(&word->mode, memory_order_relaxed);
	if (mode == STATE_NEW) {
		atomic_store(&word->fork_reset, RESET);
		/* pairs with the acquire in reset_once() */
		atomic_store_explicit(&was_begun, true, memory_order_release);
		if (has_anothers_driver())
			attach_refuse_cuda();
		mode = decide();
		/* pairs with the acquire in state_enter() */
		atomic_store_explicit(&word->mode, mode, memory_order_release);
	}
	errno = saved_errno;
	return mode;
}

void state_on_failure(const char *what, const char *why)
{
	/* relaxed: the word does not move any more once something was begun */
	struct state_word *word = atomic_load_explicit(&state_word, memory_order_relaxed);

	log_error("device memory is refused from now on", STR("what", what), STR("why", why));
	/* pairs with the acquire in state_enter() */
	atomic_store_explicit(&word->mode, STATE_CLOSED, memory_order_release);
}

static void set_limit(struct device *d)
{
	bool is_limited, comes;
	uint64_t bytes;
	uint32_t units;
	int r;
	LOCK_SCOPE(&limit_lock);

	r = quota_memory_bytes(d->uuid, &bytes);
	is_limited = r < 0 || bytes != QUOTA_UNLIMITED;

	if (r < 0) {
		log_error("a quota is given by index, and NVML does not tell which device that is",
			STR("device", d->uuid));
		bytes = 0;
	}
	units = is_limited ? ledger_limit_units(bytes) : LEDGER_NO_LIMIT;
	/* relaxed: written under the lock */
	comes = units && !atomic_load_explicit(&d->limit_units, memory_order_relaxed);
	if (comes)
		parts_quota_comes(d);
	FAULT("begin: quota comes");
	/* relaxed: a limit seen late is a limit of a moment ago */
	if (atomic_exchange_explicit(&d->limit_units, units, memory_order_relaxed) > units)
		atomic_store(&d->is_shrunk, true);
	if (comes)
		parts_quota_came(d);
	/* relaxed: HAMi's monitor reads without order; its "no limit" is 0 */
	atomic_store_explicit(&state.region.file->hami.limit_bytes[d->entry],
		is_limited ? bytes : 0, memory_order_relaxed);
}

static int read_uuid(CUdevice ordinal, char ret_text[UUID_TEXT_BYTES])
{
	CUuuid uuid;
	CUresult r = CUDA_ERROR_NOT_FOUND;

	/* The newer one names a MIG instance where the device is one. */
	if (cuda.cuDeviceGetUuid_v2)
		r = cuda.cuDeviceGetUuid_v2(&uuid, ordinal);
	else if (cuda.cuDeviceGetUuid)
		r = cuda.cuDeviceGetUuid(&uuid, ordinal);
	if (r != CUDA_SUCCESS)
		return -ENODEV;
	uuid_format(&uuid, ret_text);
	return 0;
}

/* Under device_lock. */
static int enter_device(CUdevice ordinal, struct device *d)
{
	int r = region_device(&state.region, d->uuid, &d->entry);

	if (r < 0) {
		log_error("a device cannot be entered into the slice's accounting file, so its "
			  "memory is refused",
			STR("device", d->uuid), STR("why", strerror(-r)));
		return r == -ENODEV ? -EIO : r;
	}
	d->ordinal = ordinal;
	/* relaxed: nobody else knows it yet; of a child of fork() it is the parent's */
	atomic_store_explicit(&d->limit_units, 0, memory_order_relaxed);
	FAULT("begin: device entered");
	if (!ledger_audit(state.region.file, d->entry))
		log_warn("the accounting of a device was wrong and is corrected",
			STR("device", d->uuid));
	set_limit(d);
	d->is_shrunk = false;
	/* pairs with the acquire in state_meet_device() and state_refresh_limits() */
	atomic_store_explicit(&device_is_known[ordinal], true, memory_order_release);
	return 0;
}

int state_meet_device(CUdevice ordinal, struct device **ret_device)
{
	char uuid[UUID_TEXT_BYTES];
	int r;

	/* pairs with the release in enter_device() */
	if (LIKELY(ordinal >= 0 && ordinal < STATE_ORDINALS &&
		    atomic_load_explicit(&device_is_known[ordinal], memory_order_acquire))) {
		*ret_device = &devices[ordinal];
		return 0;
	}
	r = read_uuid(ordinal, uuid);
	if (r < 0)
		return r;
	if (ordinal >= STATE_ORDINALS)
		return -ENOSPC;
	LOCK_SCOPE(&device_lock);
	if (!device_is_known[ordinal]) {
		memcpy(devices[ordinal].uuid, uuid, sizeof(uuid));
		r = enter_device(ordinal, &devices[ordinal]);
	}
	if (r == 0)
		*ret_device = &devices[ordinal];
	return r;
}

struct device *state_known_device(CUdevice ordinal)
{
	/* pairs with the release in enter_device() */
	return atomic_load_explicit(&device_is_known[ordinal], memory_order_acquire)
		       ? &devices[ordinal]
		       : NULL;
}

struct device *state_device(CUdevice ordinal)
{
	return &devices[ordinal];
}

CUresult state_current_device(struct device **ret_device)
{
	CUdevice ordinal;
	CUresult r = cuda.cuCtxGetDevice ? cuda.cuCtxGetDevice(&ordinal) : CUDA_ERROR_NOT_FOUND;

	if (r != CUDA_SUCCESS)
		return r;
	return state_meet_device(ordinal, ret_device) == 0 ? CUDA_SUCCESS
							   : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Says which state of the share file is in force, for `vgpu set` to see it arrive. */
static void note_share(void)
{
	struct region_file *f = state.region.file;
	uint64_t now = quota_share_ns();

	/* relaxed, both: for people to read */
	if (f && atomic_load_explicit(&f->own.share_ns, memory_order_relaxed) != now)
		atomic_store_explicit(&f->own.share_ns, now, memory_order_relaxed);
}

void state_refresh_limits(bool is_urgent)
{
	bool has_changed = quota_refresh(is_urgent);

	note_share();
	if (!has_changed)
		return;
	for (int i = 0; i < STATE_ORDINALS; i++)
		/* pairs with the release in enter_device() */
		if (atomic_load_explicit(&device_is_known[i], memory_order_acquire))
			set_limit(&devices[i]);
}
