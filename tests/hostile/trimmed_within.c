/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph whose memory is in place is launched again, which reserves nothing, and the thread is stopped in the call by a signal's
 * handler that sleeps. Another thread trims the graphs' memory, and takes what that leaves; the launch takes it again.
 *
 * The trim waited 50 ms for the launch, and was done then: 3,130 MiB were held in a slice of 2,048. Now it does nothing.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tests/hostile/hostile.h"

#define BLOCK_BYTES (1300 * MIB)
#define STOPPED_US  300000

static CUcontext context;
static CUgraphExec exec;
static CUstream stream;
static _Atomic bool is_launching;

static void rest(int number)
{
	(void)number;
	usleep(STOPPED_US);
}

static void *launch(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	is_launching = true;
	cuGraphLaunch(exec, stream);
	cuStreamSynchronize(stream);
	return unused;
}

/* The graph allocates a block and frees it. */
static void make(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
		.bytesize = BLOCK_BYTES};
	CUgraphNode allocated, freed;
	CUgraph graph;

	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuGraphCreate(&graph, 0));
	MUST(cuGraphAddMemAllocNode(&allocated, graph, NULL, 0, &params));
	MUST(cuGraphAddMemFreeNode(&freed, graph, &allocated, 1, params.dptr));
	MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 2; i++) {
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

static void attack(void)
{
	CUdeviceptr block;
	pthread_t thread;

	context = hostile_begin();
	MUST(signal(SIGUSR1, rest) == SIG_ERR);
	make();
	MUST(pthread_create(&thread, NULL, launch, NULL));
	while (!is_launching)
		usleep(100);
	usleep(20000);
	MUST(pthread_kill(thread, SIGUSR1));
	usleep(20000);
	MUST(cuDeviceGraphMemTrim(0));
	cuMemAlloc_v2(&block, BLOCK_BYTES);
	MUST(pthread_join(thread, NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB,
					  .slow_calls = {"cuGraphLaunch"},
					  .is_slow_only = true,
					  .attack = attack});
}
