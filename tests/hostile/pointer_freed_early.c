/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small block is allocated, and a signal stops its thread in the call. Another one frees the block by the address that the
 * driver gives next, and allocates a large one there.
 *
 * Where the first thread was stopped between the driver's answer and the books, it entered its block in the place of the large
 * one, which was given back then: 2.7 GiB were held in a slice of 2. Now what may have been entered by a later call stays charged.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tests/hostile/hostile.h"

#define SMALL_BYTES (4 * MIB)
#define LARGE_BYTES GIB
#define STOP_NS	    UINT64_C(1000000)
#define TRY_NS	    UINT64_C(3000000000)
#define DELAYS	    2000 /* turns of a loop */

static CUcontext context;
static CUdeviceptr place;
static _Atomic bool is_stopped, may_go, is_over;
static _Atomic unsigned asked, answered;

static void stop(int signal)
{
	uint64_t until_ns = clock_now_ns() + STOP_NS;

	atomic_store(&is_stopped, true);
	while (!atomic_load(&may_go) && clock_now_ns() < until_ns)
		;
}

static void *allocate(void *unused)
{
	CUdeviceptr block;

	MUST(cuCtxSetCurrent(context));
	while (!atomic_load(&is_over)) {
		while (atomic_load(&asked) == atomic_load(&answered) && !atomic_load(&is_over))
			;
		if (atomic_load(&is_over))
			break;
		if (cuMemAlloc_v2(&block, SMALL_BYTES) == CUDA_SUCCESS && block != place)
			cuMemFree_v2(block);
		atomic_fetch_add(&answered, 1);
	}
	return unused;
}

static uint64_t books(void)
{
	size_t free, total;

	MUST(cuMemGetInfo_v2(&free, &total));
	return total - free;
}

/* Whether the large block is there and not charged. */
static bool try(pthread_t thread, unsigned delay)
{
	uint64_t before = books();
	CUdeviceptr large = 0;
	CUresult r;

	atomic_store(&is_stopped, false);
	atomic_store(&may_go, false);
	atomic_fetch_add(&asked, 1);
	for (volatile unsigned i = 0; i < delay; i++)
		;
	MUST(pthread_kill(thread, SIGUSR1));
	while (!atomic_load(&is_stopped))
		;
	r = cuMemFree_v2(place);
	if (r == CUDA_SUCCESS)
		r = cuMemAlloc_v2(&large, LARGE_BYTES);
	atomic_store(&may_go, true);
	while (atomic_load(&asked) != atomic_load(&answered))
		;
	if (r == CUDA_SUCCESS && books() < before + LARGE_BYTES / 2)
		return true;
	if (r == CUDA_SUCCESS)
		cuMemFree_v2(large);
	cuMemFree_v2(place);
	return false;
}

static void attack(void)
{
	struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
	uint64_t until_ns;
	CUdeviceptr block;
	pthread_t thread;

	context = hostile_begin();
	sigaction(SIGUSR1, &action, NULL);
	MUST(cuMemAlloc_v2(&place, SMALL_BYTES));
	MUST(cuMemFree_v2(place));
	MUST(pthread_create(&thread, NULL, allocate, NULL));
	until_ns = clock_now_ns() + TRY_NS;
	while (clock_now_ns() < until_ns && !try(thread, (unsigned)rand() % DELAYS))
		;
	cuMemAlloc_v2(&block, 1200 * MIB);
	cuMemAlloc_v2(&block, GIB);
	hostile_look();
	atomic_store(&is_over, true);
	MUST(pthread_join(thread, NULL));
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
