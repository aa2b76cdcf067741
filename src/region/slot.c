/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots, and the end of processes.
 *
 * The lock on a slot's byte is taken through a description that the process's mapping of the region
 * keeps open (region.h), so it ends with the process's memory, by whatever death, and is not
 * inherited by fork. The kernel takes memory down before it closes the device files, so for a
 * moment a dying process has lost its lock and not yet its device memory: there the process is
 * still to be seen in /proc, where we can look, as alive and leaving. A process that runs on without
 * its lock has called exec; the kernel closes the device files within that call, so a short grace
 * is enough.
 */
#include "region/slot.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "region/shared.h"
#include "region/ledger.h"
#include "region/process.h"

#define EXEC_GRACE_NS 20000000u

static void publish(struct region_file *f, unsigned i)
{
	struct hami_slot *hami = &f->hami.slots[i];
	struct region_slot *own = &f->own.slots[i];
	struct process_identity me;

	process_identify_self(&me);
	memcpy(own->command, me.command, sizeof(own->command));
	/* relaxed: the release below publishes them */
	atomic_store_explicit(&own->notes, 0, memory_order_relaxed);
	atomic_store_explicit(&own->pid, (uint32_t)me.pid, memory_order_relaxed);
	atomic_store_explicit(&own->start_time, me.start_time, memory_order_relaxed);
	atomic_store_explicit(&own->pid_namespace, me.pid_namespace, memory_order_relaxed);
	atomic_store_explicit(&hami->pid, me.pid, memory_order_relaxed);
	atomic_store_explicit(&hami->host_pid, process_is_in_first_namespace(&me) ? me.pid : 0,
		memory_order_relaxed);
	atomic_store_explicit(&hami->status, HAMI_RUNNING, memory_order_relaxed);
	/* pairs with the acquire in snapshot_read() and in reap_one() */
	atomic_store_explicit(&own->state, SLOT_LIVE, memory_order_release);
}

/* Gives back what the slot holds and frees it; the caller has its lock. */
static void clear(struct region_file *f, unsigned i)
{
	/* relaxed: HAMi's monitor reads without order */
	atomic_store_explicit(&f->hami.slots[i].status, HAMI_EXITED, memory_order_relaxed);
	atomic_store_explicit(&f->hami.slots[i].pid, 0, memory_order_relaxed);
	atomic_store_explicit(&f->hami.slots[i].host_pid, 0, memory_order_relaxed);
	shared_forget_slot(f, i);
	FAULT("reap: shared forgotten");
	ledger_reap(f, i);
	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		/* relaxed: the release below publishes them */
		atomic_store_explicit(&f->own.slots[i].evicted_bytes[d], 0, memory_order_relaxed);
		atomic_store_explicit(&f->own.slots[i].busy_until_ns[d], 0, memory_order_relaxed);
	}
	FAULT("reap: slot empty");
	/* pairs with the acquire in slot_claim() */
	atomic_store_explicit(&f->own.slots[i].state, SLOT_FREE, memory_order_release);
}

/* Unless the words of the slot's dead owner are being changed from outside (evict.c); -EAGAIN then. */
static int clear_unless_evicting(struct region_file *f, int fd, unsigned i)
{
	int r = file_lock_byte(fd, REGION_LOCK_EVICT + i);

	if (r == 0) {
		clear(f, i);
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

static int take(struct region *region, unsigned *ret_slot)
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
		/* Its last owner may have died between our look and our lock. */
		r = clear_unless_evicting(f, region->fd, i);
		if (r < 0) {
			file_unlock_byte(region->fd, REGION_LOCK_SLOTS + i);
			if (r == -EAGAIN)
				continue;
			return r;
		}
		raise_high(f, i);
		FAULT("begin: slot counted");
		publish(f, i);
		FAULT("begin: slot signed");
		*ret_slot = i;
		return 0;
	}
	return SLOT_E_FULL;
}

int slot_claim(struct region *region, unsigned *ret_slot)
{
	unsigned reaped;
	int r = take(region, ret_slot);

	if (r != SLOT_E_FULL)
		return r;
	r = slot_reap(region, &reaped);
	if (r < 0)
		return r;
	return take(region, ret_slot);
}

/*
 * Whether the owner, whose lock is gone, may still hold device memory: it is to be seen, and is
 * either on its way out or has just called exec.
 */
static bool may_linger(const struct region_slot *own, uint64_t waited_ns)
{
	struct process_identity seen;

	/* relaxed: the caller's acquire of state made them visible */
	uint64_t namespace = atomic_load_explicit(&own->pid_namespace, memory_order_relaxed);
	uint64_t start = atomic_load_explicit(&own->start_time, memory_order_relaxed);
	pid_t pid = (pid_t)atomic_load_explicit(&own->pid, memory_order_relaxed);

	if (namespace == 0 || namespace != process_own_namespace() ||
		process_identify(pid, &seen) != 0)
		return false;
	if (seen.start_time != start || seen.is_gone)
		return false;
	return seen.is_leaving || waited_ns < EXEC_GRACE_NS;
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
	if (atomic_load_explicit(&own->state, memory_order_acquire) == SLOT_LIVE) {
		r = may_linger(own, waited_ns) ? -EAGAIN
					       : clear_unless_evicting(region->file, fd, i);
		if (r == 0)
			r = 1;
	}
	file_unlock_byte(fd, REGION_LOCK_SLOTS + i);
	return r;
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
