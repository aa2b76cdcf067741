/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a stream whose work is metered, batch by batch.
 *
 * A batch is work between two events of its stream. It begins where the batch before ended, or, if the
 * stream was idle, with an event of its own; so the device is asked about once a millisecond and not for
 * each launch. All of it under the lock of the device's meter.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"
#include "tenant/compute/span.h"
#include "tenant/compute/timebase.h"

#define STREAM_BATCHES 8
#define STREAM_PENDING \
	(STREAM_BATCHES - 2) /* closed ones; the one before them tells where they begin */

/*
 * A pause shorter than this counts as work: the device cannot be handed to another slice and back in
 * it (H200: about 100 us), so nobody else could have used it.
 */
#define STREAM_PAUSE_NS 100000u

/* An event that is recorded in an idle stream happens so much later (H200, driver 580). */
#define STREAM_EVENT_NS 4000

struct batch {
	uint64_t expected_ns;
	int64_t reserved_ns; /* of the meter's credit */
	uint64_t queued_ns;  /* of the slice's queue */
	uint64_t paid_ns;    /* it is charged until then, while it runs; 0: nothing of it is */
	int64_t running_ns;  /* so much */
	uint64_t ran_on_ns; /* of its time when its turn was over, so much is noted while it runs */
	uint32_t launches;
	bool has_start;
	bool has_end;	 /* an event was recorded behind it */
	bool is_timed;	 /* events tell when it began and ended */
	bool is_placed;	 /* its end is known on the host's clock, once it has ended */
	bool is_unknown; /* there is work in it of which nobody knows how long it takes */
	bool is_calling; /* the call that gives that has not come back */
	bool is_drawn;	 /* one piece, by chance (doubts.h) */
	bool is_backlog; /* it was given unmetered, and only its end is to be seen */
	bool is_behind; /* it was given behind what is no work, and had not ended (stream_breaks.h) */
	struct estimate_mix mix;
	CUevent start, end; /* made when first needed */
	uint64_t start_ns;  /* CLOCK_MONOTONIC's, when the start was recorded, where it has one */
	uint64_t called_ns; /* before the driver was given its first work */
	uint64_t given_ns;  /* and when that call had returned, where that is known */
	uint64_t end_ns;    /* likewise of the end, once that is known */
	uint64_t due_ns;    /* when it should have ended */
	uint64_t kept_until_ns; /* of one that is_behind: for so long the turn was taken for it */
};

