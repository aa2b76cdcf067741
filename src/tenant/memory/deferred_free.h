/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is given back when a stream has got there.
 *
 * It waits in one list, in order of coming, with an event of ours in the stream, and goes when a synchronization, or a call that
 * is about to be refused, finds that the stream has passed the event. Nobody waits for it, and until then it
 * stays charged, as what a pool keeps does. Where the stream's context ends before, and the memory does not end with it, the driver's
 * figure for this process has to say that the memory has gone.
 */
#pragma once

#include "tenant/memory/allocations.h"

/* Why it is given back. */
enum deferred_free_end {
	DEFERRED_FREE_PASSED, /* the stream has got there */
	DEFERRED_FREE_GONE,   /* the driver has freed the memory with its context */
	DEFERRED_FREE_UNSEEN, /* the event has ended with its context, and nobody sees when the stream gets there */
};

/* The first member of what waits. What is in the list is changed under its lock. */
struct deferred_free {
	struct deferred_free *next;
	struct deferred_free **at; /* what points to it */
	CUcontext context;	   /* the stream's; NULL: it has ended */
	CUstream stream;
	uint64_t life;	      /* that context's */
	uint64_t memory_life; /* of the context that the memory itself ends with; 0: of none */
	CUevent event;	      /* NULL: only the context's end tells */
	uint64_t round;	      /* of the last collection that has looked */
	bool is_held;	/* between begin() and end(): no stream comes in the place of this one */
	bool is_polled; /* a thread asks for its event */
	bool is_passed;
	bool is_gone;	/* the memory has ended with its context */
	bool is_unseen; /* the event has ended with its context */
	/* Gives it back and frees the struct; false: not now. */
	bool (*give_back)(struct deferred_free *d, enum deferred_free_end how);
};

/*
 * Around the driver's call in stream order and mark(): so that the event is recorded in that very stream, and not in another one
 * of the same handle, no stream is made meanwhile.
 */
void deferred_free_begin(struct deferred_free *d, CUstream stream);
void deferred_free_end(struct deferred_free *d);

/*
 * Records the event on the stream. Where that fails, add() makes it wait for the end of the context; and where the stream is not
 * surely that of begin(), for the end of the memory's own context.
 */
CUresult deferred_free_mark(struct deferred_free *d, CUstream stream) MUST_CHECK;
void deferred_free_add(struct deferred_free *d);

/*
 * An allocation that is freed in stream order by the driver's call, or (NULL) of a host fallback (oversubscribe.h)
 * by ourselves, because the driver does that for no managed memory. Takes the allocation over where the answer is
 * CUDA_SUCCESS; else it is the caller's as before.
 */
CUresult deferred_free_allocation(
	const struct allocation *allocation, CUstream stream, cuMemFreeAsync_fn *call);

/* Gives back what streams have passed. Costs one load where nothing waits. */
void deferred_free_collect(void);

/* Whether anything waits. */
bool deferred_free_is_any(void);

/* Parts (slice/parts.h): the same before a refusal, and before a context ends; its end; a child of fork(). */
void deferred_free_collect_all(struct device *device);
void deferred_free_context_ends(CUcontext context);
void deferred_free_life_ended(struct device *device, uint64_t life);
void deferred_free_reset_after_fork(void);
