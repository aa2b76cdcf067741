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
extern cuMemGetInfo_v2_fn cuMemGetInfo_v2;
extern cuDeviceGetMemPool_fn cuDeviceGetMemPool;
extern cuMemPoolSetAttribute_fn cuMemPoolSetAttribute;
extern cuModuleLoadData_fn cuModuleLoadData;
extern cuModuleGetFunction_fn cuModuleGetFunction;
extern cuLaunchKernel_fn cuLaunchKernel;
extern cuGetProcAddress_v2_fn cuGetProcAddress_v2;

#define BATCHES	  15
#define KIB	  ((size_t)1 << 10)
#define MIB	  ((size_t)1 << 20)
#define LIVE_MOST 100000

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
