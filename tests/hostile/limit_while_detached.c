/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A reference to a context is given back, and is not its last. Until the driver has answered the context is in no books, and
 * another thread raises its limit of the stack. So with one context after the other.
 *
 * What contexts that are not known have of frames was booked for all of them as for one, so the first one's room alone was
 * charged: up to 5.2 GiB were held in a slice of 4. Now each has its own.
 */
#include <pthread.h>

#include "tests/hostile/hostile.h"

#define CONTEXTS    3
#define STACK_BYTES 8192 /* 2.1 GiB for the threads of an H200 */

static void *raise_limit(void *context)
{
	MUST(cuCtxSetCurrent(context));
	usleep(20000);
	cuCtxSetLimit(CU_LIMIT_STACK_SIZE, STACK_BYTES);
	return NULL;
}

static void attack(void)
{
	CUcontext context, same;
	pthread_t thread;

	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++) {
		if (cuCtxCreate_v2(&context, 0, 0) != CUDA_SUCCESS)
			break;
		MUST(cuCtxAttach(&same, 0));
		MUST(pthread_create(&thread, NULL, raise_limit, context));
		MUST(cuCtxDetach(same));
		MUST(pthread_join(thread, NULL));
		hostile_look();
	}
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .slow_calls = {"cuCtxDetach"},
					  .is_slow_only = true,
					  .attack = attack});
}
