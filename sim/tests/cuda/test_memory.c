/* SPDX-License-Identifier: Apache-2.0 */
/* Linear memory, managed memory, mapped memory and pools: what each call takes and gives back. */
#include "sim/tests/cuda/child.h"

#include <string.h>
#include <unistd.h>

TEST(calls_before_cuinit_are_refused)
{
	CUdeviceptr p;
	CUdevice device;
	int count;

	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_NOT_INITIALIZED);
	EQUAL(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
	EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	EQUAL(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	OK(cuInit(0));
	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuDeviceGet(&device, 7), CUDA_ERROR_INVALID_DEVICE);
	EQUAL(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(child_used_mib(), 3);
	EQUAL(child_shown_mib(), 0);
}

TEST(a_context_takes_518_mib_and_is_shown)
{
	CUcontext context;
	CUdeviceptr p;
	size_t free_bytes, total_bytes;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	EQUAL(cuMemAlloc_v2(&p, 100), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxSetCurrent(context));
	EQUAL(child_shown_mib(), 518);
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	EQUAL(total_bytes, 150109880320);
	CHECK(free_bytes / MiB == 149557477376 / MiB);
	OK(cuMemGetInfo_v2(NULL, NULL));
}

TEST(bad_sizes_and_pointers_are_refused)
{
	CUdeviceptr p, pitched;
	size_t pitch;

	child_context();
	EQUAL(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemAlloc_v2(NULL, 10), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(0));
	EQUAL(cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemAlloc_v2(&p, (size_t)1 << 44), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc_v2(&p, 1));
	EQUAL(p % (2 * MiB), 0);
	EQUAL(cuMemFree_v2(p + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(p));
	EQUAL(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemAllocPitch_v2(&pitched, &pitch, 100, 100, 3), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemAllocPitch_v2(&pitched, &pitch, 0, 100, 4), CUDA_ERROR_INVALID_VALUE);
	EQUAL(child_shown_mib(), 518);
}

TEST(memory_of_an_old_context_lies_where_32_bits_reach)
{
	CUcontext old, new;
	CUdeviceptr_v1 a, b, c;
	unsigned int pitch;

	OK(cuInit(0));
	OK(cuCtxCreate(&old, 0, 0));
	OK(cuMemAlloc(&a, 64 * MiB));
	OK(cuMemAlloc(&b, 1));
	EQUAL(child_shown_mib(), 518 + 66);
	memset((void *)(uintptr_t)a, 1, 64 * MiB);
	OK(cuMemFree(a));
	OK(cuMemFree(b));
	EQUAL(cuMemFree(b), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocPitch(&c, &pitch, 513, 1000, 4));
	EQUAL(pitch, 1024);
	EQUAL(child_shown_mib(), 520);
	OK(cuCtxCreate_v2(&new, 0, 0));
	EQUAL(cuMemAlloc(&a, 1), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuMemAllocPitch(&a, &pitch, 513, 1000, 4), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuMemFree(c), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxDestroy_v2(new));
	OK(cuCtxDestroy_v2(old));
	EQUAL(child_shown_mib(), 0);
}

TEST(small_blocks_are_packed_as_measured)
{
	static const struct {
		size_t bytes;
		int count;
		uint64_t mib;
		uint64_t distance;
	} rows[] = {
		{1, 600, 2, 0x200},
		{600, 600, 2, 0x400},
		{4096, 600, 4, 0x1000},
		{100000, 600, 60, 0x18800},
		{524288, 40, 20, 0x80000},
		{1048576, 40, 40, 0x100000},
	};
	static CUdeviceptr p[600];

	child_context();
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		for (int i = 0; i < rows[k].count; i++) {
			OK(cuMemAlloc_v2(&p[i], rows[k].bytes));
			EQUAL(p[i] / (2 * MiB), (p[i] + rows[k].bytes - 1) / (2 * MiB));
		}
		EQUAL(p[1] - p[0], rows[k].distance);
		EQUAL(child_shown_mib() - 518, rows[k].mib);
		/* Every other one gives nothing back where blocks share a chunk with more. */
		for (int i = 0; i < rows[k].count; i += 2)
			OK(cuMemFree_v2(p[i]));
		EQUAL(child_shown_mib() - 518, rows[k].mib);
		for (int i = 1; i < rows[k].count; i += 2)
			OK(cuMemFree_v2(p[i]));
		EQUAL(child_shown_mib(), 518);
	}
}

TEST(large_blocks_take_the_next_multiple_of_two_mib)
{
	static const struct {
		size_t bytes;
		uint64_t mib;
	} rows[] = {{MiB + 1, 2}, {1572864, 2}, {2 * MiB, 2}, {2 * MiB + 1, 4}, {4 * MiB, 4},
		{4 * MiB + 1, 6}, {31 * MiB, 32}, {32 * MiB + 1, 34}};
	CUdeviceptr p, q, small;

	child_context();
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		OK(cuMemAlloc_v2(&p, rows[k].bytes));
		OK(cuMemAlloc_v2(&q, rows[k].bytes));
		EQUAL(p % (2 * MiB), 0);
		EQUAL(q % (2 * MiB), 0);
		EQUAL(child_shown_mib() - 518, 2 * rows[k].mib);
		OK(cuMemFree_v2(p));
		EQUAL(child_shown_mib() - 518, rows[k].mib);
		OK(cuMemFree_v2(q));
	}
	OK(cuMemAlloc_v2(&p, 1572864));
	OK(cuMemAlloc_v2(&small, 300000));
	EQUAL(small - p, 1572864);
	OK(cuMemAlloc_v2(&q, MiB));
	EQUAL(child_shown_mib() - 518, 4);
}

