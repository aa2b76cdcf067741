/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls cost on this machine: one line a case, its name and nanoseconds an operation. Run with
 * and without the tenant library by bench/run.sh, which compares.
 *
 * Each figure is the median of several batches, so that one interruption does not show.
 *	overhead	all cases
 *	overhead init	cuInit alone, and nothing printed: to be started many times
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/abi/cuda.h"

extern cuInit_fn cuInit;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuCtxSynchronize_fn cuCtxSynchronize;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemFree_v2_fn cuMemFree_v2;
extern cuMemAllocAsync_fn cuMemAllocAsync;
extern cuMemFreeAsync_fn cuMemFreeAsync;
extern cuMemCreate_fn cuMemCreate;
extern cuMemRelease_fn cuMemRelease;
extern cuMemAddressReserve_fn cuMemAddressReserve;
extern cuMemMap_fn cuMemMap;
extern cuMemUnmap_fn cuMemUnmap;
extern cuMemGetInfo_v2_fn cuMemGetInfo_v2;
extern cuDeviceGetMemPool_fn cuDeviceGetMemPool;
extern cuMemPoolSetAttribute_fn cuMemPoolSetAttribute;
extern cuModuleLoadData_fn cuModuleLoadData;
extern cuModuleGetFunction_fn cuModuleGetFunction;
extern cuLaunchKernel_fn cuLaunchKernel;
extern cuGetProcAddress_v2_fn cuGetProcAddress_v2;

#define BATCHES	     15
#define KIB	     ((size_t)1 << 10)
#define MIB	     ((size_t)1 << 20)
#define LIVE_MOST    100000
#define THREADS_MOST 64

static const char kernel[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			     ".visible .entry nothing()\n{\n\tret;\n}\n";

static CUdeviceptr live[LIVE_MOST];
static CUfunction nothing;
static void *libc;

static void need(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "overhead: %s: error %d\n", what, (int)r);
	exit(1);
}

static void pair(size_t bytes)
{
	CUdeviceptr p;

	need(cuMemAlloc_v2(&p, bytes), "cuMemAlloc");
	need(cuMemFree_v2(p), "cuMemFree");
}

static void pair_4k(void)
{
	pair(4 * KIB);
}

static void pair_2m(void)
{
	pair(2 * MIB);
}

static void pair_async(void)
{
	CUdeviceptr p;

	need(cuMemAllocAsync(&p, MIB, NULL), "cuMemAllocAsync");
	need(cuMemFreeAsync(p, NULL), "cuMemFreeAsync");
}

static CUdeviceptr window;

static void pair_vmm(void)
{
	const CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle handle;

	need(cuMemCreate(&handle, 2 * MIB, &props, 0), "cuMemCreate");
	need(cuMemMap(window, 2 * MIB, 0, handle, 0), "cuMemMap");
	need(cuMemUnmap(window, 2 * MIB), "cuMemUnmap");
	need(cuMemRelease(handle), "cuMemRelease");
}

static void launch(void)
{
	need(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), "cuLaunchKernel");
}

static void ask_proc(void)
{
	CUdriverProcAddressQueryResult status;
	void *found;

	need(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status), "cuGetProcAddress");
}

static void ask_foreign(void)
{
	if (!dlsym(libc, "strtol"))
		exit(1);
}

