/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why work has to wait before it reaches the device, and until when.
 *
 * Two questions, in this order. throttle_work(): is the slice suspended, has it budget, is the host too
 * far ahead of the device? throttle_turn(): may the slice keep its turn? The second is asked only of
 * work that the first lets through, so that no turn is held by work that waits for something else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum throttle {
	THROTTLE_NONE,
	THROTTLE_SUSPENDED,
	THROTTLE_NO_BUDGET,
	THROTTLE_TOO_FAR,      /* what was given before has to get further */
	THROTTLE_DRAINING,     /* what was given before has to end, as another slice waits */
	THROTTLE_NO_TURN,      /* the thread that finds this waits for the turn */
	THROTTLE_TURN_AWAITED, /* another thread waits for it */
	THROTTLE_YIELDING,     /* a slice that goes first is about to come */
	THROTTLE_QUEUED, /* what other threads and processes of the slice gave has to get further */
	THROTTLE_BEHIND, /* what it comes behind in its stream, and is no work, has to end */
	THROTTLE_UNKNOWN, /* other work of the slice has to end of which nobody knows how long it takes */
};

/* The estimate of a batch that is so late was wrong, and until it is done nothing more is given. */
#define THROTTLE_LATE_NS UINT64_C(500000)

/* By so much a turn is longer where the slice has not had what it is sure of. */
#define THROTTLE_MORE_NS      UINT64_C(300000)

#define THROTTLE_SLEEP_MAX_NS UINT64_C(20000000) /* longest sleep of a waiter */
/* Shortest sleep; a timer is late by as much (Linux' slack for a timer). */
#define THROTTLE_SLEEP_MIN_NS UINT64_C(50000)

/* For a slice that comes at regular times room is made so long before, and kept so long after. */
#define THROTTLE_LEAD_NS  UINT64_C(400000)
#define THROTTLE_TARDY_NS UINT64_C(200000)

/* The facts about the work, its stream, and the slices beside it. */
struct throttle_work {
	uint64_t now_ns;
	uint64_t credit_ready_ns; /* when credit lets the work begin; 0: it does now */
	uint64_t busy_until_ns;	  /* when all that the process has given should be done */
	uint64_t drained_ns;	  /* when the stream's work should be done */
	uint64_t queued_until_ns; /* when all that the slice has given should be done */
	uint64_t due_ns; /* when the stream's oldest closed batch should end; 0: there is none */
	/* when the stream was given the oldest work under way that has no estimate; 0: there is none */
	uint64_t unknown_since_ns;
	bool is_suspended;
	bool is_unknown;  /* this work has no estimate either */
	bool is_careful;  /* a piece may be long, whatever it should take: one by one */
	bool has_work;	  /* the stream has an open or a closed batch */
	bool is_full;	  /* the stream has as many closed batches as it can have */
	bool has_peers;	  /* other slices take turns with this one */
	bool is_yielding; /* one of them goes first */
	bool is_shared;	  /* the driver gives the device to others, too, by its own time slices */
};

/* The reason, and when to ask again. */
enum throttle throttle_work(const struct throttle_work *work, uint64_t *ret_wake_ns);

/* The facts about the slice's turn. */
struct throttle_turn {
	uint64_t now_ns;
	uint64_t busy_until_ns; /* as above */
	uint64_t next_ns; /* when a slice that goes first expects to come; 0: none does soon */
	bool is_wanted;	  /* the turn is over, and another slice waits for one */
	bool is_idle;	  /* nothing of the process is on the device */
};

/* The next step with the turn. */
enum throttle_step {
	THROTTLE_KEEP,	  /* hold the turn, or get into line for one */
	THROTTLE_RELEASE, /* release it, then get into line */
	THROTTLE_LEAVE,	  /* release it, and wait outside of the line */
	THROTTLE_DRAIN,	  /* let the work that is under way end first */
};

/* *ret_why and *ret_wake_ns are set where the work has to wait: THROTTLE_LEAVE and THROTTLE_DRAIN. */
enum throttle_step throttle_turn(
	const struct throttle_turn *turn, enum throttle *ret_why, uint64_t *ret_wake_ns);

/*
 * The moment by which work is within a turn: its middle. So long kernels are rounded to whole turns,
 * and a slice that has saved up budget by that may have one more; and one whose short kernels get less
 * by what each change of turns takes has its turns a little longer. saved_ns: of what the slice is
 * sure to get; less than 0: it owes. owed_ns: of what it could not have while others had the device for long, and by which
 * its turn is longer, 24 ms at most.
 */
uint64_t throttle_turn_moment(uint64_t estimate_ns, int64_t saved_ns, uint64_t owed_ns,
	uint64_t busy_until_ns, uint64_t now_ns);

/*
 * Whether work was waited for long enough. Work that does not end may wait for what the program is about
 * to give, on this stream or another: a flag that the host sets, a kernel's counterpart. So waiting for
 * it has an end, and then work is let through now and then; what it took is charged when its end is
 * seen. *since_ns is the caller's, 0 at first. moved_ns: when something it may wait for ended or was let through, after which it is
 * waited for as long again; 0: nothing counts so.
 */
bool throttle_is_stuck(enum throttle why, uint64_t drained_ns, uint64_t moved_ns, uint64_t now_ns,
	uint64_t *since_ns);
