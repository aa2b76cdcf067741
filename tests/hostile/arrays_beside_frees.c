/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes make arrays, which share chunks that nobody can name, while another one of the slice allocates a chunk and frees it again and
 * again, so that what is free on the device often seems not to have changed. Then they wait, and the other takes what is left.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "tests/hostile/hostile.h"

#define MAKERS 3
#define ARRAYS 500

static struct shared {
	_Atomic int begun, done, over;
} * shared;

static void make(void)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor = {.Width = 1024,
		.Height = 352,
		.Format = CU_AD_FORMAT_UNSIGNED_INT32,
		.NumChannels = 1};
	CUarray array;

	hostile_begin();
	atomic_fetch_add(&shared->begun, 1);
	while (atomic_load(&shared->begun) <= MAKERS)
		usleep(100);
	for (int i = 0; i < ARRAYS; i++) {
		cuArray3DCreate_v2(&array, &descriptor);
		usleep(50);
	}
	atomic_fetch_add(&shared->done, 1);
	while (!atomic_load(&shared->over))
		usleep(10000);
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
		make();
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
	return hostile_main(argv, &(struct hostile){.quota_bytes = 6 * GIB, .attack = attack});
}
