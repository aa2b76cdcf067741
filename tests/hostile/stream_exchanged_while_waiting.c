/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch waits for its slice's time, which another thread has used. Meanwhile its stream is destroyed, and one is made that has the same
 * handle: the launch is that one's.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define PAID_NS	  (5 * MS)
#define KERNEL_NS (40 * MS)
#define WITHIN_NS 300000

static CUcontext context;
static CUfunction kernel, paid;
static _Atomic(CUstream) stream;
static _Atomic int is_waiting;

static void *pay(void *unused)
{
	CUstream own;

	MUST(cuCtxSetCurrent(context));
	MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	for (;;) {
		served_launch(paid, own, PAID_NS);
		MUST(cuStreamSynchronize(own));
	}
	return unused;
}

static void *exchange(void *unused)
{
	CUstream made;

	MUST(cuCtxSetCurrent(context));
	for (;;) {
		served_sleep(WITHIN_NS);
		if (!atomic_exchange(&is_waiting, 0))
			continue;
		MUST(cuStreamDestroy_v2(stream));
		MUST(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
		stream = made;
	}
	return unused;
}

static void attack(void)
{
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	pthread_t thread;
	CUstream made;
	CUresult r;

	context = served_begin();
	kernel = served_kernel();
	paid = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	MUST(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
	stream = made;
	MUST(pthread_create(&thread, NULL, pay, NULL));
	MUST(pthread_create(&thread, NULL, exchange, NULL));
	for (;;) {
		node = counted_node(kernel, KERNEL_NS);
		is_waiting = 1;
		r = cuLaunchKernel(kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, stream,
			node.kernelParams, NULL);
		is_waiting = 0;
		if (r == CUDA_SUCCESS)
			served_sleep(KERNEL_NS);
	}
}

static const char *needs(void)
{
	return counted_is_on_card() ? "it needs a driver that bears a stream that is gone" : NULL;
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .needs = needs, .attack = attack});
}
