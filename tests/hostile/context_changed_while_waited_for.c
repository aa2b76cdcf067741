/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread gives its own default stream of one context long work, which is known as short, and ends while a capture is under way, so that no
 * event tells of that work. The program waits for another context, and a signal's handler makes the first one current meanwhile: what it has
 * is not waited for.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define WAIT_NS	  (2 * MS)
#define KERNEL_NS (40 * MS)
#define WITHIN_NS 300000

static CUcontext first, second;
static CUfunction kernel;
static pthread_t waiter;
static _Atomic int is_waiting;

static void *interrupt(void *unused)
{
	for (;;) {
		served_sleep(WITHIN_NS);
		if (atomic_exchange(&is_waiting, 0))
			MUST(pthread_kill(waiter, SIGALRM));
	}
	return unused;
}

static void *give(void *unused)
{
	MUST(cuCtxSetCurrent(first));
	served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
	served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
	return unused;
}

/* The library may refuse it. */
static void handle(int number)
{
	(void)number;
	cuCtxSetCurrent(first);
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
	CUfunction other;
	pthread_t thread;
	CUstream stream;

	first = served_begin();
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	second = served_context();
	other = served_kernel();
	served_make_known(other, KNOWN, WAIT_NS);
	waiter = pthread_self();
	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(pthread_create(&thread, NULL, interrupt, NULL));
	for (;;) {
		MUST(pthread_create(&thread, NULL, give, NULL));
		MUST(pthread_join(thread, NULL));
		MUST(cuCtxSetCurrent(second));
		served_launch(other, NULL, WAIT_NS);
		is_waiting = 1;
		MUST(cuCtxSynchronize());
		is_waiting = 0;
		served_sleep(KERNEL_NS);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
