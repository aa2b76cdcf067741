/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread is in a call that gives long work, which is known as short; meanwhile another one waits for what the stream was given
 * before. That the wait ended says nothing of the long work, which has not reached the driver.
 */
#include <pthread.h>
#include <semaphore.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  20000
#define KERNEL_NS (40 * MS)
#define WITHIN_NS 5000 /* the other thread comes when the call has begun */

static CUcontext context;
static sem_t rounds;

static void *wait_for_each(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		MUST(sem_wait(&rounds));
		served_sleep(WITHIN_NS);
		MUST(cuStreamSynchronize(NULL));
	}
	return unused;
}

static void attack(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	CUgraphNode made;
	CUgraphExec graph;
	CUfunction kernel;
	pthread_t thread;
	CUgraph nodes;

	context = served_begin();
	kernel = served_kernel();
	node = counted_node(kernel, SHORT_NS);
	MUST(cuGraphCreate(&nodes, 0));
	MUST(cuGraphAddKernelNode_v2(&made, nodes, NULL, 0, &node));
	MUST(cuGraphInstantiateWithFlags(&graph, nodes, 0));
	MUST(sem_init(&rounds, 0, 0));
	MUST(pthread_create(&thread, NULL, wait_for_each, NULL));
	for (int i = 0; i < KNOWN; i++) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(cuGraphLaunch(graph, NULL));
		MUST(cuStreamSynchronize(NULL));
	}
	node = counted_node(kernel, KERNEL_NS);
	MUST(cuGraphExecKernelNodeSetParams_v2(graph, made, &node));
	for (;;) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(sem_post(&rounds));
		MUST(cuGraphLaunch(graph, NULL));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){
			      .cap_percent = 30, .slow_call = "cuGraphLaunch", .attack = attack});
}
