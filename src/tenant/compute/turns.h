/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a meter: the slice's turn on the device, as far as this process has to do with it. All of it
 * under the meter's lock, except turns_wait().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/throttle.h"
#include "region/turn.h"

struct meter;

/* How long something takes each time, and how often in a row it did. */
struct rhythm {
	uint64_t period_ns;
	unsigned regular;
};

/* Of a meter; written by turns.c alone. */
struct turns {
	uint64_t tried_ns; /* when the record was last tried to be opened; 0: never */
	bool is_open;	   /* there is a folder of turns */
	bool is_denied;	 /* there is, and the record cannot be had: nothing is lent to the slice */
	bool is_awaited; /* a thread sleeps for the turn, and nobody else may touch it */
	bool has_waited; /* a thread slept for the turn since the process last had it */
	bool is_due;	 /* a poll came while a thread slept for the turn */
	uint64_t
		careful_ns; /* what each piece is announced as at least (overruns.h); 0: as its estimate */
	bool is_yielding;    /* another slice goes before ours: little is given at a time */
	bool goes_first;     /* ours goes before all of them, and does not wait */
	unsigned peer_count; /* slices that take turns with ours */
	struct rhythm bursts,
		pauses; /* of work, between the starts; and of the device, where they were seen to begin */
	uint64_t burst_ns; /* when work last came after a pause */
	uint64_t
		idle_ns; /* since when nothing is on the device; 0: something is, or that was not seen */
	uint64_t waited_ns; /* since the others were last judged */
	uint64_t served_ns; /* how long the device has worked for the slice, as last seen */
	struct turn turn;
};

/*
 * Opens the slice's turn record at first, where there is a folder of turns, and again where that
 * failed. Counts the slices that take turns with this one, and compares their ranks; sets how long
 * a turn is.
 */
void turns_poll(struct meter *meter, uint64_t now_ns);

/* Work comes after a pause; tells the others when it may come again. */
void turns_note_burst(struct meter *meter, uint64_t now_ns);

/* What a piece is announced as that should take so long: of a slice that owes what ran on, as a long one. */
uint64_t turns_piece_ns(const struct meter *meter, uint64_t estimate_ns);

/* What it counts for in the slice's queue: of unknown length, as what the turn is kept for. */
uint64_t turns_queued_ns(const struct meter *meter, uint64_t estimate_ns);

/*
 * Takes or keeps the turn for work that is estimated to take so long, after what keeps this process busy until
 * then. The reason why it has to wait, and when to ask again. With THROTTLE_NO_TURN, turns_wait() and turns_waited()
 * are to be called, and until then nobody else touches the turn.
 */
enum throttle turns_ask(struct meter *meter, uint64_t estimate_ns, uint64_t busy_until_ns,
	uint64_t queued_until_ns, uint64_t now_ns, uint64_t *ret_wake_ns);

/* Without the lock: sleeps until there is news of the turn, or until then. */
void turns_wait(struct meter *meter, uint64_t until_ns);

/* It waited so long for others; why is THROTTLE_NO_TURN, or THROTTLE_YIELDING. */
void turns_waited(struct meter *meter, enum throttle why, uint64_t waited_ns, uint64_t now_ns);

/*
 * A thread is to wait until then. Where work of this process takes longer than was expected, the
 * turn lasts as long, too; returns when to look at it again.
 */
uint64_t turns_keep(struct meter *meter, uint64_t wake_ns, uint64_t now_ns);

/* The program is about to wait for its work, and nobody can look at it until it is done: the turn lasts until then. */
void turns_wait_for_work(struct meter *meter, uint64_t now_ns);

/* While the slice waits for something else others may have the device. */
void turns_let_go(struct meter *meter, uint64_t now_ns);

/*
 * Work may be done, and is charged: says in the region since when the rest is under way. If nothing
 * of this process is on the device the turn is released where it is over, and else kept for a
 * moment.
 */
void turns_note_done(struct meter *meter, uint64_t now_ns);
