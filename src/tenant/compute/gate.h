/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate: work for the device passes here, is metered, and waits where the slice may not have more.
 *
 *	struct gate_pass pass;
 *
 *	gate_enter(stream, gate_key(function, blocks), &pass);
 *	r = cuda.cuLaunchKernel(...);
 *	gate_leave(&pass, r);
 *
 * Where nothing is metered, gate_enter() is one load and gate_leave() one test.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/clock.h"
#include "gpu/abi/cuda.h"
#include "tenant/compute/poll.h"
#include "tenant/compute/streams.h"

struct device;
struct meter;

/*
 * Work on its way to the driver. Each pass and each wait that has a stream state is brought to its
 * end, or that is never free for another stream. By the state work is found again that came late:
 * by its stream's handle, or the context that is current, it might be another one's by then. From
 * one to the other the thread makes no other context current (driver/current.h): the work would be
 * that one's.
 */
struct gate_pass {
	bool is_metered;	    /* else nothing else of it is set */
	struct stream_state *state; /* NULL: none is known, and it is in no batch */
	uint64_t capture;	    /* which is to take it, so that it is in no batch; 0: none */
	CUstream stream;
	struct device *device; /* that it was for; NULL: its stream's */
	uint64_t since_ns;     /* it went on to the driver then, or later */
	uint32_t fresh_count;  /* the state's then */
	uint32_t estimate;
	uint32_t batch;	 /* which one of the state's it was given to */
	bool is_full;	 /* its batch ends with it */
	bool is_unknown; /* nobody knows how long it takes */
};

/* How often this thread goes on without asking the clock, which costs 16 ns on some machines. */
extern __thread uint32_t gate_free_passes;
bool gate_has_rest(void);

/* Whether work goes on at once, without a question. */
static inline bool gate_is_free(void)
{
	/* relaxed: a limit seen late is a limit of a moment ago */
	uint32_t mode = atomic_load_explicit(&gate_mode, memory_order_relaxed);

	if (LIKELY(mode == GATE_POLL && gate_free_passes > 0)) {
		gate_free_passes--;
		return true;
	}
	return mode == GATE_OFF;
}

/* Whether work goes on at once. */
static inline bool gate_is_open(void)
{
	/* relaxed: as above */
	return LIKELY(gate_is_free()) ||
	       (atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_POLL &&
		       gate_has_rest());
}

/*
 * The kind of the work: equal keys are expected to take equal time. object is a function, a graph, or a
 * number of one's own for copies and the like; size what makes a difference (blocks, a power of bytes).
 */
