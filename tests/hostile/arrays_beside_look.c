/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As arrays_beside_frees, while a thread of each process stays in the comparison with NVML's figure, by a handler of a signal that waits.
 *
 * Nobody else could compare, and what the arrays took was in no books for as long. Now they stay charged, but for the one of that thread.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/hostile/hostile.h"

#define MAKERS	3
#define THREADS 8
#define ARRAYS	60 /* of each thread */
#define LONG_NS 10000000

static struct shared {
	_Atomic int begun, done, over;
} * shared;

static CUcontext context;
static __thread bool is_comparing;
static _Atomic bool is_staying;

/* As the simulated driver takes its time: a handler of a signal would come to it then. */
__attribute__((visibility("default"))) int nanosleep(
	const struct timespec *duration, struct timespec *left)
{
	if (is_comparing && duration->tv_nsec >= LONG_NS) {
		atomic_store(&is_staying, true);
		while (!atomic_load(&shared->over))
			usleep(10000);
	}
	return (int)syscall(SYS_nanosleep, duration, left);
}

static CUresult make_one(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = 1024,
		.Height = 352,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1};
	CUarray array;

	return cuArray3DCreate_v2(&array, &descriptor);
}

static void *compare(void *argument)
{
	MUST(cuCtxSetCurrent(context));
	is_comparing = true;
	while (!atomic_load(&is_staying) && !atomic_load(&shared->over)) {
		make_one();
		usleep(1000);
	}
	return argument;
}

static void *make(void *argument)
{
	MUST(cuCtxSetCurrent(context));
	for (int i = 0; i < ARRAYS; i++)
		make_one();
	return argument;
}

static void make_all(void)
{
	pthread_t comparing, makers[THREADS];

	context = hostile_begin();
	atomic_fetch_add(&shared->begun, 1);
	while (atomic_load(&shared->begun) <= MAKERS)
		usleep(100);
	MUST(pthread_create(&comparing, NULL, compare, NULL));
	/* Without the library nobody asks NVML. */
	for (int i = 0; i < 1000 && getenv("LD_PRELOAD") && !atomic_load(&is_staying); i++)
		usleep(1000);
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_create(&makers[i], NULL, make, NULL));
	for (int i = 0; i < THREADS; i++)
		MUST(pthread_join(makers[i], NULL));
	atomic_fetch_add(&shared->done, 1);
	MUST(pthread_join(comparing, NULL));
}

static void take_the_rest(void)
{
	CUdeviceptr at;

	hostile_begin();
	atomic_fetch_add(&shared->begun, 1);
	while (atomic_load(&shared->done) < MAKERS)
		if (cuMemAlloc_v2(&at, 2 * MIB) == CUDA_SUCCESS)
			cuMemFree_v2(at);
	for (int i = 0; i < 5000 && cuMemAlloc_v2(&at, 2 * MIB) == CUDA_SUCCESS; i++)
		;
	hostile_look();
	atomic_store(&shared->over, 1);
}

static void run(int index)
{
	if (index < MAKERS)
		make_all();
	else
		take_the_rest();
}

static void attack(void)
{
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(shared == MAP_FAILED);
	hostile_processes(MAKERS + 1, run);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 6 * GIB,
					  .allowance_bytes = MAKERS * 2 * MIB,
					  .slow_calls = {"nvmlDeviceGetComputeRunningProcesses_v3"},
					  .attack = attack});
}
