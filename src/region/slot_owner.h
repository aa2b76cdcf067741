/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the owner of a slot lives. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/layout.h"

enum slot_owner {
	SLOT_OWNER_GONE,
	SLOT_OWNER_LIVES,
	SLOT_OWNER_UNKNOWN, /* it cannot be seen from here: whoever gives back takes it for alive */
};

/* Whether the owner of slot i lives, whose words are *slot; through a description of the file that is not its own. */
int slot_find_owner(
	int fd, unsigned i, const struct region_slot *slot, enum slot_owner *ret_owner) MUST_CHECK;

/* The same of one whose lock can be had. */
enum slot_owner slot_find_unlocked(const struct region_slot *slot);

/*
 * Whether an owner that does not live any more may still hold device memory, so long after that was seen: it is on its way out, or has just
 * called exec.
 */
bool slot_may_linger(const struct region_slot *slot, uint64_t waited_ns);

/*
 * Whether it is on its way out, and its work may go on. After exec its contexts are gone and so is their work, whatever may still be
 * held.
 */
bool slot_may_work(const struct region_slot *slot);

/*
 * From now on their lock or token alone tells of slots that are signed by this process, and say that its peak was higher; above_mib 0: of all
 * that it has signed.
 */
void slot_forget_peaks(struct region_file *file, uint32_t above_mib);
