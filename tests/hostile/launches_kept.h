/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel is done, and a signal's handler keeps its thread. Each kernel, which is known as
 * short, is another thread's. Included once.
 */
#pragma once

#include <signal.h>
#include <stdlib.h>

#include "tests/hostile/kernels_of_threads.h"

#define KNOWN	  40
#define KERNEL_NS (100 * MS)
#define WITHIN_NS (5 * MS)

static inline void *launches_kept_give(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
	return unused;
}

/* Each thread has the signal while its kernel runs. */
static inline void launches_kept_by(void (*handler)(int number))
{
	struct sigaction action = {.sa_handler = handler};
	pthread_t thread;

	MUST(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
	MUST(sigaction(SIGALRM, &action, NULL));
	threads_begin(KNOWN);
	for (;;) {
		MUST(pthread_create(&thread, NULL, launches_kept_give, NULL));
		served_sleep(WITHIN_NS);
		pthread_kill(thread, SIGALRM);
		served_sleep(KERNEL_NS - WITHIN_NS);
	}
}