TEST(rows_of_pitched_memory_are_multiples_of_512)
{
	CUdeviceptr p;
	size_t pitch;

	child_context();
	OK(cuMemAllocPitch_v2(&p, &pitch, 1, 10, 4));
	EQUAL(pitch, 512);
	OK(cuMemFree_v2(p));
	OK(cuMemAllocPitch_v2(&p, &pitch, 100000, 100, 4));
	EQUAL(pitch, 100352);
	EQUAL(child_shown_mib() - 518, 10);
}

TEST(copies_copy_and_freed_memory_comes_back_empty)
{
	static char out[3 * MiB], in[3 * MiB];
	CUdeviceptr p, q;

	child_context();
	memset(out, 7, sizeof(out));
	OK(cuMemAlloc_v2(&p, sizeof(out)));
	OK(cuMemAlloc_v2(&q, sizeof(out)));
	OK(cuMemcpyHtoD_v2(p, out, sizeof(out)));
	OK(cuMemcpyDtoD_v2(q, p, sizeof(out)));
	OK(cuMemcpyDtoH_v2(in, q, sizeof(in)));
	EQUAL(memcmp(in, out, sizeof(in)), 0);
	OK(cuMemsetD32_v2(q, 0x01020304, 100));
	OK(cuMemcpyDtoH_v2(in, q, 404));
	EQUAL(*(uint32_t *)(void *)(in + 396), 0x01020304);
	EQUAL(in[400], 7);
	EQUAL(cuMemcpyDtoH_v2(in, p + 1, sizeof(in)), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemcpyDtoH_v2(in, 0x1000, 8), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree_v2(p));
	EQUAL(cuMemcpyDtoH_v2(in, p, 8), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAlloc_v2(&p, sizeof(out)));
	OK(cuMemcpyDtoH_v2(in, p, 8));
	EQUAL(in[0], 0);
}

