/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that give their own default stream a short kernel and a long one, which is known as short, and end. Included once. */
#pragma once

#include "tests/hostile/kernels_of_threads.h"

#define KNOWN	  64
#define KERNEL_NS (10 * MS)

static inline void *threads_end_give(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
	return unused;
}

/* One after the other, without an end, beside a capture that another stream has begun. */
static inline void threads_end_beside(bool is_capture_ended)
{
	CUstream stream, other;
	CUgraph graph;

	threads_begin(KNOWN);
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	if (is_capture_ended)
		MUST(cuStreamEndCapture(stream, &graph));
	for (;;) {
		threads_run(threads_end_give);
		/* The library looks at once what has ended. */
		MUST(cuStreamSynchronize(other));
		served_sleep(KERNEL_NS);
	}
}
