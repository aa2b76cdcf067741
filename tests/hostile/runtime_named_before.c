/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each of six contexts loads PTX with kernels of its own that are called "malloc" and "vprintf". The slice is filled but for 2 MiB a context. Then six
 * threads load, at once, PTX that calls malloc() and printf().
 *
 * The kernels' names were taken for the device's own runtime, which then counted as being there: for each load 2 MiB were reserved, and the
 * driver took 202 MiB, which stay when the module is unloaded again. 5,294 MiB were held in a slice of 4 GiB. Now what a text defines itself is
 * its own.
 */
#include "tests/hostile/hostile.h"

#define CONTEXTS 6

static const char names[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			    ".visible .entry malloc()\n{\n\tret;\n}\n"
			    ".visible .entry vprintf()\n{\n\tret;\n}\n";
static char real[HOSTILE_CODE_BYTES];
static CUcontext contexts[CONTEXTS];
static pthread_barrier_t barrier;

static void *load(void *index)
{
	CUmodule module;

	MUST(cuCtxSetCurrent(contexts[(uintptr_t)index]));
	pthread_barrier_wait(&barrier);
	cuModuleLoadData(&module, real);
	return NULL;
}

static void attack(void)
{
	pthread_t threads[CONTEXTS];
	CUdeviceptr blocks[CONTEXTS + 1], last;
	CUmodule module;

	hostile_ptx(&(struct hostile_code){.has_heap = true, .has_printf = true}, real);
	MUST(cuInit(0));
	for (int i = 0; i < CONTEXTS; i++) {
		MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
		MUST(cuModuleLoadData(&module, names));
	}
	for (int i = 0; i <= CONTEXTS; i++)
		MUST(cuMemAlloc_v2(&blocks[i], 2 * MIB));
	for (int i = 0; i < 2048 && cuMemAlloc_v2(&last, 2 * MIB) == CUDA_SUCCESS; i++)
		;
	for (int i = 0; i <= CONTEXTS; i++)
		MUST(cuMemFree_v2(blocks[i]));
	MUST(pthread_barrier_init(&barrier, NULL, CONTEXTS));
	for (uintptr_t i = 0; i < CONTEXTS; i++)
		MUST(pthread_create(&threads[i], NULL, load, (void *)i));
	for (int i = 0; i < CONTEXTS; i++)
		MUST(pthread_join(threads[i], NULL));
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 4 * GIB,
					  .is_brief = true,
					  .slow_calls = {"cuModuleLoadData"},
					  .attack = attack});
}
