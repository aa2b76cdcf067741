/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process with contexts of device 1 alone has launches of graphs wait for that device's time. Meanwhile it makes a context of device 0, destroys the graphs, and
 * makes others of device 0, which have their handles. Each launch went on to device 0 with the gate of device 1 passed.
 */
#include <pthread.h>

#include "tests/hostile/served.h"

#define LAUNCHES   8
#define BEFORE_NS  (3000 * MS) /* device 1 works for so long */
#define KERNEL_NS  (1000 * MS)
#define PIECE_NS   (5 * MS)
#define SETTLED_NS (500 * MS) /* until all wait */
#define TRIES	   64

static CUcontext contexts[2];
static CUfunction kernels[2];
static CUgraphExec execs[LAUNCHES];

static void begin_context(int device)
{
	MUST(cuCtxCreate_v2(&contexts[device], 0, device));
	kernels[device] = served_kernel();
}

static void *launch(void *exec)
{
	CUstream stream;

	MUST(cuCtxSetCurrent(contexts[1]));
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* It may be refused, as may what comes in its place. */
	(void)cuGraphLaunch(*(CUgraphExec *)exec, stream);
	(void)cuStreamSynchronize(stream);
	return NULL;
}

static void attack(void)
{
	pthread_t threads[LAUNCHES];
	CUstream stream;

	MUST(cuInit(0));
	begin_context(1);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuGraphLaunch(served_graph(kernels[1], BEFORE_NS), stream));
	for (unsigned i = 0; i < LAUNCHES; i++)
		execs[i] = served_graph(kernels[1], MS);
	for (unsigned i = 0; i < LAUNCHES; i++)
		MUST(pthread_create(&threads[i], NULL, launch, &execs[i]));
	served_sleep(SETTLED_NS);
	begin_context(0);
	for (unsigned i = 0; i < LAUNCHES; i++)
		(void)cuGraphExecDestroy(execs[i]);
	for (unsigned i = 0; i < TRIES; i++)
		(void)served_graph(kernels[0], KERNEL_NS);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (CUgraphExec exec = served_graph(kernels[0], PIECE_NS);;) {
		MUST(cuGraphLaunch(exec, stream));
		MUST(cuStreamSynchronize(stream));
	}
}

int main(int argc, char **argv)
{
	return served_main(argv,
		&(struct served){
			.cap_percent = 30, .settle_ms = 1000, .is_of_two = true, .attack = attack});
}
