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

/* Ranks of turns to a priority: within what the slice is sure of, and beyond it. */
#define METER_RANKS 2u

/*
 * Budget that a process has taken out of the slice's, so that the shared word is touched once a batch and
 * not at each launch. Who dies takes at most this much with it.
 */
#define METER_PURSE_NS 1000000

struct meter {
	struct lock lock;
	_Atomic bool is_ready;
	struct device *device;
	struct region_compute *books;
	struct quota_terms terms;
	bool is_limited;	   /* there is a cap */
	bool is_blocked;	   /* the monitor lets others go first */
	uint64_t blocked_since_ns; /* 0: not */
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
	uint64_t charged_ns;	  /* by this process, since it began */
	uint64_t shown_ns,
		shown_at_ns; /* of that, and when the region's utilization was last set */
	uint64_t launches;   /* not booked yet */
	bool has_launched;   /* since the last look */
	struct timebase timebases[METER_CONTEXTS];
	unsigned track_high;
	struct track tracks[METER_TRACKS];
};

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

/* Waits while nothing may reach the device. */
void meter_pass_suspension(struct meter *meter);

/* With the lock: ends the open batch, by an event where is_exact. */
void meter_end_batch(struct track *track, uint64_t now_ns, bool is_exact);

/* With the lock: what is done is charged; then, if all is, the turn is let go of as it should be. */
void meter_settle(struct meter *meter, uint64_t now_ns);
void meter_drained(struct meter *meter, uint64_t now_ns);
