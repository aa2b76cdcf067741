/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that take no turns, as the library does not track them: asks the driver who kept a device busy, and says what of a charge counts
 * (policy/untracked.h decides). One process of a slice asks for all, once a second while time is limited, and
 * whoever waits anyway does it; the answer stands in the region.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

struct meter;

/* With the meter's lock: what of a charge counts now, in permille. */
uint32_t untracked_counted_permille(const struct meter *meter, uint64_t now_ns);

/* Likewise: how much others use of what the slice leaves them, of late. */
uint32_t untracked_others_percent(const struct meter *meter, uint64_t now_ns);

/* Asks, if it is time to; by a thread that waits, without the meter's lock. True where that took its time. */
bool untracked_poll(struct meter *meter, uint64_t now_ns);

/*
 * A slice whose charges count in part may not come to its limit any more, and never wait for it: it asks
 * before it waits for the device.
 */
extern _Atomic uint32_t untracked_corrected; /* a bit for each of the region's devices */
void untracked_poll_slowly(uint64_t now_ns);
static inline void untracked_poll_before_wait(uint64_t now_ns)
{
	/* relaxed: a poll more or less */
	if (UNLIKELY(atomic_load_explicit(&untracked_corrected, memory_order_relaxed)))
		untracked_poll_slowly(now_ns);
}

/* For a child of fork(). */
void untracked_reset_after_fork(void);
