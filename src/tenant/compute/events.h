/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the driver about a stream and its events. They are asked in the stream's own context, whichever is
 * current, and never become part of a graph that the program captures.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

/* The context that a stream belongs to, by the driver; NULL where it does not tell. */
CUcontext events_context_of(CUstream stream);

/* Whether nothing is under way in the stream; false while it is captured. A context that is broken or gone runs nothing. */
bool events_is_idle(CUcontext context, CUstream stream);

/* CUDA_ERROR_NOT_READY: it has not happened yet, or the driver does not answer now. */
CUresult events_query(CUevent event);

enum events_answer {
	EVENTS_RECORDED,
	EVENTS_CAPTURED, /* the stream may be captured: nothing was recorded */
	EVENTS_REFUSED,	 /* the driver has no event for this stream */
};

/* Records an event in the stream, made where it is NULL. */
enum events_answer events_record(CUcontext context, CUstream stream, CUevent *event);

/* Whether the driver has events of a whole context (CUDA 12.5). */
bool events_know_contexts(void);

/*
 * Records an event behind all that the context was given, by streams of which nothing is known any more as well. False where the driver
 * cannot, or for now, as a capture that is under way might fail by it.
 */
bool events_record_in_context(CUcontext context, CUevent *event);

/* Whether the context is broken or gone, so that nothing runs in it. */
bool events_is_dead(CUcontext context);

/* The time between two events; false where the driver does not tell. */
bool events_distance(CUevent from, CUevent to, int64_t *ret_ns);
