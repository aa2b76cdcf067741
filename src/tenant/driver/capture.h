/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a stream is being captured: what is allocated on it then belongs to a graph, and nothing that
 * is launched on it runs. Asked on every stream-ordered allocation, so a process that never captures is
 * not asked about.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/abi/cuda.h"

/* Set before the driver is asked to begin a capture, and never taken back. */
extern _Atomic bool capture_was_begun;

bool capture_is_on_slowly(CUstream stream);

static inline bool capture_is_on(CUstream stream)
{
	/* relaxed: a thread that uses a captured stream has been told by the one that began */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return false;
	return capture_is_on_slowly(stream);
}

/*
 * Which capture takes what is launched on the stream; 0: none does, CAPTURE_UNKNOWN: one does that the driver does not tell
 * from others. Another thread may end it at any time: work was taken by it where the same one is on before and after.
 */
#define CAPTURE_UNKNOWN UINT64_MAX
uint64_t capture_find_slowly(CUstream stream);

static inline uint64_t capture_find(CUstream stream)
{
	/* relaxed: as above */
	if (LIKELY(!atomic_load_explicit(&capture_was_begun, memory_order_relaxed)))
		return 0;
	return capture_find_slowly(stream);
}
