/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A meter: one for each device of this process. It measures what its tracks' work takes, charges that to the
 * slice's budget in the region, and says when more may be given to the device.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "policy/budget.h"
#include "region/turn.h"
#include "shim/quota.h"
#include "shim/state.h"
#include "shim/track.h"

#define METER_TRACKS 128 /* streams that are told apart; PyTorch's pools have 96 */

#define METER_CONTEXTS \
	8 /* of a device, whose events are placed on the host's clock each by itself */

/*
 * A batch ends when it should take so long on the device. An event costs the stream 2.2 us (H200), so
 * metering takes 0.2 % of what is metered.
 */
#define METER_BATCH_NS 1000000u

/* A batch that is so late was guessed wrongly, and until it is done nothing more is given. */
#define METER_LATE_NS 500000u

/* Ranks of turns to a priority: within what the slice is sure of, and beyond it. */
#define METER_RANKS 2u

/*
 * Budget that a process takes out of the slice's at once. With each filling the device begins with an empty
 * queue, and the program after a sleep; that costs about 0.1 ms (H200, PyTorch), and so 2 % of this. Who dies
 * takes at most this much with it.
 */
#define METER_PURSE_NS 4000000

struct meter {
	struct lock lock;
	_Atomic bool is_ready;
	struct device *device;
	struct region_compute *books;
	struct quota_terms terms;
	bool is_limited;	   /* there is a cap */
	bool is_blocked;	   /* the monitor lets others go first */
	uint64_t blocked_since_ns; /* 0: not */
	bool is_stopped;	   /* this process alone, by a signal */
	bool has_turns;
	unsigned other_count;	      /* slices that take turns with ours */
	bool is_yielding;	      /* one of them goes before ours: little is given at a time */
	bool goes_first;	      /* ours goes before all of them, and does not wait */
	uint64_t burst_ns, period_ns; /* when work last came after a pause, and how often it does */
	unsigned regular;	      /* so often in a row */
	bool is_turn_awaited;	      /* a thread sleeps for it, and nobody else may touch it */
	struct turn turn;
	int64_t purse_ns;
	int64_t ordered_ns; /* a filling of the purse that is not ready yet */
	uint64_t ready_ns;  /* when it will be */
	uint64_t filled_ns; /* when it was last filled */
	uint32_t filling;   /* how often */
	uint32_t
		overlap_permille; /* of what tracks took, what nobody else of the slice took as well */
	uint32_t counted_permille; /* of elapsed time: what is not others' (neighbours.h) */
	uint64_t charged_ns;	   /* by this process, since it began */
	uint64_t shown_ns,
		shown_at_ns; /* of that, and when the region's utilization was last set */
	uint64_t launches;   /* not booked yet */
	bool has_launched;   /* since the last look */
	struct timebase timebases[METER_CONTEXTS];
	unsigned track_high;
	struct track tracks[METER_TRACKS];
};

/* With the lock: nothing new may reach the device, by the share or by a signal. */
static inline bool meter_is_suspended(const struct meter *meter)
{
	return meter->terms.is_suspended || meter->is_stopped;
}

/* The device's meter, made ready on first use. */
struct meter *meter_of(struct device *device);

/* The meters, in the order of the region's devices; those that are not ready have is_ready false. */
extern struct meter meters[REGION_DEVICES];

/* Reads the terms again; whether work for the device has to be metered. */
bool meter_refresh(struct meter *meter, uint64_t now_ns);

/*
 * Waits until work of this kind may be given to the track's stream, and expects it. now_ns may be off by
 * some us. Takes and leaves the
 * meter's lock. True where its batch is full with it, and meter_given() is to be called.
 */
bool meter_admit(struct track *track, uint32_t guess, uint64_t now_ns);

/* After the work was given: closes the batch. */
void meter_given(struct track *track);

/* With the lock: ends the open batch, by an event where is_exact. */
void meter_end_batch(struct track *track, uint64_t now_ns, bool is_exact);

/* With the lock: what is done is charged; then, if all is, the turn is let go of as it should be. */
void meter_settle(struct meter *meter, uint64_t now_ns);
void meter_drained(struct meter *meter, uint64_t now_ns);

static inline void meter_count(_Atomic uint64_t *word, uint64_t value)
{
	/* relaxed: for people to read */
	atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}

/* With the lock, for those who decide (hindrance.h). */

/* When all that this process has given to the device should be done; 0: nothing is known of. */
uint64_t meter_drained_ns(const struct meter *meter);

/* Whether it is known that nothing of this process is on the device. */
bool meter_is_idle(const struct meter *meter, uint64_t now_ns);

/* Lets events tell when what is in open batches ends. */
void meter_end_batches(struct meter *meter, uint64_t now_ns);

/* The slice's rank for turns: its priority, and whether it borrows. */
unsigned meter_rank(const struct meter *meter, uint64_t now_ns);
