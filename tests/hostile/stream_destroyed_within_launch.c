/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read. While the driver reads them, the program's handler has another
 * thread destroy the stream, and then lets the launch go on. The stream has ended for all who ask for it, and its work has not; nor
 * does the handle tell more where a new stream has it at once.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  40
#define SHORT_NS  150000
#define KERNEL_NS (40 * MS)
#define PAGE	  4096

static CUcontext context;
static CUstream stream, next;
static sem_t asked, answered;
static void *page;
static unsigned rounds;

static void *destroy_each(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		MUST(sem_wait(&asked));
		MUST(cuStreamDestroy_v2(stream));
		next = NULL;
		if (rounds % 2)
			MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
		MUST(sem_post(&answered));
	}
	return unused;
}

static void handle(int number)
{
	MUST(sem_post(&asked));
	MUST(sem_wait(&answered));
	MUST(mprotect(page, PAGE, PROT_READ | PROT_WRITE));
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	CUfunction kernel;
	pthread_t thread;
	CUstream other;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page == MAP_FAILED);
	MUST(sem_init(&asked, 0, 0));
	MUST(sem_init(&answered, 0, 0));
	context = served_begin();
	kernel = served_kernel();
	MUST(sigaction(SIGSEGV, &action, NULL));
	MUST(pthread_create(&thread, NULL, destroy_each, NULL));
	MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;; rounds++) {
		if (!next)
			MUST(cuStreamCreate(&next, CU_STREAM_NON_BLOCKING));
		stream = next;
		node = counted_node(kernel, KERNEL_NS);
		memcpy(page, node.kernelParams, 2 * sizeof(void *));
		MUST(mprotect(page, PAGE, PROT_NONE));
		/* A driver may refuse it, as the stream is gone. */
		(void)cuLaunchKernel(
			kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, stream, page, NULL);
		MUST(cuStreamSynchronize(other));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
