/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the owner of a slot lives.
 *
 * Its sign of life, a lock or a token, ends with its address space, and so does what it holds. But a program can unmap that
 * and go on. So an owner that /proc shows counts as alive, unless it has called exec since, or is on its way out. exec is told by
 * the peak of the address space, which no call makes less: who takes a slot raises its own far above what it needs. What is not known
 * of an owner, or by who looks, only ever keeps it alive. Where /proc is not there, or of another PID namespace, the kernel's word of the PID
 * alone counts.
 */
#include "region/slot_owner.h"

#include <errno.h>

#include "base/file.h"
#include "region/process.h"
#include "region/token.h"

#define EXEC_GRACE_NS	20000000u
#define UNSEEN_GRACE_NS 40000000u /* less than SLOT_REAP_WAIT_NS */

/* Whether /proc shows the owner to us, where it is there. */
static bool is_in_sight(const struct region_slot *slot)
{
	/* relaxed: the caller's acquire of state made it visible */
	uint64_t namespace = atomic_load_explicit(&slot->pid_namespace, memory_order_relaxed);

	return namespace != 0 && namespace == process_own_namespace();
}

/* Whether /proc shows another process by the owner's PID, if any: one of which that is not known may be in sight. */
static bool is_elsewhere(const struct region_slot *slot)
{
	/* relaxed: as above */
	uint64_t namespace = atomic_load_explicit(&slot->pid_namespace, memory_order_relaxed);
	uint64_t own = process_own_namespace();

	return namespace != 0 && own != 0 && namespace != own;
}

/* Whether the process that has the owner's PID began at another time. In another time namespace than ours the slot's is told otherwise. */
static bool is_another(const struct region_slot *slot, const struct process_identity *seen)
{
	/* relaxed, both: as above */
	uint64_t start = atomic_load_explicit(&slot->start_time, memory_order_relaxed);

	return start != 0 && start != seen->start_time &&
	       atomic_load_explicit(&slot->time_namespace, memory_order_relaxed) ==
		       process_own_time_namespace();
}

/* Of one in sight: 0, or -ESRCH where it has ended, or -errno where that cannot be looked at now. */
static int look_at_owner(const struct region_slot *slot, struct process_identity *ret_seen)
{
	/* relaxed: as above */
	pid_t pid = (pid_t)atomic_load_explicit(&slot->pid, memory_order_relaxed);
	int r;

	/* By our PIDs it would show others. */
	if (!process_proc_is_own())
		return process_has_ended(pid) ? -ESRCH : -EACCES;
	r = process_identify(pid, ret_seen);
	if (r == -ESRCH && !process_can_look())
		r = -EACCES;
	if (r == 0 && (ret_seen->is_gone || is_another(slot, ret_seen)))
		r = -ESRCH;
	return r;
}

/*
 * Whether the owner, whose sign of life is gone, has unmapped that and lives on with what it holds. Only exec makes the peak of an
 * address space less. Who cannot look does not take it for gone.
 */
static bool has_unmapped(const struct region_slot *slot)
{
	/* relaxed: as above */
	uint32_t known_mib = atomic_load_explicit(&slot->peak_mib, memory_order_relaxed), peak_mib;
	struct process_identity seen;
	int r;

	if (known_mib == REGION_PEAK_NOBODYS || is_elsewhere(slot))
		return false;
	r = look_at_owner(slot, &seen);
	if (r < 0 || seen.is_leaving)
		return r < 0 && r != -ESRCH;
	peak_mib = process_peak_mib(seen.pid);
	return known_mib == 0 || peak_mib == 0 || peak_mib >= known_mib;
}

static enum slot_owner find_by_token(const struct region_slot *slot)
{
	/* relaxed, both: as above */
	struct token token = {atomic_load_explicit(&slot->token_place, memory_order_relaxed),
		atomic_load_explicit(&slot->token_birth, memory_order_relaxed)};
	struct process_identity seen;

	if (token.place == 0)
		return SLOT_OWNER_GONE;
	switch (token_look(&token)) {
	case TOKEN_GONE:
		return SLOT_OWNER_GONE;
	case TOKEN_LIVES:
		return SLOT_OWNER_LIVES;
	default:
		break;
	}
	if (!is_in_sight(slot))
		return SLOT_OWNER_UNKNOWN;
	return look_at_owner(slot, &seen) == -ESRCH ? SLOT_OWNER_GONE : SLOT_OWNER_LIVES;
}

enum slot_owner slot_find_unlocked(const struct region_slot *slot)
{
	enum slot_owner owner = find_by_token(slot);

	return owner == SLOT_OWNER_GONE && has_unmapped(slot) ? SLOT_OWNER_LIVES : owner;
}

int slot_find_owner(int fd, unsigned i, const struct region_slot *slot, enum slot_owner *ret_owner)
{
	bool is_locked;
	int r = file_byte_is_locked(fd, REGION_LOCK_SLOTS + i, &is_locked);

	if (r == 0)
		*ret_owner = is_locked ? SLOT_OWNER_LIVES : slot_find_unlocked(slot);
	return r;
}

/* As look_at_owner() where /proc may show it; of one that is elsewhere -ESRCH. */
static int look_if_here(const struct region_slot *slot, struct process_identity *ret_seen)
{
	return is_elsewhere(slot) ? -ESRCH : look_at_owner(slot, ret_seen);
}

bool slot_may_linger(const struct region_slot *own, uint64_t waited_ns)
{
	struct process_identity seen;
	int r = look_if_here(own, &seen);

	if (r < 0 && r != -ESRCH)
		return true;
	/* A token goes long before the device files, a lock at the same time: the kernel puts files off. */
	if (!is_in_sight(own))
		/* relaxed: the caller's acquire of state made it visible */
		return atomic_load_explicit(&own->token_place, memory_order_relaxed) &&
		       waited_ns < UNSEEN_GRACE_NS;
	return r == 0 && (seen.is_leaving || waited_ns < EXEC_GRACE_NS);
}

bool slot_may_work(const struct region_slot *own)
{
	struct process_identity seen;
	int r = look_if_here(own, &seen);

	if (r < 0 && r != -ESRCH)
		return true;
	return is_in_sight(own) ? r == 0 && seen.is_leaving : slot_may_linger(own, 0);
}

/* No two living processes have its PID: the start need not be asked, which changes where exec moves a process to another time namespace. */
static bool is_signed_by(const struct region_slot *own, const struct process_identity *me)
{
	/* relaxed, both: the words are this process's, or of what it was before exec, or of one that has ended */
	return atomic_load_explicit(&own->pid, memory_order_relaxed) == (uint32_t)me->pid &&
	       atomic_load_explicit(&own->pid_namespace, memory_order_relaxed) == me->pid_namespace;
}

void slot_forget_peaks(struct region_file *file, uint32_t above_mib)
{
	unsigned high = atomic_load(&file->own.slot_high);
	struct process_identity me;

	process_identify_self(&me);
	for (unsigned i = 0; i < high && i < REGION_SLOTS; i++) {
		struct region_slot *own = &file->own.slots[i];

		/* relaxed, both: as above */
		if (is_signed_by(own, &me) &&
			(above_mib == 0 || atomic_load_explicit(&own->peak_mib,
						   memory_order_relaxed) > above_mib))
			atomic_store_explicit(
				&own->peak_mib, REGION_PEAK_NOBODYS, memory_order_relaxed);
	}
}
