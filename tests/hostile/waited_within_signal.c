/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read, so that the driver's read of them is a signal. Its handler waits for what
 * the stream was given before, in the thread itself or in another one, and only then lets the launch go on: its work is long, and known as short.
 */
#include <pthread.h>

#include "tests/hostile/within_launch.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)

static CUcontext context;

static void *wait_when_asked(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		within_await();
		MUST(cuStreamSynchronize(NULL));
		within_answer();
	}
	return unused;
}

static void handle(int signal_number)
{
	static unsigned count;

	(void)signal_number;
	if (count++ & 1) {
		MUST(cuStreamSynchronize(NULL));
	} else {
		within_ask();
	}
	within_allow();
}

static void attack(void)
{
	CUfunction kernel;
	pthread_t thread;

	within_begin(handle);
	context = served_begin();
	kernel = served_kernel();
	MUST(pthread_create(&thread, NULL, wait_when_asked, NULL));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		served_launch(kernel, NULL, SHORT_NS);
		MUST(within_launch(kernel, NULL, KERNEL_NS));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
