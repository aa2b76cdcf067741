/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch waits for its slice's time, which another thread has used. Meanwhile a signal's handler makes another context current: the
 * launch goes to that one's default stream. It sets it, puts it on top, or takes away what lies on it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define PAID_NS	  (5 * MS)
#define KERNEL_NS (40 * MS)
#define WITHIN_NS 300000
#define WAYS	  3

static CUcontext first, second;
static CUfunction paid;
static pthread_t waiter;
static _Atomic int is_waiting;
static unsigned way;

static void *pay(void *unused)
{
	CUstream own;

	MUST(cuCtxSetCurrent(first));
	MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	for (;;) {
		served_launch(paid, own, PAID_NS);
		MUST(cuStreamSynchronize(own));
	}
	return unused;
}

static void *interrupt(void *unused)
{
	for (;;) {
		served_sleep(WITHIN_NS);
		if (atomic_exchange(&is_waiting, 0))
			MUST(pthread_kill(waiter, SIGALRM));
	}
	return unused;
}

/* The library may refuse it. */
static void handle(int number)
{
	CUcontext popped;

	(void)number;
	if (way == 0)
		cuCtxSetCurrent(second);
	else if (way == 1)
		cuCtxPushCurrent(second);
	else
		cuCtxPopCurrent(&popped);
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	CUcontext popped;
	CUfunction kernel;
	pthread_t thread;
	CUresult r;

	first = served_begin();
	paid = served_kernel();
	second = served_context();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	waiter = pthread_self();
	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(pthread_create(&thread, NULL, pay, NULL));
	MUST(pthread_create(&thread, NULL, interrupt, NULL));
	for (;; way = (way + 1) % WAYS) {
		while (cuCtxPopCurrent(&popped) == CUDA_SUCCESS)
			;
		/* What the handler takes away is on top of the second one. */
		MUST(cuCtxSetCurrent(way == 2 ? second : first));
		/* A card's driver may refuse it, as the handler was late. */
		if (way == 2 && cuCtxPushCurrent(first) != CUDA_SUCCESS)
			continue;
		node = counted_node(kernel, KERNEL_NS);
		is_waiting = 1;
		r = cuLaunchKernel(kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, NULL,
			node.kernelParams, NULL);
		is_waiting = 0;
		/* Refused where the handler was late: the kernel is the second one's. */
		served_sleep(r == CUDA_SUCCESS ? KERNEL_NS : SHORT_NS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
