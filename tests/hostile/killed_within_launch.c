/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA_LAUNCH_BLOCKING=1: a launch returns when its kernel is done. While the driver reads its parameters another thread waits for what the stream
 * was given before, so that this batch ends; only then the launch, which is known as short, goes on. The process is killed before it returns.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	  20
#define SHORT_NS  20000
#define KERNEL_NS (100 * MS)
#define PAGE	  4096

static CUcontext context;
static sem_t asked, answered;
static void *page;

/* Waits for what was given before, and kills the process when the kernel should be done. */
static void *wait_when_asked(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	MUST(sem_wait(&asked));
	MUST(cuStreamSynchronize(NULL));
	MUST(sem_post(&answered));
	served_sleep(KERNEL_NS - MS);
	raise(SIGKILL);
	return unused;
}

static void handle(int number)
{
	(void)number;
	MUST(sem_post(&asked));
	MUST(sem_wait(&answered));
	MUST(mprotect(page, PAGE, PROT_READ | PROT_WRITE));
}

static void run_one(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	CUfunction kernel;
	pthread_t thread;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page == MAP_FAILED);
	MUST(sem_init(&asked, 0, 0));
	MUST(sem_init(&answered, 0, 0));
	MUST(sigaction(SIGSEGV, &action, NULL));
	context = served_begin();
	kernel = served_kernel();
	MUST(pthread_create(&thread, NULL, wait_when_asked, NULL));
	served_make_known(kernel, KNOWN, SHORT_NS);
	served_launch(kernel, NULL, SHORT_NS);
	node = counted_node(kernel, KERNEL_NS);
	memcpy(page, node.kernelParams, 2 * sizeof(void *));
	MUST(mprotect(page, PAGE, PROT_NONE));
	MUST(cuLaunchKernel(
		kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, NULL, page, NULL));
	MUST(pthread_join(thread, NULL));
}

static void attack(void)
{
	MUST(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
	served_one_by_one(run_one);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
