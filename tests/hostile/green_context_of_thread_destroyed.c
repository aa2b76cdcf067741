/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread's own default stream in a green context has long work, which is known as short, when another thread destroys that context: an
 * event that this thread records is in its own stream.
 */
#include <pthread.h>
#include <semaphore.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)

static CUcontext context;
static CUfunction kernel;
static sem_t asked, answered;

static CUdevResourceDesc describe(void)
{
	CUdevResourceDesc description;
	CUdevResource all, some;
	unsigned int count = 1;

	MUST(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	MUST(cuDevSmResourceSplitByCount(&some, &count, &all, NULL, 0, 8));
	counted_fill(some.sm.smCount);
	MUST(cuDevResourceGenerateDesc(&description, &some, 1));
	return description;
}

static void *give_each(void *unused)
{
	for (;;) {
		MUST(sem_wait(&asked));
		MUST(cuCtxSetCurrent(context));
		served_launch(kernel, CU_STREAM_PER_THREAD, SHORT_NS);
		served_launch(kernel, CU_STREAM_PER_THREAD, KERNEL_NS);
		MUST(sem_post(&answered));
	}
	return unused;
}

static void attack(void)
{
	CUdevResourceDesc description;
	CUcontext primary;
	pthread_t thread;
	CUgreenCtx green;

	MUST(sem_init(&asked, 0, 0));
	MUST(sem_init(&answered, 0, 0));
	MUST(cuInit(0));
	MUST(cuDevicePrimaryCtxRetain(&primary, 0));
	MUST(cuCtxSetCurrent(primary));
	kernel = served_kernel();
	served_make_known(kernel, KNOWN, SHORT_NS);
	description = describe();
	MUST(pthread_create(&thread, NULL, give_each, NULL));
	for (;;) {
		MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
		MUST(cuCtxFromGreenCtx(&context, green));
		MUST(sem_post(&asked));
		MUST(sem_wait(&answered));
		MUST(cuGreenCtxDestroy(green));
		served_sleep(SHORT_NS + MS / 20);
		MUST(cuStreamSynchronize(NULL));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

static const char *needs(void)
{
	return counted_is_on_card()
		       ? "it needs a driver with threads' own streams in green contexts"
		       : NULL;
}

int main(int argc, char **argv)
{
	return served_main(
		argv, &(struct served){.cap_percent = 30, .needs = needs, .attack = attack});
}
