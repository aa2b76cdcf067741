/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots, and the end of processes.
 *
 * The lock on a slot's byte is taken through a description that the process's mapping of the region
 * keeps open (region.h); where the file system does not keep it so, a token is attached to the
 * process's memory (token.h). Either ends with that memory, by whatever death, and is not inherited
 * by fork. The kernel takes memory down before it closes the device files, so for a moment a dying
 * process has lost it and not yet its device memory: there the process is still to be seen in
 * /proc, where we can look, as alive and leaving. A process that has called exec runs on without
 * it; the kernel closes the device files within that call, so a short grace is enough. One that
 * /proc does not show and that had a token gets a longer one. One that has unmapped its sign of
 * life itself is alive (slot_owner.c).
 *
 * A child of fork() that does not call exec has its parent's device files open, and these keep the
 * device memory when the parent has ended (docs/decisions/0035-children-keep-memory.md).
 */
#include "region/slot.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "region/busy.h"
#include "region/ended.h"
#include "region/shared.h"
#include "region/ledger.h"
#include "region/process.h"
#include "region/slot_owner.h"
#include "region/token.h"

int slot_leave_to_children(struct region *region, unsigned slot)
{
	_cleanup_fd_ int fd = -1;
	void *page;
	int r;

	if (region->token_page)
		return token_leave_to_children(region->token_page);
	r = region_reopen(region, &fd);
	if (r == 0)
		r = file_share_range(fd, REGION_LOCK_CHILDREN + slot, 1);
	if (r)
		return r;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	region->children_page = page;
	return 0;
}

/* Whether children of an owner of the slot live: of the present one, or of an earlier one. True where that is not told. */
static bool has_children(int fd, unsigned i)
{
	bool is_locked;

	return file_byte_is_locked(fd, REGION_LOCK_CHILDREN + i, &is_locked) < 0 || is_locked;
}

bool slot_is_left(int fd, unsigned i, const struct region_slot *slot, bool is_holder)
{
	bool holds = is_holder;

	/* relaxed: a dead owner's words do not change */
	for (unsigned d = 0; d < REGION_DEVICES; d++)
		holds |= atomic_load_explicit(&slot->held[d], memory_order_relaxed) != 0;
	return holds && has_children(fd, i);
}

/* What a slot is signed with. */
struct signature {
	struct process_identity me;
	uint32_t peak_mib;
	struct token token;
};

/* One that was signed without would count as nobody's as soon as its owner unmaps the region. */
static int know_self(struct region *region, struct signature *ret)
{
	uint32_t before_mib;
	int r = process_know_self(&ret->me);

	if (r == 0)
		r = process_own_peak_mib(&before_mib);
	/* Of what this process was before exec, whose peak it is about to have. */
	if (r == 0 && !region->has_slots)
		slot_forget_peaks(region->file, before_mib);
	if (r == 0)
		r = process_raise_own_peak(&ret->peak_mib);
	return r == 0 || file_is_want(r) ? r : SLOT_E_NAMELESS;
}

static void publish(struct region_file *f, unsigned i, const struct signature *by)
{
	struct hami_slot *hami = &f->hami.slots[i];
	struct region_slot *own = &f->own.slots[i];
	struct process_identity me = by->me;

	memcpy(own->command, me.command, sizeof(own->command));
	/* relaxed: the release below publishes them */
	atomic_store_explicit(&own->notes, 0, memory_order_relaxed);
	atomic_store_explicit(&f->own.looked_ns[i], 0, memory_order_relaxed);
	atomic_store_explicit(&own->peak_mib, by->peak_mib, memory_order_relaxed);
	atomic_store_explicit(&own->pid, (uint32_t)me.pid, memory_order_relaxed);
	atomic_store_explicit(&own->start_time, me.start_time, memory_order_relaxed);
	atomic_store_explicit(
		&own->pid_namespace, (uint32_t)me.pid_namespace, memory_order_relaxed);
	atomic_store_explicit(
		&own->time_namespace, (uint32_t)me.time_namespace, memory_order_relaxed);
	atomic_store_explicit(&own->token_place, by->token.place, memory_order_relaxed);
	atomic_store_explicit(&own->token_birth, by->token.birth, memory_order_relaxed);
	atomic_store_explicit(&hami->pid, me.pid, memory_order_relaxed);
	atomic_store_explicit(&hami->host_pid, process_is_in_first_namespace(&me) ? me.pid : 0,
		memory_order_relaxed);
	atomic_store_explicit(&hami->status, HAMI_RUNNING, memory_order_relaxed);
	/* pairs with the acquire in snapshot_read() and in reap_one() */
	atomic_store_explicit(&own->state, SLOT_LIVE, memory_order_release);
}

