/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams of a meter, all of them at once. Under the lock of the meter, which streams_enter()
 * takes.
 *
 * How the state of one is found is in streams_find.h, what a wait tells in streams_wait.h, and how
 * streams end in streams_end.h.
 */
#pragma once

#include "tenant/compute/stream_breaks.h"
#include "tenant/compute/stream_charge.h"
#include "tenant/compute/stream_ends.h"
#include "tenant/compute/stream_state.h"
#include "tenant/compute/streams_end.h"
#include "tenant/compute/streams_find.h"
#include "tenant/compute/streams_wait.h"

#define STREAMS_MAX   128 /* that are told apart; PyTorch's pools have 96 */
#define STREAMS_SPARE 8	  /* of them, for contexts that have none */
#define STREAMS_LATE  8	  /* places beyond these, for streams that have waited long for one */
#define STREAMS_ALL   (STREAMS_MAX + STREAMS_LATE)
#define STREAMS_CONTEXTS \
	8 /* of a device, whose events are placed on the host's clock each by itself */

struct streams {
	unsigned high; /* states from here on were never used */
	struct timebase timebases[STREAMS_CONTEXTS];
	struct stream_state at[STREAMS_ALL];
};

struct meter;

/* The number of this thread, by which its own default stream is told (stream_thread.h). */
const void *streams_own_thread(void);

/* Whether its work is its stream's in the context: not that of one which is gone. */
bool streams_is_in(const struct stream_state *s, CUcontext context);

/* Streams of other threads, and those that have no handle of their own, cannot be given an event from here. */
bool streams_is_reachable(const struct stream_state *s);

/* Charges the closed batches of all streams that are done. */
void streams_collect(struct meter *meter, uint64_t now_ns);

/*
 * What follows is not metered, or was not: open batches end, charged as estimated, and none goes on from what is there.
 */
void streams_break(struct meter *meter, uint64_t now_ns);

/* Since when work is under way that is not charged yet; 0: none is known of. */
uint64_t streams_begin_ns(const struct meter *meter, uint64_t now_ns);

/* When all that this process has given to the device should be done; 0: nothing is known of. */
uint64_t streams_end_ns(const struct meter *meter);

/* When the process last gave work; now, while a call of it waits to do so or for what it gave to a stream. */
uint64_t streams_last_ns(const struct meter *meter, uint64_t now_ns);

/* How long all that the others have should take from now on, were it done one after the other. */
uint64_t streams_others_ahead_ns(const struct stream_state *work, uint64_t now_ns);

/* What is no work comes into the stream (stream_breaks.h), and so into those that wait for it without a word: the default stream, or all but a few beside it. */
void streams_pass(struct stream_state *s, unsigned breaks_most, uint64_t patience_ns);

/* Whether it is known that nothing of this process is on the device. */
bool streams_are_idle(const struct meter *meter, uint64_t now_ns);

/* Whether nothing is on the device of other contexts of this process than the stream's. */
bool streams_are_others_idle(const struct stream_state *s, uint64_t now_ns);

/* Whether nothing is on the device of other streams of this process. */
bool streams_is_alone(const struct stream_state *s, uint64_t now_ns);

/* Whether nothing of this process is on the device but what waits for something that is no work. */
bool streams_are_at_rest(const struct meter *meter, uint64_t now_ns);

/* The same of all, and lets events tell when what is in open batches ends. */
bool streams_drain(struct meter *meter, uint64_t now_ns);

/*
 * Work comes to the stream. What others were given last, a while ago, gets an event that tells when
 * it ends; where they are idle already, it is charged as estimated, whether work ever comes there
 * again or not.
 */
void streams_note_others(const struct stream_state *s, uint64_t now_ns);

/*
 * What the stream was given ends with an event of its context, as nobody here can give it one; where
 * all of the context is done it is charged as estimated. Nothing where the driver has no such events,
 * or captures are on. *is_busy: the context is known to be at work, as by an earlier one of these.
 */
void streams_end_in_context(struct stream_state *stream, bool *is_busy, uint64_t now_ns);

/*
 * A thread that is not the program's looks: the same of all to which nothing was given for so long,
 * also of those that no event can be given from there, where the driver has events of contexts.
 * Where captures keep it from giving these, what lies there is charged by the clock
 * (stream_state.h).
 */
void streams_note_silent(struct meter *meter, uint64_t pause_ns, uint64_t now_ns);

/*
 * A capture is about to begin, and none is on: until it ends no event of a context is to be had.
 * So the end of what nobody else can tell of is told now.
 */
void streams_capture_begins(struct meter *meter, uint64_t now_ns);

/*
 * A thread is to wait, and the device idles: events tell when what is in open batches ends, where the thread can give
 * some. The default stream would seem to have gone on as soon as a stream that waits for it is given more.
 */
void streams_close_all(struct meter *meter);

/*
 * What a slice has queued while it was alone is waited for so long when another one comes. It is
 * nobody's fault: nothing told how much that was.
 */
#define STREAMS_BACKLOG_NS UINT64_C(2000000000)

/* Whether what was given before work was metered is under way, and until when work waits for that; 0: it need not. */
bool streams_have_backlog(const struct meter *meter);
uint64_t streams_backlog_until_ns(const struct meter *meter, uint64_t now_ns);

/* For a child of fork(): its parent's streams are nobody's. */
void streams_reset_after_fork(struct streams *streams);
