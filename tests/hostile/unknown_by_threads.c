/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many threads give a graph each that nobody has seen before, of 100 ms. While one runs, the others wait at the gate and keep
 * the turn for it, of which no more was announced than for any new work.
 */
#include <pthread.h>
#include <stddef.h>

#include "tests/hostile/served.h"

#define THREADS	  110
#define KERNEL_NS (100 * MS)

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

static void attack(void)
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

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