/* One with a token may live without a lock, by which an end is seen. */
static uint64_t find_end(const struct region *region, const struct region_slot *own)
{
	/* relaxed: as in find_by_token() */
	return atomic_load_explicit(&own->token_place, memory_order_relaxed)
		       ? 0
		       : ended_read(region->share, region->device, region->inode);
}

/* Charges the work that the slot's dead owner had under way; the caller has its lock. */
static void charge_left(const struct region *region, unsigned i)
{
	struct region_slot *own = &region->file->own.slots[i];
	uint64_t ended_ns = 0;
	bool is_read = false;

	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		/* relaxed, all: under the lock nobody else changes them */
		uint64_t since_ns =
			atomic_load_explicit(&own->busy_since_ns[d], memory_order_relaxed);
		int64_t advance_ns =
			atomic_exchange_explicit(&own->advance_ns[d], 0, memory_order_relaxed);

		if (!since_ns && !advance_ns)
			continue;
		/*
		 * Work is charged before it is forgotten: again, by the next one, where we die in
		 * between. What goes back is forgotten before.
		 */
		if (!is_read)
			ended_ns = find_end(region, own);
		is_read = true;
		busy_charge_left(&region->file->own.compute[d], since_ns, advance_ns, ended_ns,
			clock_now_ns());
		atomic_store_explicit(&own->busy_since_ns[d], 0, memory_order_relaxed);
	}
}

/* Gives back what the slot holds and frees it; the caller has its lock. */
/* The next owner of the slot may have the same PID. */
static void end_loading(_Atomic uint64_t *loading, unsigned slot)
{
	uint64_t word = atomic_load(loading);

	if ((uint32_t)word == slot + 1)
		atomic_compare_exchange_strong(loading, &word, 0);
}

static void clear(const struct region *region, unsigned i)
{
	struct region_file *f = region->file;

	/* relaxed: HAMi's monitor reads without order */
	atomic_store_explicit(&f->hami.slots[i].status, HAMI_EXITED, memory_order_relaxed);
	atomic_store_explicit(&f->hami.slots[i].pid, 0, memory_order_relaxed);
	atomic_store_explicit(&f->hami.slots[i].host_pid, 0, memory_order_relaxed);
	shared_forget_slot(f, i);
	FAULT("reap: shared forgotten");
	ledger_reap(f, i);
	charge_left(region, i);
	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		/* relaxed: the release below publishes them */
		atomic_store_explicit(&f->own.slots[i].evicted_bytes[d], 0, memory_order_relaxed);
		atomic_store_explicit(&f->own.slots[i].busy_until_ns[d], 0, memory_order_relaxed);
		end_loading(&f->own.devices[d].loading, i);
	}
	FAULT("reap: slot empty");
	/* pairs with the acquire in slot_claim() */
	atomic_store_explicit(&f->own.slots[i].state, SLOT_FREE, memory_order_release);
}

/* Unless the words of the slot's dead owner are being changed from outside (evict.c); -EAGAIN then. */
static int clear_unless_evicting(const struct region *region, int fd, unsigned i)
{
	int r = file_lock_byte(fd, REGION_LOCK_EVICT + i);

	if (r == 0) {
		clear(region, i);
		file_unlock_byte(fd, REGION_LOCK_EVICT + i);
	}
	return r;
}

/* slot_high only grows, and before the slot's first charge, so that ledger_settle() sees it. */
static void raise_high(struct region_file *f, unsigned i)
{
	uint32_t high = atomic_load(&f->own.slot_high);

	while (high < i + 1)
		if (atomic_compare_exchange_weak(&f->own.slot_high, &high, i + 1))
			break;
	/* relaxed: HAMi's monitor reads without order */
	atomic_store_explicit(&f->hami.slot_count,
		(int32_t)atomic_load_explicit(&f->own.slot_high, memory_order_relaxed),
		memory_order_relaxed);
}