/* Every launch reads the first fields. */
struct stream_state {
	/* Counts the ends of batches, of all streams that it was for. Read without the lock, so never cleared. */
	_Atomic uint32_t batch_count;
	/*
	 * Calls that were let in and have not come back: their work may not have reached the
	 * driver. Likewise never cleared.
	 */
	_Atomic uint32_t calls;
	struct meter *meter;
	struct batch *batch;	 /* the open one, behind the closed ones */
	unsigned first, pending; /* closed ones that are not collected yet */
	uint64_t begun_ns;	 /* of the open batch, or of the first after an idle time */
	uint64_t last_ns;	 /* of the last work given */
	uint64_t drained_ns;	 /* when all of it should be done */
	uint64_t queued_ns;    /* of the slice's queue, taken for the batch that is about to open */
	uint32_t single_count; /* so many pieces of work from here are a batch each */
	uint32_t
		fresh_count; /* so many batches have begun by an event of their own, and not where the last one ended */
	bool is_open;	 /* the open batch takes work; else there is none */
	bool is_chained; /* the open batch may begin where the last one ended */
	bool is_awaited; /* a wait began after the last work given, and before its end was seen */
	bool is_waited_for; /* that wait has ended, and tells when the work did */
	bool is_unseen;	    /* nobody can tell when the open batch ends: the clock does */
	bool has_no_events; /* the driver makes none here: the host's clock alone tells */
	bool is_shared;	    /* several streams have it: nothing tells when their work ends */
	bool is_used;
	bool has_stream;  /* else its stream is gone, and its work may not be */
	bool is_blocking; /* it and the default stream of its context wait for each other */
	bool is_going;	  /* it was found while the driver ended the stream of its handle */
	bool is_left;	  /* it is the own one of a thread that has ended: nobody may ask for it */
	bool is_again;	  /* its stream is gone, and another one has the handle */
	bool is_behind; /* what comes next does not wait any longer for what is no work, and has not ended */
	uint32_t use;	/* counts the streams that it was for */
	uint32_t users; /* calls that come back to it: until then it is for no other stream */
	uint32_t unknown_calls; /* of them, those for work without an estimate */
	uint64_t unknown_in_ns; /* when the last one was let in */
	uint64_t let_in_ns;	/* when the last call was let in, also one that is captured */
	uint64_t kept_ns; /* until then what is unseen, or given by calls that do not come back, is
			     charged by the clock */
	int64_t kept_running_ns; /* so much, of which no batch knows yet */
	uint64_t
		patience_ns; /* what comes next waits so long at most for what is no work; 0: it need not */
	uint32_t passed;	   /* how often something that is no work came into it */
	uint64_t doubted_until_ns; /* until then some pieces of work, by chance, are a batch each */
	uint32_t filling;	   /* of the meter's credit by which it last opened a batch */
	CUstream stream;
	CUcontext context;
	const void *thread;	   /* of a stream that each thread has of its own; else NULL */
	struct timebase *timebase; /* NULL: none is free */
	struct batch batches[STREAM_BATCHES];
} __attribute__((aligned(CACHE_LINE_BYTES)));

static inline struct batch *stream_state_before(struct stream_state *s, const struct batch *batch)
{
	size_t i = (size_t)(batch - s->batches);

	return &s->batches[(i + STREAM_BATCHES - 1) % STREAM_BATCHES];
}

/* Which batch work that is given now is in; another one when that has ended. Also without the lock. */
static inline uint32_t stream_state_batch(const struct stream_state *s)
{
	/*
	 * relaxed: the count is written with the lock. It is there before the batch's last event is
	 * recorded, and the driver orders that and the work: a call whose work came behind the
	 * event does not see the old one
	 */
	return atomic_load_explicit(&s->batch_count, memory_order_relaxed);
}

/* With the lock: a call may give its work. */
static inline void stream_state_let_in(struct stream_state *s, uint64_t now_ns)
{
	s->let_in_ns = now_ns;
	/* relaxed: a wait looks with the lock */
	atomic_fetch_add_explicit(&s->calls, 1, memory_order_relaxed);
}

/* With the lock, before that: the work has no estimate. has_batch: the open batch is its alone. */
static inline void stream_state_let_unknown_in(
	struct stream_state *s, bool has_batch, uint64_t now_ns)
{
	s->unknown_calls++;
	s->unknown_in_ns = now_ns;
	if (has_batch)
		s->batch->is_calling = true;
}

/* With the lock. batch: which one it was given to, as stream_state_batch() told. */
static inline void stream_state_unknown_came_back(struct stream_state *s, uint32_t batch)
{
	s->unknown_calls--;
	if (s->is_open && stream_state_batch(s) == batch)
		s->batch->is_calling = false;
}

/* It has come back, also without the lock. */
static inline void stream_state_came_back(struct stream_state *s)
{
	/* release: who sees it waits for the work that the call gave */
	atomic_fetch_sub_explicit(&s->calls, 1, memory_order_release);
}

/* Whether the open batch may hold work that has not reached the driver: no wait tells when that ends. */
static inline bool stream_state_has_calls(const struct stream_state *s)
{
	return atomic_load_explicit(&s->calls, memory_order_acquire) != 0;
}

/* Whether this thread can ask the driver for it: of another thread's own stream it would be told its own. */
bool stream_state_can_be_asked(const struct stream_state *s);