TEST(a_full_card_refuses_the_next_block)
{
	CUdeviceptr p, q;
	size_t free_bytes, total_bytes;

	child_context();
	OK(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	OK(cuMemAlloc_v2(&p, free_bytes / (2 * MiB) * (2 * MiB)));
	EQUAL(cuMemAlloc_v2(&q, 2 * MiB), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree_v2(p));
	OK(cuMemAlloc_v2(&q, 2 * MiB));
}

TEST(managed_memory_counts_where_it_is_resident)
{
	CUdeviceptr p;
	CUdevice host = CU_DEVICE_CPU;
	uint64_t used;

	child_context();
	used = child_used_mib();
	EQUAL(cuMemAllocManaged(&p, 64 * MiB, 7), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocManaged(&p, 64 * MiB, CU_MEM_ATTACH_GLOBAL));
	EQUAL(child_used_mib(), used);
	OK(cuMemsetD8_v2(p, 1, 64 * MiB));
	EQUAL(child_used_mib(), used + 64);
	EQUAL(child_shown_mib(), 518);
	EQUAL(*(char *)(uintptr_t)p, 1);
	OK(cuMemPrefetchAsync(p, 64 * MiB, host, NULL));
	EQUAL(child_used_mib(), used);
	OK(cuMemPrefetchAsync(p, 64 * MiB, 0, NULL));
	OK(cuMemFree_v2(p));
	EQUAL(child_used_mib(), used);
}

TEST(managed_memory_that_does_not_fit_stays_on_the_host)
{
	CUdeviceptr plain, p;
	CUdevice host = CU_DEVICE_CPU;
	size_t free_bytes;
	uint64_t used;

	child_context();
	OK(cuMemGetInfo_v2(&free_bytes, NULL));
	OK(cuMemAlloc_v2(&plain, free_bytes / (2 * MiB) * (2 * MiB)));
	OK(cuMemAllocManaged(&p, 4 * MiB, CU_MEM_ATTACH_GLOBAL));
	used = child_used_mib();
	OK(cuMemsetD8_v2(p, 1, 4 * MiB));
	OK(cuMemPrefetchAsync(p, 4 * MiB, 0, NULL));
	EQUAL(child_used_mib(), used);
	OK(cuMemFree_v2(plain));
	used = child_used_mib();
	EQUAL(cuMemAdvise(p, 4 * MiB, 7, host), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemAdvise(p, 4 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, 77),
		CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemAdvise(p, 4 * MiB, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
	OK(cuMemAdvise(p, 4 * MiB, CU_MEM_ADVISE_SET_ACCESSED_BY, 0));
	OK(cuMemsetD8_v2(p, 2, 4 * MiB));
	EQUAL(child_used_mib(), used);
	OK(cuMemAdvise(p, 4 * MiB, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, host));
	OK(cuMemsetD8_v2(p, 2, 4 * MiB));
	EQUAL(child_used_mib(), used + 4);
}

TEST(a_handle_keeps_its_memory_until_the_last_hold_goes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle h, again;
	CUdeviceptr va, other;
	size_t granularity;
	char byte = 5;

	child_context();
	OK(cuMemGetAllocationGranularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	EQUAL(granularity, 2 * MiB);
	EQUAL(cuMemCreate(&h, 1000, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemCreate(&h, 64 * MiB, &prop, 0));
	EQUAL(child_shown_mib(), 582);
	OK(cuMemAddressReserve(&va, 256 * MiB, 0, 0, 0));
	OK(cuMemMap(va, 64 * MiB, 0, h, 0));
	EQUAL(cuMemMap(va + 64 * MiB, 32 * MiB, 0, h, 0), CUDA_ERROR_NOT_SUPPORTED);
	EQUAL(cuMemMap(va + 128 * MiB, 32 * MiB, 2 * MiB, h, 0), CUDA_ERROR_NOT_SUPPORTED);
	EQUAL(cuMemcpyHtoD_v2(va, &byte, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(va, 64 * MiB, &access, 1));
	OK(cuMemcpyHtoD_v2(va, &byte, 1));
	OK(cuMemMap(va + 128 * MiB, 64 * MiB, 0, h, 0));
	OK(cuMemSetAccess(va + 128 * MiB, 64 * MiB, &access, 1));
	byte = 0;
	OK(cuMemcpyDtoH_v2(&byte, va + 128 * MiB, 1));
	EQUAL(byte, 5);
	OK(cuMemUnmap(va + 128 * MiB, 64 * MiB));
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(va + 4096)));
	EQUAL(h, again);
	OK(cuMemRelease(h));
	OK(cuMemRelease(again));
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va));
	EQUAL(h, again);
	OK(cuMemRelease(again));
	EQUAL(cuMemRelease(again), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemUnmap(va, 32 * MiB), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemFree_v2(va), CUDA_ERROR_INVALID_VALUE);
	EQUAL(child_shown_mib(), 582);
	OK(cuMemUnmap(va, 64 * MiB));
	EQUAL(child_shown_mib(), 518);
	OK(cuMemUnmap(va + 64 * MiB, 32 * MiB));
	OK(cuMemAddressFree(va, 256 * MiB));
	prop.location.id = 5;
	EQUAL(cuMemCreate(&h, 64 * MiB, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
	prop.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	OK(cuMemCreate(&h, 64 * MiB, &prop, 0));
	EQUAL(child_shown_mib(), 518);
	OK(cuMemRelease(h));
	EQUAL(cuMemRelease(h), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemCreate(&again, 64 * MiB, &prop, 0));
	EQUAL(h, again);
	OK(cuMemRelease(again));
	OK(cuMemAddressReserve(&other, 2 * MiB, 64 * MiB, 0, 0));
	EQUAL(other % (64 * MiB), 0);
}

static uint64_t pool_mib(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t bytes;

	OK(cuMemPoolGetAttribute(pool, attribute, &bytes));
	return (bytes + MiB - 1) / MiB;
}

#define RESERVED(pool) pool_mib(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)
#define USED(pool)     pool_mib(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT)

TEST(the_default_pool_reserves_and_returns_as_measured)
{
	CUmemoryPool pool, same, of;
	CUdeviceptr p, q, x;
	CUstream s;
	CUevent e;
	char byte;
	uint64_t before;

	child_context();
	OK(cuDeviceGetMemPool(&pool, 0));
	OK(cuDeviceGetDefaultMemPool(&same, 0));
	CHECK(pool == same);
	OK(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	before = child_shown_mib();
	OK(cuMemAllocAsync(&p, 1, s));
	EQUAL(RESERVED(pool), 32);
	EQUAL(USED(pool), 1);
	OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
	CHECK(of == pool);
	OK(cuMemFreeAsync(p, s));
	EQUAL(RESERVED(pool), 32);
	EQUAL(USED(pool), 0);
	OK(cuMemAllocAsync(&p, 33 * MiB, s));
	EQUAL(RESERVED(pool), 64);
	OK(cuMemAllocAsync(&q, 20 * MiB, s));
	EQUAL(RESERVED(pool), 64);
	EQUAL(USED(pool), 53);
	EQUAL(child_shown_mib() - before, 64);
	OK(cuMemFreeAsync(q, s));
	OK(cuStreamSynchronize(s));
	EQUAL(RESERVED(pool), 64);
	EQUAL(USED(pool), 33);
	OK(cuMemFreeAsync(p, s));
	EQUAL(RESERVED(pool), 64);
	OK(cuCtxSynchronize());
	EQUAL(RESERVED(pool), 0);
	OK(cuMemAllocAsync(&p, 100 * MiB, s));
	EQUAL(RESERVED(pool), 128);
	OK(cuMemFree_v2(p));
	EQUAL(RESERVED(pool), 0);
	EQUAL(USED(pool), 100);
	OK(cuMemAllocAsync(&p, 100 * MiB, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuEventCreate(&e, 0));
	OK(cuEventRecord(e, s));
	OK(cuEventSynchronize(e));
	EQUAL(RESERVED(pool), 0);
	EQUAL(USED(pool), 100);
	OK(cuMemAllocAsync(&p, 100 * MiB, s));
	OK(cuMemFreeAsync(p, s));
	OK(cuStreamQuery(s));
	OK(cuEventQuery(e));
	OK(cuMemAlloc_v2(&x, 8));
	OK(cuMemcpyDtoH_v2(&byte, x, 1));
	OK(cuMemFree_v2(x));
	EQUAL(RESERVED(pool), 128);
	OK(cuStreamSynchronize(s));
	EQUAL(RESERVED(pool), 0);
	OK(cuMemAllocAsync(&p, 0, s));
	EQUAL(cuMemAllocAsync(&p, (size_t)1 << 42, s), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFreeAsync(0, s));
	EQUAL(cuMemFreeAsync(0x1234, s), CUDA_ERROR_INVALID_VALUE);
	EQUAL(child_shown_mib(), before);
}

TEST(a_threshold_keeps_the_reserve_until_it_is_trimmed)
{
	cuuint64_t threshold = UINT64_MAX;
	CUmemoryPool pool;
	CUdeviceptr p;

	child_context();
	OK(cuDeviceGetMemPool(&pool, 0));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemAllocAsync(&p, 100 * MiB, NULL));
	OK(cuMemFreeAsync(p, NULL));
	OK(cuStreamSynchronize(NULL));
	EQUAL(RESERVED(pool), 128);
	OK(cuMemPoolTrimTo(pool, 64 * MiB));
	EQUAL(RESERVED(pool), 64);
	OK(cuMemPoolTrimTo(pool, 0));
	EQUAL(RESERVED(pool), 0);
}

TEST(own_pools_pack_obey_their_maximum_and_outlive_their_handle)
{
	static const uint64_t reserved[12] = {32, 32, 32, 32, 32, 32, 64, 64, 64, 64, 64, 64};
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemoryPool pool;
	CUdeviceptr p[12];

	child_context();
	OK(cuMemPoolCreate(&pool, &props));
	for (int i = 0; i < 12; i++) {
		OK(cuMemAllocFromPoolAsync(&p[i], 5 * MiB, pool, NULL));
		EQUAL(RESERVED(pool), reserved[i]);
	}
	OK(cuMemPoolDestroy(pool));
	EQUAL(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(child_shown_mib(), 582);
	for (int i = 0; i < 12; i++)
		OK(cuMemFreeAsync(p[i], NULL));
	OK(cuStreamSynchronize(NULL));
	EQUAL(child_shown_mib(), 518);

	props.maxSize = 64 * MiB;
	OK(cuMemPoolCreate(&pool, &props));
	for (int i = 0; i < 3; i++)
		OK(cuMemAllocFromPoolAsync(&p[i], 20 * MiB, pool, NULL));
	EQUAL(cuMemAllocFromPoolAsync(&p[3], 20 * MiB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	EQUAL(RESERVED(pool), 64);
}

TEST(pointers_say_what_they_are)
{
	CUdeviceptr p, base;
	size_t size;
	unsigned int type;
	int ordinal;
	void *host;

	child_context();
	OK(cuMemAlloc_v2(&p, 3000));
	OK(cuMemGetAddressRange_v2(&base, &size, p + 2999));
	EQUAL(base, p);
	EQUAL(size, 3000);
	EQUAL(cuMemGetAddressRange_v2(&base, &size, p + 3000), CUDA_ERROR_NOT_FOUND);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
	EQUAL(type, CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
	EQUAL(ordinal, 0);
	EQUAL(cuPointerGetAttribute(
		      &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostAlloc(&host, 100, 0));
	OK(cuPointerGetAttribute(
		&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)host));
	EQUAL(type, CU_MEMORYTYPE_HOST);
	OK(cuMemFreeHost(host));
	EQUAL(child_shown_mib(), 520);
}

TEST(copies_of_cuda_2_take_sizes_of_32_bits)
{
	char from[4][8], to[4][16] = {{0}};
	CUDA_MEMCPY2D_v1 flat = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 8,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 16,
		.WidthInBytes = 8,
		.Height = 4};
	CUDA_MEMCPY3D_v1 deep = {.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = from,
		.srcPitch = 8,
		.srcHeight = 2,
		.dstMemoryType = CU_MEMORYTYPE_HOST,
		.dstHost = to,
		.dstPitch = 16,
		.dstHeight = 2,
		.dstXInBytes = 8,
		.WidthInBytes = 8,
		.Height = 2,
		.Depth = 2};
	CUdevprop properties;

	child_context();
	for (int i = 0; i < 32; i++)
		from[i / 8][i % 8] = (char)(i + 1);
	OK(cuMemcpy2D(&flat));
	EQUAL(to[3][7], 32);
	EQUAL(to[3][8], 0);
	OK(cuMemcpy3D(&deep));
	EQUAL(to[3][15], 32);
	OK(cuMemcpy2DUnaligned(&flat));
	OK(cuMemcpy2DAsync(&flat, NULL));
	OK(cuMemcpy3DAsync(&deep, NULL));
	EQUAL(cuMemcpy2D(NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemsetD2D8(4096, 16, 1, 16, 2), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemsetD2D16(4096, 16, 1, 8, 2), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemsetD2D32(4096, 16, 1, 4, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetProperties(&properties, 0));
	EQUAL(properties.maxThreadsPerBlock, 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_before_cuinit_are_refused),
		cmocka_unit_test(a_context_takes_518_mib_and_is_shown),
		cmocka_unit_test(bad_sizes_and_pointers_are_refused),
		cmocka_unit_test(memory_of_an_old_context_lies_where_32_bits_reach),
		cmocka_unit_test(small_blocks_are_packed_as_measured),
		cmocka_unit_test(large_blocks_take_the_next_multiple_of_two_mib),
		cmocka_unit_test(rows_of_pitched_memory_are_multiples_of_512),
		cmocka_unit_test(copies_copy_and_freed_memory_comes_back_empty),
		cmocka_unit_test(a_full_card_refuses_the_next_block),
		cmocka_unit_test(managed_memory_counts_where_it_is_resident),
		cmocka_unit_test(managed_memory_that_does_not_fit_stays_on_the_host),
		cmocka_unit_test(a_handle_keeps_its_memory_until_the_last_hold_goes),
		cmocka_unit_test(the_default_pool_reserves_and_returns_as_measured),
		cmocka_unit_test(a_threshold_keeps_the_reserve_until_it_is_trimmed),
		cmocka_unit_test(own_pools_pack_obey_their_maximum_and_outlive_their_handle),
		cmocka_unit_test(pointers_say_what_they_are),
		cmocka_unit_test(copies_of_cuda_2_take_sizes_of_32_bits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