/* Sees to it that others can tell that this process lives when its descriptor is closed. */
static int vouch(struct region *region, unsigned i, struct token *ret_token)
{
	bool keeps;
	int r = region_try_locks(region, REGION_LOCK_TRIAL + i, &keeps);

	*ret_token = (struct token){0};
	if (r < 0 || keeps)
		return r;
	if (!region->token_page && token_make(&region->token, &region->token_page) < 0)
		return SLOT_E_MUTE;
	FAULT("begin: token made");
	*ret_token = region->token;
	return 0;
}

/* Makes slot i ours, under its lock; -EAGAIN where it is somebody's. */
static int sign(struct region *region, unsigned i, struct signature *by)
{
	struct region_file *f = region->file;
	int r;

	/* It may have been taken between our look and our lock, by one that needs no lock to keep it, or is on its way out: who reaps waits for that. */
	if (atomic_load_explicit(&f->own.slots[i].state, memory_order_acquire) == SLOT_LIVE)
		return -EAGAIN;
	r = vouch(region, i, &by->token);
	/* Its last owner may have died in between, too. */
	if (r == 0)
		r = clear_unless_evicting(region, region->fd, i);
	if (r)
		return r;
	raise_high(f, i);
	FAULT("begin: slot counted");
	publish(f, i, by);
	FAULT("begin: slot signed");
	return 0;
}

static int take(struct region *region, struct signature *by, unsigned *ret_slot)
{
	struct region_file *f = region->file;

	for (unsigned i = 0; i < REGION_SLOTS; i++) {
		int r;

		/* pairs with the release in clear() */
		if (atomic_load_explicit(&f->own.slots[i].state, memory_order_acquire) != SLOT_FREE)
			continue;
		r = file_lock_byte(region->fd, REGION_LOCK_SLOTS + i);
		if (r == -EAGAIN)
			continue;
		if (r < 0)
			return r;
		FAULT("begin: slot locked");
		/* children of an earlier owner keep what it held, or would keep our charges */
		r = has_children(region->fd, i) ? -EAGAIN : sign(region, i, by);
		if (r == 0) {
			*ret_slot = i;
			return 0;
		}
		file_unlock_byte(region->fd, REGION_LOCK_SLOTS + i);
		if (r != -EAGAIN)
			return r;
	}
	return SLOT_E_FULL;
}

int slot_claim(struct region *region, unsigned *ret_slot)
{
	struct signature by;
	unsigned reaped;
	int r = know_self(region, &by);

	if (r)
		return r;
	region->has_slots = true;
	r = take(region, &by, ret_slot);
	if (r != SLOT_E_FULL)
		return r;
	r = slot_reap(region, &reaped);
	if (r < 0)
		return r;
	return take(region, &by, ret_slot);
}

/* Reaps the slot if its owner is dead; returns 1 then, 0 if it lives, -EAGAIN if it lingers. */
static int reap_one(struct region *region, int fd, unsigned i, uint64_t waited_ns)
{
	struct region_slot *own = &region->file->own.slots[i];
	int r;

	/* pairs with the release in publish() */
	if (atomic_load_explicit(&own->state, memory_order_acquire) != SLOT_LIVE)
		return 0;
	r = file_lock_byte(fd, REGION_LOCK_SLOTS + i);
	if (r == -EAGAIN)
		return 0;
	if (r < 0)
		return r;
	r = 0;
	/* Under the lock nobody else changes it; another reaper may have been faster. */
	if (atomic_load_explicit(&own->state, memory_order_acquire) == SLOT_LIVE &&
		slot_find_unlocked(own) == SLOT_OWNER_GONE) {
		if (slot_may_linger(own, waited_ns))
			r = -EAGAIN;
		else if (slot_is_left(fd, i, own, shared_has_holder(region->file, i)))
			charge_left(region, i);
		else if ((r = clear_unless_evicting(region, fd, i)) == 0)
			r = 1;
	}
	file_unlock_byte(fd, REGION_LOCK_SLOTS + i);
	return r;
}

static bool has_left(const struct region_slot *own)
{
	/* acquire: pairs with the release in publish(); relaxed: looked at again under the lock */
	if (atomic_load_explicit(&own->state, memory_order_acquire) != SLOT_LIVE)
		return false;
	for (unsigned d = 0; d < REGION_DEVICES; d++)
		if (atomic_load_explicit(&own->busy_since_ns[d], memory_order_relaxed) ||
			atomic_load_explicit(&own->advance_ns[d], memory_order_relaxed))
			return true;
	return false;
}

