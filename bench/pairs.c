/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of calls, in bursts that are told for: for bench/pairs.py, which has several of these processes at once, with
 * a tenant library or without, and tells them by turns.
 *
 * A line on standard input is a case, a number of samples, a number of operations in each and of bytes that are
 * read before each, so that caches are cold: "async 100 50 0". The answer is a line of ns an operation, one a sample.
 */
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
extern cuStreamCreate_fn cuStreamCreate;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemFree_v2_fn cuMemFree_v2;
extern cuMemAllocAsync_fn cuMemAllocAsync;
extern cuMemFreeAsync_fn cuMemFreeAsync;
extern cuMemCreate_fn cuMemCreate;
extern cuMemRelease_fn cuMemRelease;
extern cuMemAddressReserve_fn cuMemAddressReserve;
extern cuMemAddressFree_fn cuMemAddressFree;
extern cuMemMap_fn cuMemMap;
extern cuMemSetAccess_fn cuMemSetAccess;
extern cuMemUnmap_fn cuMemUnmap;
extern cuDeviceGetMemPool_fn cuDeviceGetMemPool;
extern cuMemPoolSetAttribute_fn cuMemPoolSetAttribute;

#define KIB	     ((size_t)1 << 10)
#define MIB	     ((size_t)1 << 20)
#define SAMPLES_MOST 10000
#define COLD_MOST    (64 * MIB)
#define LINE_BYTES   64

static CUstream stream;
static unsigned char *cold;
static double ns[SAMPLES_MOST];

static void need(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "pairs: %s: error %d\n", what, (int)r);
	exit(1);
}

static void plain(void)
{
	CUdeviceptr p;

	need(cuMemAlloc_v2(&p, 4 * KIB), "cuMemAlloc");
	need(cuMemFree_v2(p), "cuMemFree");
}

static void async_on(CUstream at)
{
	CUdeviceptr p;

	need(cuMemAllocAsync(&p, MIB, at), "cuMemAllocAsync");
	need(cuMemFreeAsync(p, at), "cuMemFreeAsync");
}

static void async(void)
{
	async_on(NULL);
}

static void async_stream(void)
{
	async_on(stream);
}

static void vmm(void)
{
	const CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	need(cuMemAddressReserve(&at, 2 * MIB, 0, 0, 0), "cuMemAddressReserve");
	need(cuMemCreate(&handle, 2 * MIB, &props, 0), "cuMemCreate");
	need(cuMemMap(at, 2 * MIB, 0, handle, 0), "cuMemMap");
	need(cuMemSetAccess(at, 2 * MIB, &access, 1), "cuMemSetAccess");
	need(cuMemUnmap(at, 2 * MIB), "cuMemUnmap");
	need(cuMemRelease(handle), "cuMemRelease");
	need(cuMemAddressFree(at, 2 * MIB), "cuMemAddressFree");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {{"plain", plain}, {"async", async}, {"async-stream", async_stream}, {"vmm", vmm}, {0}};

static void make_cold(size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE_BYTES)
		cold[i]++;
}

static void burst(void (*run)(void), unsigned samples, unsigned operations, size_t cold_bytes)
{
	need(cuCtxSynchronize(), "cuCtxSynchronize");
	for (unsigned i = 0; i < samples; i++) {
		uint64_t start_ns;

		make_cold(cold_bytes);
		start_ns = clock_now_ns();
		for (unsigned k = 0; k < operations; k++)
			run();
		ns[i] = (double)(clock_now_ns() - start_ns) / operations;
	}
	for (unsigned i = 0; i < samples; i++)
		printf("%.1f%c", ns[i], i + 1 < samples ? ' ' : '\n');
	fflush(stdout);
}

static void begin(void)
{
	cuuint64_t keep = 64 * MIB;
	CUmemoryPool pool;
	CUcontext context;
	CUdeviceptr p;

	cold = calloc(1, COLD_MOST);
	need(cold ? cuInit(0) : CUDA_ERROR_OUT_OF_MEMORY, "cuInit");
	need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(cuStreamCreate(&stream, 1), "cuStreamCreate");
	need(cuDeviceGetMemPool(&pool, 0), "cuDeviceGetMemPool");
	need(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
		"cuMemPoolSetAttribute");
	need(cuMemAlloc_v2(&p, 4 * KIB), "cuMemAlloc"); /* keeps the chunk */
}

int main(void)
{
	unsigned samples, operations, i;
	size_t cold_bytes;
	char name[32];

	begin();
	printf("ready\n");
	fflush(stdout);
	while (scanf("%31s %u %u %zu", name, &samples, &operations, &cold_bytes) == 4) {
		for (i = 0; cases[i].name && strcmp(cases[i].name, name) != 0;)
			i++;
		if (!cases[i].name || samples > SAMPLES_MOST || cold_bytes > COLD_MOST ||
			!operations)
			return 1;
		burst(cases[i].run, samples, operations, cold_bytes);
	}
	return 0;
}
