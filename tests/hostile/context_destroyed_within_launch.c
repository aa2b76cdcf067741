/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read. While the driver reads them, the program's handler, or another
 * thread that it waits for, destroys the context of the launch and makes another one, which has the same handle. The launch
 * goes on in that one, whose streams the library has not seen yet.
 */
#include <pthread.h>
#include <stdbool.h>

#include "tests/hostile/within_launch.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)

static CUcontext first, second;
static unsigned rounds;

static void *exchange(void *unused)
{
	MUST(cuCtxDestroy_v2(first));
	MUST(cuCtxCreate_v2(&first, 0, 0));
	return unused;
}

static void handle(int number)
{
	pthread_t thread;
	/* A context that a thread has current is none that can be made anew. The library may refuse it. */
	bool stays = cuCtxSetCurrent(second) != CUDA_SUCCESS;

	if (stays || rounds % 2) {
		MUST(pthread_create(&thread, NULL, exchange, NULL));
		MUST(pthread_join(thread, NULL));
	} else {
		exchange(NULL);
	}
	within_allow();
}

static void attack(void)
{
	CUfunction kernel;

	second = served_begin();
	first = served_context();
	within_begin(handle);
	for (;; rounds++) {
		MUST(cuCtxSetCurrent(first));
		kernel = served_kernel();
		served_make_known(kernel, KNOWN, SHORT_NS);
		/* A driver may refuse it, as the context is gone. */
		(void)within_launch(kernel, NULL, KERNEL_NS);
		MUST(cuCtxSetCurrent(second));
		MUST(cuStreamSynchronize(NULL));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

static const char *needs(void)
{
	return counted_is_on_card() ? "it needs a driver that bears contexts that are gone" : NULL;
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .needs = needs, .attack = attack});
}
