/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often something may be done: a token bucket, and the pauses between attempts. Arithmetic alone; the
 * caller has the clock.
 */
#pragma once

#include <stdint.h>

/* per_s a second over time, and burst at once. All zero: no limit. */
struct rate {
	unsigned per_s, burst;
	uint64_t free_at_ns; /* when the bucket is full again */
};

/* Takes one; returns when it may be used: now_ns, or later. Those that wait are in the order of their calls. */
uint64_t rate_take(struct rate *rate, uint64_t now_ns);

/*
 * The pause before attempt n + 1, of n that failed: twice as long each time, at most most_ns, and of that a
 * random part between a half and the whole, so that clients which failed together do not come back together.
 * random is any number.
 */
uint64_t rate_pause_ns(unsigned failed, uint64_t first_ns, uint64_t most_ns, uint32_t random);
