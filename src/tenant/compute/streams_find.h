/* SPDX-License-Identifier: Apache-2.0 */
/* How the state of a stream is found, or a place for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

struct device;
struct meter;
struct stream_state;

/* Handles that mean another stream in each context, and in each thread. */
static inline bool streams_is_of_context(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/*
 * The stream's state, with its meter's lock; NULL where the driver knows no context: it will say so itself. Where all places
 * are in use, waits for one. That has an end: after it there are some more, of which the last is shared by all that find none.
 */
struct stream_state *streams_enter(CUstream stream);

/* The same for what gives no work; NULL also where there is no place, and so nothing known of the stream. */
struct stream_state *streams_enter_if_known(CUstream stream);
void streams_leave(struct stream_state *s);

/* As both, of the stream as far as work in it is another device's than its own. */
struct stream_state *streams_enter_on(struct device *device, CUstream stream, bool may_wait);

/* The ordinal of the stream's own device; -1: there is no context. */
int streams_ordinal(CUstream stream);

/* The state in the meter that this thread used last, if it is still that stream's; else NULL. */
struct stream_state *streams_recent(const struct meter *meter);

/*
 * Work is metered from now on: what lies in a stream, or in all of the context's (false: the driver does not tell), was given before. It is
 * charged while it runs, and the slice's own work waits for STREAMS_BACKLOG_NS. With the meter's lock.
 */
void streams_note_backlog(struct meter *meter, CUstream stream, CUcontext context);
bool streams_note_context_backlog(struct meter *meter, CUcontext context);

/* The meter of the device that a context is of. Not with a lock. */
struct meter *streams_meter_of(CUcontext context);
