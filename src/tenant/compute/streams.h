/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The streams of a meter, and how the state of one is found. All of it under the lock of the meter, which
 * streams_enter() takes.
 */
#pragma once

#include "tenant/compute/stream_breaks.h"
#include "tenant/compute/stream_charge.h"
#include "tenant/compute/stream_ends.h"
#include "tenant/compute/stream_state.h"

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

/*
 * The stream's state, with its meter's lock; NULL where the driver knows no context: it will say so itself. Where all places
 * are in use, waits for one. That has an end: after it there are some more, of which the last is shared by all that find none.
 */
struct stream_state *streams_enter(CUstream stream);

/* The same for what gives no work; NULL also where there is no place, and so nothing known of the stream. */
struct stream_state *streams_enter_if_known(CUstream stream);
void streams_leave(struct stream_state *s);

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

/* Whether it is known that nothing of this process is on the device. */
bool streams_are_idle(const struct meter *meter, uint64_t now_ns);

/* Whether nothing is on the device of other contexts of this process than the stream's. */
bool streams_are_others_idle(const struct stream_state *s, uint64_t now_ns);

/* The same of all, and lets events tell when what is in open batches ends. */
bool streams_drain(struct meter *meter, uint64_t now_ns);

/*
 * Work comes to the stream. What others were given last, a while ago, gets an event that tells when it ends; where they are
 * idle already, it is charged as estimated, whether work ever comes there again or not.
 */
void streams_note_others(const struct stream_state *s, uint64_t now_ns);

/*
 * A thread is to wait, and the device idles: events tell when what is in open batches ends, where the thread can give
 * some. The default stream would seem to have gone on as soon as a stream that waits for it is given more.
 */
void streams_close_all(struct meter *meter);

/* This thread is about to wait for the work of the current context, or for something in the stream that it used last. */
void streams_wait_begins(struct meter *meter, bool is_all, uint64_t now_ns);

/* A wait for all work of the context that began at since_ns has ended. */
void streams_waited(struct meter *meter, CUcontext context, uint64_t since_ns, uint64_t now_ns);

/* The stream of the meter that this thread used last, if nothing there is under way; else NULL. */
struct stream_state *streams_recent_if_done(const struct meter *meter);

/*
 * Around the driver's call that ends a stream; not with a lock. What it was given is closed before, and what another thread gives it
 * meanwhile afterwards, if it has ended.
 */
void streams_end_begins(CUstream stream, struct stream_end *ret_end);
void streams_end_ends(const struct stream_end *end, bool is_ended);

/* The driver has made a stream: what was of its handle before is another one's. */
void streams_made(CUstream stream);

/* A context is about to end: charges what is known to be done in it. Not with a lock. */
void streams_context_ends(CUcontext context);

/* A green context ends, or is_gone. Its streams' work goes on in the primary one, and is measured there. */
void streams_green_ends(
	struct meter *meter, CUcontext context, CUcontext primary, bool is_gone, uint64_t now_ns);

/* It is gone, and its streams. */
void streams_context_ended(struct meter *meter, CUcontext context, uint64_t now_ns);

/*
 * What a slice has queued while it was alone is waited for so long when another one comes. It is nobody's fault: nothing
 * told how much that was.
 */
#define STREAMS_BACKLOG_NS UINT64_C(2000000000)

/*
 * Work is metered from now on: what lies in a stream, or in all of the context's (false: the driver does not tell), was given before. It is
 * charged while it runs, and the slice's own work waits for STREAMS_BACKLOG_NS. With the meter's lock.
 */
void streams_note_backlog(struct meter *meter, CUstream stream, CUcontext context);
bool streams_note_context_backlog(struct meter *meter, CUcontext context);

/* Whether it is under way, and until when work waits for that; 0: it need not. */
bool streams_have_backlog(const struct meter *meter);
uint64_t streams_backlog_until_ns(const struct meter *meter, uint64_t now_ns);

/* The meter of the device that a context is of. Not with a lock. */
struct meter *streams_meter_of(CUcontext context);

/* For a child of fork(): its parent's streams are nobody's. */
void streams_reset_after_fork(struct streams *streams);