static inline uint64_t gate_key(const void *object, uint64_t size)
{
	/* Three leading bits: a quarter more or less is the same kind, or each length of a text would be new. */
	if (size > 4) {
		int shift = 61 - __builtin_clzll(size);

		size = size >> shift << shift;
	}
	return ((uintptr_t)object >> 4 ^ size * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

/* For a part of the work that is that device's (NULL: the stream's own), which is charged from the work's begin until all of it has ended. */
void gate_enter_for(
	struct device *device, CUstream stream, uint64_t key, struct gate_pass *ret_pass);
/* The device whose meter it has passed: its ordinal; -1: none. */
int gate_ordinal(const struct gate_pass *pass);
void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass);
void gate_leave_slowly(struct gate_pass *pass, CUresult result);

/*
 * Before work is given to the stream: waits until the slice may have it. stream is as the driver means
 * it: CU_STREAM_PER_THREAD where a name ending in _ptsz was given none.
 */
static inline void gate_enter(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	if (LIKELY(gate_is_open()))
		ret_pass->is_metered = false;
	else
		gate_enter_slowly(stream, key, ret_pass);
}

/* After the driver has answered. */
static inline void gate_leave(struct gate_pass *pass, CUresult result)
{
	if (UNLIKELY(pass->is_metered))
		gate_leave_slowly(pass, result);
}

/*
 * Around work that holds a copy engine and not the device's processors: it is not metered, and the time
 * that it takes is not taken for that of the work around it. A suspended slice waits here, too.
 */
void gate_copy_slowly(CUstream stream);
#define GATE_COPY_BYTES 0x40000 /* less takes no longer than a launch */
#define GATE_COPY_BITS	4

/* The bytes of smaller ones that this thread gave, since the last one that was told. By chance streams share a place: then one is told sooner. */
extern __thread uint32_t gate_copied[1 << GATE_COPY_BITS];

static inline uint32_t *gate_copied_to(CUstream stream)
{
	return &gate_copied[hash_place((uintptr_t)stream, GATE_COPY_BITS)];
}

/* Whether the copy is not worth telling, with those before it. */
static inline bool gate_copy_is_small(CUstream stream, uint64_t bytes)
{
	uint32_t *copied = gate_copied_to(stream);

	if (bytes >= GATE_COPY_BYTES - *copied)
		return false;
	*copied += (uint32_t)bytes;
	return true;
}

/* Before what a stream waits for that is no work: the time of that is not taken for the work's. A suspended slice waits here, too. */
void gate_break_slowly(CUstream stream, uint64_t patience_ns);
/* While slices take turns, what comes behind it waits for it so long at most: a word may be the program's to write, and it must not stand still. */
#define GATE_WORD_NS	 UINT64_C(1000000)
#define GATE_FUNCTION_NS UINT64_C(100000000)

/* The same before it waits for an event, where no other stream of the process has work of which that may be the end. */
void gate_event_slowly(CUstream stream, CUevent event);
static inline void gate_event(CUstream stream, CUevent event)
{
	/* relaxed: as in gate_is_open() */
	if (UNLIKELY(atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_ON))
		gate_event_slowly(stream, event);
}

/*
 * The program is about to wait for work, and has waited: for a stream (or GATE_ANY_STREAM), or is_all: for
 * everything in the current context.
 */
struct gate_wait {
	struct stream_state *state; /* NULL: of the context, or unknown */
	struct meter *meter;	    /* of the device that is waited for; NULL: unknown */
	CUcontext context;	    /* is_all: which was current; NULL: it is not known */
	uint64_t current;	    /* current_since(), before that */
	uint64_t since_ns;
	bool is_watched, is_all;
};
#define GATE_ANY_STREAM ((CUstream)(uintptr_t)-1) /* it is not known which */
void gate_wait_begin_slowly(CUstream stream, bool is_all, struct gate_wait *ret_wait);
void gate_wait_end_slowly(struct gate_wait *wait, CUresult result);

static inline void gate_wait_begin(CUstream stream, bool is_all, struct gate_wait *ret_wait)
{
	ret_wait->is_watched = false;
	/* A thread that waits may come again after a long time. */
	gate_free_passes = 0;
	/* relaxed: as in gate_is_open() */
	if (UNLIKELY(atomic_load_explicit(&gate_mode, memory_order_relaxed) == GATE_ON))
		gate_wait_begin_slowly(stream, is_all, ret_wait);
}

static inline void gate_wait_end(struct gate_wait *wait, CUresult result)
{
	if (UNLIKELY(wait->is_watched))
		gate_wait_end_slowly(wait, result);
}

/* Around the driver's call that ends a stream, and after one that has made one. */
void gate_stream_ends(CUstream stream, struct stream_end *ret_end);
void gate_stream_ended(const struct stream_end *end, CUresult result);
void gate_stream_made(CUstream stream);

/* A capture of the stream is about to begin, in which nothing can tell when what it was given before ends. */
void gate_capture_begins(CUstream stream);

/*
 * The driver is about to be asked for a context of the device: whoever finds it before the driver has answered gives it work that is
 * metered. The slice has it now. One is about to end. And it is gone, with its streams.
 */
struct device;
void gate_context_comes(struct device *device);
void gate_context_made(CUcontext context);
void gate_context_ends(CUcontext context);
void gate_context_ended(struct device *device, CUcontext context);
/* A green one is about to end, or is_gone; its work does not end with it, but with its device's primary one. */
void gate_green_ends(CUcontext context, CUcontext primary, bool is_gone);

/* For a child of fork(). */
void gate_reset_after_fork(void);