/*
 * Charges what is under way of a process that lives and does not look after it: it is stopped, or
 * has no thread that could.
 */
static void charge_unattended(const struct region *region, unsigned i)
{
	struct region_slot *own = &region->file->own.slots[i];
	uint64_t now_ns = clock_now_ns();
	/* relaxed: a moment early or late does no harm */
	uint64_t looked_ns =
		atomic_load_explicit(&region->file->own.looked_ns[i], memory_order_relaxed);

	if (now_ns < looked_ns + SLOT_UNATTENDED_NS)
		return;
	for (unsigned d = 0; d < REGION_DEVICES; d++)
		busy_charge_unattended(
			&region->file->own.compute[d], &own->busy_since_ns[d], looked_ns, now_ns);
}

/* Of a slot whose lock the caller has: its owner is dead, or lives by another sign. */
static void charge_unlocked(const struct region *region, unsigned i)
{
	const struct region_slot *own = &region->file->own.slots[i];

	/* Another one may have been faster. */
	if (!has_left(own))
		return;
	/* One that leaves has its context until it is gone, and may take its time. */
	if (slot_find_unlocked(own) != SLOT_OWNER_GONE || slot_may_work(own))
		charge_unattended(region, i);
	else
		charge_left(region, i);
}

void slot_charge_dead(const struct region *region, unsigned but)
{
	unsigned high = atomic_load(&region->file->own.slot_high);
	_cleanup_fd_ int fd = -1;

	for (unsigned i = 0; i < high && i < REGION_SLOTS; i++) {
		const struct region_slot *own = &region->file->own.slots[i];

		if (i == but || !has_left(own))
			continue;
		/* Its own description: our locks are ours through each other one. */
		if (fd < 0 && region_reopen(region, &fd) < 0)
			return;
		if (file_lock_byte(fd, REGION_LOCK_SLOTS + i) != 0) {
			charge_unattended(region, i);
			continue;
		}
		charge_unlocked(region, i);
		file_unlock_byte(fd, REGION_LOCK_SLOTS + i);
	}
}

/* Looks at every slot once; *ret_lingers says whether an owner of one is still on its way out. */
static int look(
	struct region *region, int fd, uint64_t waited_ns, unsigned *reaped, bool *ret_lingers)
{
	unsigned high = atomic_load(&region->file->own.slot_high);

	*ret_lingers = false;
	for (unsigned i = 0; i < high && i < REGION_SLOTS; i++) {
		int r = reap_one(region, fd, i, waited_ns);

		if (r < 0 && r != -EAGAIN)
			return r;
		*ret_lingers |= r == -EAGAIN;
		*reaped += r == 1;
	}
	return 0;
}

int slot_reap_until(struct region *region, uint64_t deadline_ns, unsigned *ret_reaped)
{
	static _Atomic uint64_t rest_until_ns;
	uint64_t start = clock_now_ns(), now = start;
	struct timespec pause = {.tv_nsec = 500000};
	_cleanup_fd_ int fd = -1;
	unsigned reaped = 0;
	bool lingers;
	int r = region_reopen(region, &fd);

	/* relaxed: the clock decides, nothing else does */
	if (start < atomic_load_explicit(&rest_until_ns, memory_order_relaxed))
		deadline_ns = start;
	if (r == 0)
		r = look(region, fd, 0, &reaped, &lingers);
	while (r == 0 && lingers && now < deadline_ns) {
		nanosleep(&pause, NULL);
		/* Before the look: whoever lost the processor in between looks once more. */
		now = clock_now_ns();
		r = look(region, fd, now - start, &reaped, &lingers);
	}
	if (r < 0)
		return r;
	if (lingers && deadline_ns > start)
		/* relaxed: as above */
		atomic_store_explicit(&rest_until_ns, now + SLOT_REST_NS, memory_order_relaxed);
	*ret_reaped = reaped;
	return 0;
}

int slot_reap(struct region *region, unsigned *ret_reaped)
{
	return slot_reap_until(region, clock_now_ns() + SLOT_REAP_WAIT_NS, ret_reaped);
}