static void ask_info(void)
{
	size_t free_bytes, total_bytes;

	need(cuMemGetInfo_v2(&free_bytes, &total_bytes), "cuMemGetInfo");
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void measure(const char *name, void (*operation)(void), unsigned count)
{
	double ns[BATCHES];

	for (unsigned i = 0; i < count / 10 + 1; i++)
		operation();
	for (unsigned b = 0; b < BATCHES; b++) {
		uint64_t start_ns;

		need(cuCtxSynchronize(), "cuCtxSynchronize");
		start_ns = clock_now_ns();
		for (unsigned i = 0; i < count; i++)
			operation();
		ns[b] = (double)(clock_now_ns() - start_ns) / count;
	}
	qsort(ns, BATCHES, sizeof(ns[0]), compare);
	printf("%s %.1f\n", name, ns[BATCHES / 2]);
	fflush(stdout);
}

/* Plain memory with ever more blocks of 4 KiB alive beside. */
static void measure_live(void)
{
	static const unsigned counts[] = {0, 1000, LIVE_MOST};
	unsigned have = 0;
	char name[64];

	for (unsigned i = 0; i < 3; i++) {
		while (have < counts[i])
			need(cuMemAlloc_v2(&live[have++], 4 * KIB), "cuMemAlloc");
		snprintf(name, sizeof(name), "pair-4k-%u", counts[i]);
		measure(name, pair_4k, 1000);
		snprintf(name, sizeof(name), "pair-2m-%u", counts[i]);
		measure(name, pair_2m, 200);
	}
	while (have > 0)
		need(cuMemFree_v2(live[--have]), "cuMemFree");
}

/* Several threads at once: what one pair takes of each thread's time. */
static CUcontext shared;
static pthread_barrier_t start_line;

static void *work(void *count)
{
	need(cuCtxSetCurrent(shared), "cuCtxSetCurrent");
	pthread_barrier_wait(&start_line);
	for (unsigned i = 0; i < *(unsigned *)count; i++)
		pair_4k();
	pthread_barrier_wait(&start_line);
	return NULL;
}

static void measure_threads(unsigned threads, unsigned count)
{
	pthread_t thread[THREADS_MOST];
	double ns[BATCHES];

	for (unsigned b = 0; b < BATCHES; b++) {
		uint64_t start_ns;

		pthread_barrier_init(&start_line, NULL, threads + 1);
		for (unsigned i = 0; i < threads; i++)
			if (pthread_create(&thread[i], NULL, work, &count))
				exit(1);
		pthread_barrier_wait(&start_line);
		start_ns = clock_now_ns();
		pthread_barrier_wait(&start_line);
		ns[b] = (double)(clock_now_ns() - start_ns) / count / threads;
		for (unsigned i = 0; i < threads; i++)
			pthread_join(thread[i], NULL);
		pthread_barrier_destroy(&start_line);
	}
	qsort(ns, BATCHES, sizeof(ns[0]), compare);
	printf("threads-%u %.1f\n", threads, ns[BATCHES / 2]);
	fflush(stdout);
}

static void keep_pool_warm(void)
{
	cuuint64_t keep = 64 * MIB;
	CUmemoryPool pool;

	need(cuDeviceGetMemPool(&pool, 0), "cuDeviceGetMemPool");
	need(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
		"cuMemPoolSetAttribute");
}

int main(int argc, char **argv)
{
	uint64_t start_ns = clock_now_ns(), init_ns;
	CUcontext context;
	CUmodule module;

	need(cuInit(0), "cuInit");
	init_ns = clock_now_ns() - start_ns;
	printf("init %llu\n", (unsigned long long)init_ns);
	if (argc > 1 && strcmp(argv[1], "init") == 0)
		return 0;
	start_ns = clock_now_ns();
	need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	printf("context %llu\n", (unsigned long long)(clock_now_ns() - start_ns));
	need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	libc = dlopen("libc.so.6", RTLD_NOW);
	measure_live();
	shared = context;
	need(cuMemAlloc_v2(&live[0], 4 * KIB), "cuMemAlloc"); /* keeps the chunk */
	measure_threads(1, 2000);
	measure_threads(8, 500);
	measure_threads(64, 100);
	need(cuMemAddressReserve(&window, 2 * MIB, 0, 0, 0), "cuMemAddressReserve");
	measure("pair-vmm", pair_vmm, 200);
	keep_pool_warm();
	measure("pair-async", pair_async, 2000);
	if (cuModuleLoadData(&module, kernel) == CUDA_SUCCESS &&
		cuModuleGetFunction(&nothing, module, "nothing") == CUDA_SUCCESS)
		measure("launch", launch, 500);
	measure("procaddr", ask_proc, 5000);
	measure("dlsym-foreign", ask_foreign, 5000);
	measure("info", ask_info, 1000);
	return 0;
}
