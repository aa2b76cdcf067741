/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While a context that the driver has made is measured and booked, a handler of a signal finds it current, and another thread gives
 * it work: nothing was metered in a process until its first context was known.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/counted.h"
#include "tests/hostile/served.h"

#define KERNEL_NS (10 * MS)
#define KERNELS	  100
#define FRAMES	  32
#define STEP_NS	  (MS / 4) /* a thread that spins stops the virtual clock */

static pthread_t maker;
static sem_t asked;
static _Atomic bool is_making, is_made, is_caught, is_given;
static CUcontext caught;

/* The driver has locks of its own. */
static bool is_in_driver(void)
{
	void *frames[FRAMES];
	int count = backtrace(frames, FRAMES);
	Dl_info info;

	for (int i = 0; i < count; i++)
		if (dladdr(frames[i], &info) && info.dli_fname && strstr(info.dli_fname, "libcuda"))
			return true;
	return false;
}

static void hand_over(CUcontext context)
{
	caught = context;
	is_caught = true;
	MUST(sem_post(&asked));
}

static void handle(int number)
{
	CUcontext context = NULL;

	if (!is_making || is_made || is_caught || is_in_driver() ||
		cuCtxGetCurrent(&context) != CUDA_SUCCESS || !context)
		return;
	hand_over(context);
	for (unsigned i = 0; i < 40 && !is_given; i++)
		served_sleep(MS);
}

static void *give(void *unused)
{
	CUfunction kernel;

	MUST(sem_wait(&asked));
	MUST(cuCtxSetCurrent(caught));
	kernel = served_kernel();
	for (unsigned i = 0; i < KERNELS; i++)
		served_launch(kernel, NULL, KERNEL_NS);
	is_given = true;
	return unused;
}

static void *disturb(void *unused)
{
	while (!is_made && !is_caught) {
		if (is_making)
			pthread_kill(maker, SIGALRM);
		served_sleep(STEP_NS);
	}
	return unused;
}

static void run(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
	pthread_t giver, disturber;
	CUcontext context;

	maker = pthread_self();
	(void)is_in_driver(); /* the first backtrace() loads a library */
	MUST(sem_init(&asked, 0, 0));
	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(cuInit(0));
	MUST(pthread_create(&giver, NULL, give, NULL));
	MUST(pthread_create(&disturber, NULL, disturb, NULL));
	served_sleep(MS);
	is_making = true;
	MUST(cuCtxCreate_v2(&context, 0, 0));
	is_made = true;
	MUST(pthread_join(disturber, NULL));
	if (!is_caught)
		hand_over(context);
	MUST(pthread_join(giver, NULL));
	while (cuStreamQuery(NULL) != CUDA_SUCCESS)
		served_sleep(5 * MS);
}

static void attack(void)
{
	served_one_by_one(run);
}

int main(int argc, char **argv)
{
	return served_main(argv, &(struct served){.cap_percent = 30,
					 .settle_ms = 3000,
					 .slow_call = "nvmlDeviceGetComputeRunningProcesses_v3",
					 .attack = attack});
}
