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
#include "gpu/abi/cuda.h"

struct track;

/* Work on its way to the driver. */
struct gate_pass {
	struct track *track; /* NULL: it is not metered */
	uint32_t guess;	     /* which guess it was expected by */
	bool is_measured;    /* by itself */
};

/* Whether any work of this process is metered; changed by gate_refresh(). */
extern _Atomic bool gate_is_on;

/*
 * What work is like: equal keys are expected to take equal time. object is a function, a graph, or a
 * number of one's own for copies and the like; size what makes a difference (blocks, a power of bytes).
 */
static inline uint64_t gate_key(const void *object, uint64_t size)
{
	return ((uintptr_t)object >> 4 ^ size * UINT64_C(0x9e3779b97f4a7c15)) | 1;
}

void gate_enter_slowly(CUstream stream, uint64_t key, struct gate_pass *ret_pass);
void gate_leave_slowly(struct gate_pass *pass, CUresult result);

/*
 * Before work is given to the stream: waits until the slice may have it. stream is as the driver means
 * it: CU_STREAM_PER_THREAD where a name ending in _ptsz was given none.
 */
static inline void gate_enter(CUstream stream, uint64_t key, struct gate_pass *ret_pass)
{
	/* relaxed: a limit seen late is a limit of a moment ago */
	if (LIKELY(!atomic_load_explicit(&gate_is_on, memory_order_relaxed)))
		ret_pass->track = NULL;
	else
		gate_enter_slowly(stream, key, ret_pass);
}

/* After the driver has answered. */
static inline void gate_leave(struct gate_pass *pass, CUresult result)
{
	if (UNLIKELY(pass->track != NULL))
		gate_leave_slowly(pass, result);
}

/*
 * Around work that holds a copy engine and not the device's processors: it is not metered, and the time
 * that it takes is not taken for that of the work around it. A suspended slice waits here, too.
 */
void gate_copy_slowly(CUstream stream, uint64_t bytes);
#define GATE_COPY_BYTES 0x40000 /* less takes no longer than a launch */
static inline void gate_copy(CUstream stream, uint64_t bytes)
{
	/* relaxed: as above */
	if (UNLIKELY(atomic_load_explicit(&gate_is_on, memory_order_relaxed)))
		gate_copy_slowly(stream, bytes);
}

/*
 * The program is about to wait for work, and has waited. stream is what it waits for; where it waits for
 * all of the context (or it is not known), gate_wait_all().
 */
struct gate_wait {
	struct track *track;
	uint64_t since_ns;
	bool is_all;
};
void gate_wait_begin_slowly(CUstream stream, bool is_all, struct gate_wait *ret_wait);
void gate_wait_end_slowly(struct gate_wait *wait, CUresult result);

static inline void gate_wait_begin(CUstream stream, bool is_all, struct gate_wait *ret_wait)
{
	ret_wait->since_ns = 0;
	/* relaxed: as above */
	if (UNLIKELY(atomic_load_explicit(&gate_is_on, memory_order_relaxed)))
		gate_wait_begin_slowly(stream, is_all, ret_wait);
}

static inline void gate_wait_end(struct gate_wait *wait, CUresult result)
{
	if (UNLIKELY(wait->since_ns != 0))
		gate_wait_end_slowly(wait, result);
}

/* A stream goes: what it was given is settled before. */
void gate_stream_ends(CUstream stream);
