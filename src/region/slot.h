/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: a process's place in the region, and how its end is noticed.
 *
 * A process owns a slot exactly as long as the kernel knows its lock on the slot's byte, or, where the file system
 * does not keep that, its token (token.h): not its PID, which another process may have by now, or in another
 * namespace. See docs/decisions/0008-liveness-by-lock.md and 0024-life-on-overlay.md.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/region.h"
#include "region/slot_owner.h"

enum {
	_SLOT_E_SUCCESS = 0,
	SLOT_E_FULL,	 /* all slots belong to living processes */
	SLOT_E_MUTE,	 /* nothing here can tell others that this process lives */
	SLOT_E_NAMELESS, /* /proc is there, and does not tell which process this is */
};

/*
 * Takes a slot for this process, through the region's descriptor; what a dead owner left in it is
 * given back first. The slot is ours until the region is closed or the process has ended. It is taken
 * by nobody who cannot sign it in full: -EMFILE, -ENFILE or -ENOMEM where something is missing for that.
 */
int slot_claim(struct region *region, unsigned *ret_slot) MUST_CHECK;

/*
 * Lets what the slot holds stay charged, when this process has ended, as long as a child lives that
 * it forked and that has not called exec: such a child has the driver's files open, which keep the
 * memory. By a mapping that is inherited; a token is inherited itself.
 */
int slot_leave_to_children(struct region *region, unsigned slot) MUST_CHECK;

/*
 * Whether slot i, whose words are *slot, holds something that children of its owner may keep.
 * is_holder: it holds a shared allocation (shared.h), of which nothing is in its own words.
 */
bool slot_is_left(int fd, unsigned i, const struct region_slot *slot, bool is_holder);

/*
 * Gives back what dead processes hold, except where the kernel is still taking a process down: its
 * device memory is not free before that is done. Waits at most SLOT_REAP_WAIT_NS in all for such
 * ones, and where that was in vain, not again for SLOT_REST_NS: a call of the program may come here
 * several times. What is left to children stays, and the work that was under way is charged.
 * *ret_reaped says how many slots were given back. One thread of a process at a time.
 */
#define SLOT_REAP_WAIT_NS 50000000u
#define SLOT_REST_NS	  200000000u
int slot_reap(struct region *region, unsigned *ret_reaped) MUST_CHECK;

/* The same for who has waited for something else already; looks at least once. */
int slot_reap_until(struct region *region, uint64_t deadline_ns, unsigned *ret_reaped) MUST_CHECK;

/* A process that has work under way looks after it twenty times a second. */
#define SLOT_UNATTENDED_NS UINT64_C(1000000000)

/*
 * Charges the work that dead processes had under way (busy_charge_left()), and leaves the rest of
 * their slots to be given back; and that of living ones which have not looked after it for so long
 * (busy_charge_unattended()). `but` is the caller's own slot, or REGION_SLOTS. Waits for nobody;
 * where the region cannot be opened, the next call charges them.
 */
void slot_charge_dead(const struct region *region, unsigned but);
