/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Silent processes, each with a capture that never ends, and the long kernel in its thread's own stream: the driver records no
 * event of a context then, and no other thread can put one behind the kernel.
 */
#define SILENT_STREAM  CU_STREAM_PER_THREAD
#define SILENT_READY() begin_capture()

static void begin_capture(void);

#include "tests/hostile/silent.h"

static void begin_capture(void)
{
	CUstream captured;

	MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
}

static void be_silent(void)
{
	for (;;)
		served_sleep(1000 * MS);
}