/*
 * Whether its stream is empty: asks the driver. While a call has not come back it is not: what that
 * gives may come when the driver has answered, or have ended by then, and only what lies around it
 * tells of it. Of a stream that is gone nothing tells, but a wait for all of its context: until
 * then its work may go on for as long as the context lives.
 */
bool stream_state_is_done(const struct stream_state *s);

/* Whether work given now follows what is there, with no pause between: asks the driver where in doubt. */
bool stream_state_is_continued(struct stream_state *s, uint64_t now_ns);

/* Work of the last batch that was opened may have begun at since_ns, before its start was recorded: the clock tells when it did. */
void stream_state_begin_by_clock(struct stream_state *s, uint64_t since_ns);

/*
 * Opens a batch; there is none, and fewer than STREAM_PENDING wait to be collected. is_alone: no other context of the
 * process is at work.
 */
void stream_state_open(struct stream_state *s, bool is_alone, uint64_t now_ns);

/* The last closed batch, of which there is one, ends with what was given just now, and is the one that takes more. */
void stream_state_extend(struct stream_state *s);

/* What was charged of the batch while calls did not come back is its own. */
void stream_state_take_kept(struct stream_state *s, struct batch *batch);

/* Closes the open batch with an event; nothing where there is none, or no room for one more closed batch. */
void stream_state_close(struct stream_state *s);

/*
 * The same by an event of the whole context, where nobody can record one in the stream; nothing
 * where the driver has none. True, and nothing is closed, where all of the context is done: the
 * event would tell of now. is_busy: it is known not to be.
 */
bool stream_state_close_in_context(struct stream_state *s, bool is_busy);

/*
 * Records an event behind all that the stream was given, where no batch is open; NULL: the driver does not. It is the next batch's start, so it stands
 * until that is opened, and is NULL when the context is gone.
 */
CUevent *stream_state_mark(struct stream_state *s);

/* The open batch takes no more, and calls that have not come back are late. */
void stream_state_end_batch(struct stream_state *s);

/* A closed batch of what was given before work was metered (stream_breaks.h); nothing else is there. */
void stream_state_close_backlog(struct stream_state *s, uint64_t since_ns, uint64_t until_ns);

/* Whether it is under way. */
static inline bool stream_state_has_backlog(const struct stream_state *s)
{
	return s->pending && s->batches[s->first].is_backlog;
}

/*
 * Since when work is under way in the stream that is not charged yet; 0: none is known of. What a
 * call gives that has not come back may be.
 */
uint64_t stream_state_begin_ns(const struct stream_state *s, uint64_t now_ns);

/* When the oldest work of the stream was given that has no estimate, and is under way; 0: there is none. */
uint64_t stream_state_unknown_since_ns(const struct stream_state *s);

/* Whether such work was, or is being, given to it and is under way. */
bool stream_state_has_unknown(const struct stream_state *s);

/*
 * Whether nothing tells as yet when its last work ends: no event is behind it, and no wait has seen
 * the end. If it stays so it is charged as estimated.
 */
static inline bool stream_state_is_untold(const struct stream_state *s)
{
	return s->is_open && s->batch->launches && !s->is_waited_for;
}

/* Whether all that it has waits for what is no work. */
bool stream_state_is_held_up(const struct stream_state *s);

/* Whether nothing is known to be under way. */
static inline bool stream_state_is_drained(const struct stream_state *s, uint64_t now_ns)
{
	return s->pending == 0 && (!s->is_open || s->drained_ns <= now_ns);
}

/* Makes a state free for another stream; its events go with it. */
void stream_state_free(struct stream_state *s);

/* All but its counts is as in one that was never used. */
void stream_state_clear(struct stream_state *s);

/*
 * Other streams have it, too, from now on, of any context, and for good. Whatever is given to it is
 * charged by the clock as long as the process lives.
 */
void stream_state_share(struct stream_state *s);
