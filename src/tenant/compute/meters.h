/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meters: one for each device of this process, and all that its parts keep: who is let through (meter.h),
 * the turns (turns.h), what is under way (work.h), the credit (credit.h) and the limits (limits.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "policy/budget.h"
#include "region/turn.h"
#include "tenant/slice/quota.h"
#include "tenant/slice/state.h"
#include "tenant/compute/stream_state.h"

#define METER_STREAMS 128 /* streams that are told apart; PyTorch's pools have 96 */

#define METER_CONTEXTS \
	8 /* of a device, whose events are placed on the host's clock each by itself */

/*
 * A batch ends when it should take so long on the device. An event costs the stream 2.2 us (H200), so
 * metering takes 0.2 % of what is metered.
 */
#define METER_BATCH_NS 1000000u

/*
 * Budget that a process takes out of the slice's at once. With each filling the device begins with an empty
 * queue, and the program after a sleep; that costs about 0.1 ms (H200, PyTorch), and so 2 % of this. Who dies
 * takes at most this much with it.
 */
#define METER_CREDIT_NS 4000000

/* What every launch looks at stands first. */
struct meter {
	struct lock lock;
	_Atomic bool is_ready;
	bool is_limited;  /* there is a cap */
	bool is_yielding; /* another slice goes before ours: little is given at a time */
	uint32_t
		overlap_permille; /* of what streams took, what nobody else of the slice took as well */
	uint32_t counted_permille; /* of elapsed time: what is not others' (untracked.h) */
	int64_t credit_ns;
	uint64_t launches; /* not booked yet */
	struct device *device;
	struct region_compute *books;
	struct quota_limits limits;
	bool is_blocked;	   /* the monitor lets others go first */
	uint64_t blocked_since_ns; /* 0: not */
	bool is_stopped;	   /* this process alone, by a signal */
	bool has_turns;
	unsigned peer_count;	      /* slices that take turns with ours */
	bool goes_first;	      /* ours goes before all of them, and does not wait */
	uint64_t burst_ns, period_ns; /* when work last came after a pause, and how often it does */
	unsigned regular;	      /* so often in a row */
	bool is_turn_awaited;	      /* a thread sleeps for it, and nobody else may touch it */
	struct turn turn;
	int64_t ordered_ns;  /* a filling of the credit that is not ready yet */
	uint64_t ready_ns;   /* when it will be */
	uint64_t filled_ns;  /* when it was last filled */
	bool is_borrowing;   /* see credit_is_borrowing() */
	uint32_t filling;    /* how often */
	uint64_t charged_ns; /* by this process, since it began */
	uint64_t shown_ns,
		shown_at_ns; /* of that, and when the region's utilization was last set */
	bool has_launched;   /* since the last poll */
	struct timebase timebases[METER_CONTEXTS];
	unsigned stream_high;
	struct stream_state streams[METER_STREAMS];
};

/* With the lock: nothing new may reach the device, by the share or by a signal. */
static inline bool meter_is_suspended(const struct meter *meter)
{
	return meter->limits.is_suspended || meter->is_stopped;
}

/* The device's meter, made ready on first use. */
struct meter *meter_of(struct device *device);

/* The meters, in the order of the region's devices; those that are not ready have is_ready false. */
extern struct meter meters[REGION_DEVICES];

static inline void meter_count(_Atomic uint64_t *word, uint64_t value)
{
	/* relaxed: for people to read */
	atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}
