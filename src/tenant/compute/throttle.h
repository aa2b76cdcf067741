/* SPDX-License-Identifier: Apache-2.0 */
/* What stands between work and the device; all of it under the meter's lock. */
#pragma once

#include "tenant/compute/meters.h"

/* What stands between work and the device. */
enum throttle {
	THROTTLE_NONE,
	THROTTLE_SUSPENDED,
	THROTTLE_NO_BUDGET,
	THROTTLE_TOO_FAR,      /* what was given before has to get further */
	THROTTLE_DRAINING,     /* what was given before has to end, as another slice waits */
	THROTTLE_NO_TURN,      /* the thread that finds this waits for the turn */
	THROTTLE_TURN_AWAITED, /* another thread waits for it */
	THROTTLE_YIELDING,     /* a slice that goes first is about to come */
};

/* Why a batch has to wait, for one of the stream whose first work should take estimate_ns; with when to look again. */
enum throttle throttle_of(struct meter *meter, struct stream_state *s, uint64_t estimate_ns,
	uint64_t now_ns, uint64_t *ret_wake_ns);

/* Waits, without the lock, until then or until something has changed. The stream state stays what it is. */
void throttle_wait(struct stream_state *s, enum throttle why, uint64_t wake_ns, uint64_t now_ns);

/* Whether it was waited for long enough. *since_ns is the caller's, 0 at first. */
bool throttle_is_stuck(
	const struct stream_state *s, enum throttle why, uint64_t *since_ns, uint64_t now_ns);

/* Waits while nothing may reach the device, as above. */
void throttle_pass_suspension(struct stream_state *s);
