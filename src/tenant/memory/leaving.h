/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins that were freed in stream order.
 *
 * The driver frees managed memory at once and never in stream order. So a stand-in (oversubscribe.h)
 * that is given to cuMemFreeAsync() is marked with an event on the stream, and freed by whoever
 * synchronizes, or is about to be refused, after the stream has passed the event. Nobody waits for
 * it, and until then it stays charged, as what a pool keeps does.
 */
#pragma once

#include "tenant/memory/allocations.h"

/* Takes the allocation over where the answer is CUDA_SUCCESS; else it is the caller's as before. */
CUresult leaving_add(const struct allocation *allocation, CUstream stream);

/* Frees what streams have passed. Costs one load where nothing is leaving. */
void leaving_collect(void);

/* The same before a refusal. */
void leaving_settle(struct device *device);

/* Whether anything is leaving. */
bool leaving_is_any(void);

/* The context has ended, and its memory with it. */
void leaving_context_ended(struct device *device, CUcontext context);

/* For a child of fork(). */
void leaving_reset_after_fork(void);
