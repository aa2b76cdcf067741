/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parameters of a launch lie in a page that nobody may read, so that the driver's read of them is a signal. Its handler waits for what
 * the stream was given before, in the thread itself or in another one, and only then lets the launch go on: its work is long, and known as short.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KNOWN	   40
#define SHORT_NS   150000
#define KERNEL_NS  (40 * MS)
#define PAGE_BYTES 4096

static CUcontext context;
static sem_t asked, answered;
static void *page;

static void *wait_when_asked(void *unused)
{
	MUST(cuCtxSetCurrent(context));
	for (;;) {
		MUST(sem_wait(&asked));
		MUST(cuStreamSynchronize(NULL));
		MUST(sem_post(&answered));
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
		MUST(sem_post(&asked));
		MUST(sem_wait(&answered));
	}
	MUST(mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE));
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_NODEFER};
	CUDA_KERNEL_NODE_PARAMS_v2 node;
	CUfunction kernel;
	pthread_t thread;

	page = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(page == MAP_FAILED);
	MUST(sem_init(&asked, 0, 0));
	MUST(sem_init(&answered, 0, 0));
	MUST(sigaction(SIGSEGV, &action, NULL));
	context = served_begin();
	kernel = served_kernel();
	MUST(pthread_create(&thread, NULL, wait_when_asked, NULL));
	served_make_known(kernel, KNOWN, SHORT_NS);
	for (;;) {
		served_launch(kernel, NULL, SHORT_NS);
		node = counted_node(kernel, KERNEL_NS);
		memcpy(page, node.kernelParams, 2 * sizeof(void *));
		MUST(mprotect(page, PAGE_BYTES, PROT_NONE));
		MUST(cuLaunchKernel(
			kernel, node.gridDimX, 1, 1, node.blockDimX, 1, 1, 0, NULL, page, NULL));
		served_sleep(KERNEL_NS + MS / 2);
	}
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30, .attack = attack});
}
