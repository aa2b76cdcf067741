/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ways of threads that give kernels of another time than they are known by, each to its own default stream: what these programs have in
 * common. Included once.
 */
#pragma once

#include <pthread.h>

#include "tests/hostile/served.h"

#define SHORT_NS 20000 /* as which a kernel is known */

static CUcontext context;
static CUfunction kernel;

/* A context is current, and the kernel known after so many pieces. */
static inline void threads_begin(unsigned pieces)
{
	context = served_begin();
	kernel = served_kernel();
	served_make_known(kernel, pieces, SHORT_NS);
}

static inline void threads_run(void *(*work)(void *unused))
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, work, NULL));
	MUST(pthread_join(thread, NULL));
}
