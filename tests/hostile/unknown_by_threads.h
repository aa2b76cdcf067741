/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads give a graph each that nobody has seen before, all at once, round by round. KERNEL_NS is the program's: of what length each is.
 * Included once.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "tests/hostile/served.h"

#define THREADS 110

static CUcontext context;
static CUstream stream[THREADS];
static CUgraphExec graph[THREADS];

static void *give(void *at)
{
	ptrdiff_t i = (CUgraphExec *)at - graph;

	MUST(cuCtxSetCurrent(context));
	MUST(cuGraphLaunch(graph[i], stream[i]));
	return NULL;
}

static void unknowns_attack(void)
{
	pthread_t threads[THREADS];
	CUfunction kernel;

	context = served_begin();
	for (int i = 0; i < THREADS; i++)
		MUST(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
	for (;;) {
		kernel = served_kernel();
		for (int i = 0; i < THREADS; i++) {
			graph[i] = served_graph(kernel, KERNEL_NS);
			pthread_create(&threads[i], NULL, give, &graph[i]);
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		MUST(cuCtxSynchronize());
	}
}
