/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and mipmapped arrays: what they need and take as measured, and what is mapped into them. */
#include "sim/tests/cuda/child.h"

#include <stddef.h>
#include <string.h>

static CUDA_ARRAY3D_DESCRIPTOR describe(size_t width, size_t height, size_t depth,
	CUarray_format format, unsigned int channels, unsigned int flags)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){width, height, depth, format, channels, flags};
}

#define FLOATS(width, height, depth, flags) \
	describe(width, height, depth, CU_AD_FORMAT_FLOAT, 1, flags)

/* What an array with deferred memory is said to need, in KiB; it takes nothing itself. */
static uint64_t needed_kib(CUDA_ARRAY3D_DESCRIPTOR descriptor, unsigned int levels)
{
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUmipmappedArray mipmap;
	CUarray array;

	descriptor.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	if (levels > 0) {
		OK(cuMipmappedArrayCreate(&mipmap, &descriptor, levels));
		OK(cuMipmappedArrayGetMemoryRequirements(&need, mipmap, 0));
		OK(cuMipmappedArrayDestroy(mipmap));
	} else {
		OK(cuArray3DCreate_v2(&array, &descriptor));
		OK(cuArrayGetMemoryRequirements(&need, array, 0));
		OK(cuArrayDestroy(array));
	}
	EQUAL(child_kind_mib(MACHINE_ARRAY), 0);
	EQUAL(need.alignment, 65536);
	return need.size / 1024;
}

static uint64_t taken_mib(CUDA_ARRAY3D_DESCRIPTOR descriptor, unsigned int levels)
{
	CUmipmappedArray mipmap = NULL;
	CUarray array = NULL;
	uint64_t mib;

	if (levels > 0)
		OK(cuMipmappedArrayCreate(&mipmap, &descriptor, levels));
	else
		OK(cuArray3DCreate_v2(&array, &descriptor));
	mib = child_kind_mib(MACHINE_ARRAY);
	OK(levels > 0 ? cuMipmappedArrayDestroy(mipmap) : cuArrayDestroy(array));
	EQUAL(child_kind_mib(MACHINE_ARRAY), 0);
	return mib;
}

TEST(arrays_need_and_take_what_was_measured)
{
	const CUDA_ARRAY3D_DESCRIPTOR two_shorts =
		describe(513, 777, 0, CU_AD_FORMAT_UNSIGNED_INT16, 2, 0);
	const struct {
		CUDA_ARRAY3D_DESCRIPTOR descriptor;
		unsigned int levels;
		uint64_t kib, mib;
	} rows[] = {
		{FLOATS(1024, 1024, 0, 0), 0, 4096, 4},
		{FLOATS(200, 200, 200, 0), 0, 33856, 34},
		{FLOATS(64, 64, 0, 0), 0, 64, 2},
		{describe(1000, 0, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0), 0, 64, 2},
		{describe(16384, 16384, 0, CU_AD_FORMAT_FLOAT, 4, 0), 0, 4194304, 4096},
		{two_shorts, 0, 1856, 2},
		{FLOATS(256, 256, 10, CUDA_ARRAY3D_LAYERED), 0, 2560, 4},
		{FLOATS(256, 256, 6, CUDA_ARRAY3D_CUBEMAP), 0, 1536, 2},
		{FLOATS(1024, 1024, 0, CUDA_ARRAY3D_SURFACE_LDST), 0, 4096, 4},
		{FLOATS(700, 700, 0, 0), 0, 2112, 4},
		{FLOATS(512, 512, 0, 0), 0, 1024, 2},
		{FLOATS(600, 500, 0, 0), 0, 1216, 2},
		{FLOATS(131072, 0, 0, 0), 0, 4096, 4},
		{FLOATS(1024, 1024, 0, 0), 11, 5504, 6},
		{describe(4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, 0), 13, 349568, 342},
		{FLOATS(64, 64, 0, 0), 7, 64, 2},
	};

	child_context();
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		EQUAL(needed_kib(rows[i].descriptor, rows[i].levels), rows[i].kib);
		EQUAL(taken_mib(rows[i].descriptor, rows[i].levels), rows[i].mib);
	}
	EQUAL(child_shown_mib(), 518);
}

TEST(small_arrays_share_chunks_of_their_own)
{
	static const struct {
		size_t width, height;
		int count;
		uint64_t mib;
	} rows[] = {{64, 64, 100, 2}, {512, 256, 20, 10}, {600, 500, 20, 40}, {512, 512, 9, 10}};
	static CUarray arrays[100];
	CUdeviceptr p;

	child_context();
	OK(cuMemAlloc_v2(&p, 1000));
	for (unsigned int r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		CUDA_ARRAY_DESCRIPTOR d = {rows[r].width, rows[r].height, CU_AD_FORMAT_FLOAT, 1};

		for (int i = 0; i < rows[r].count; i++)
			OK(cuArrayCreate_v2(&arrays[i], &d));
		EQUAL(child_kind_mib(MACHINE_ARRAY), rows[r].mib);
		EQUAL(child_shown_mib(), 520 + rows[r].mib);
		/* Every other one gives nothing back where each chunk keeps one. */
		for (int i = 0; i < rows[r].count; i += 2)
			OK(cuArrayDestroy(arrays[i]));
		for (int i = 1; i < rows[r].count; i += 2)
			OK(cuArrayDestroy(arrays[i]));
		EQUAL(child_kind_mib(MACHINE_ARRAY), 0);
	}
}

TEST(what_is_no_array_is_refused)
{
	CUDA_ARRAY3D_DESCRIPTOR bad[] = {
		FLOATS(0, 1, 0, 0),
		FLOATS(10, 0, 10, 0),
		FLOATS(200000, 0, 0, 0),
		FLOATS(16385, 16, 16, 0),
		FLOATS(16, 16, 5, CUDA_ARRAY3D_CUBEMAP),
		FLOATS(16, 17, 6, CUDA_ARRAY3D_CUBEMAP),
		FLOATS(16, 16, 0, CUDA_ARRAY3D_LAYERED),
		FLOATS(16, 16, 0, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING),
		FLOATS(16, 16, 0, 0x8000),
		describe(16, 16, 0, (CUarray_format)0x77, 1, 0),
		describe(16, 16, 0, CU_AD_FORMAT_FLOAT, 3, 0),
	};
	CUDA_ARRAY3D_DESCRIPTOR d = FLOATS(16, 16, 0, 0), got;
	CUDA_ARRAY_MEMORY_REQUIREMENTS need;
	CUmipmappedArray mipmap;
	CUarray array, level;

	OK(cuInit(0));
	EQUAL(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_INVALID_CONTEXT);
	child_context();
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		EQUAL(cuArray3DCreate_v2(&array, &bad[i]), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuArray3DCreate_v2(NULL, &d), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuArray3DCreate_v2(&array, NULL), CUDA_ERROR_INVALID_VALUE);
	d = FLOATS(16384, 16384, 16384, 0);
	EQUAL(cuArray3DCreate_v2(&array, &d), CUDA_ERROR_OUT_OF_MEMORY);
	d = FLOATS(16, 8, 0, 0);
	OK(cuArray3DCreate_v2(&array, &d));
	OK(cuArray3DGetDescriptor_v2(&got, array));
	/* Behind the flags is padding, which nobody sets. */
	CHECK(memcmp(&d, &got, offsetof(CUDA_ARRAY3D_DESCRIPTOR, Flags)) == 0);
	EQUAL(got.Flags, d.Flags);
	EQUAL(cuArrayGetMemoryRequirements(&need, array, 0), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMipmappedArrayDestroy((CUmipmappedArray)array), CUDA_ERROR_INVALID_HANDLE);
	OK(cuArrayDestroy(array));
	EQUAL(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMipmappedArrayCreate(&mipmap, &d, 99));
	EQUAL(cuMipmappedArrayGetLevel(&level, mipmap, 5), CUDA_ERROR_INVALID_VALUE);
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 4));
	OK(cuArray3DGetDescriptor_v2(&got, level));
	EQUAL(got.Width, 1);
	EQUAL(got.Height, 1);
	EQUAL(cuArrayDestroy(level), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMipmappedArrayDestroy(mipmap));
	EQUAL(cuArray3DGetDescriptor_v2(&got, level), CUDA_ERROR_INVALID_HANDLE);
	EQUAL(child_shown_mib(), 518);
}

TEST(arrays_end_with_their_context_and_go_from_any_other)
{
	CUcontext primary = child_context(), second;
	CUDA_ARRAY3D_DESCRIPTOR large = FLOATS(1024, 1024, 0, 0), small = FLOATS(64, 64, 0, 0);
	CUmipmappedArray mipmap;
	CUarray array;

	OK(cuCtxCreate_v2(&second, 0, 0));
	OK(cuArray3DCreate_v2(&array, &large));
	OK(cuArray3DCreate_v2(&array, &small));
	OK(cuMipmappedArrayCreate(&mipmap, &large, 11));
	EQUAL(child_kind_mib(MACHINE_ARRAY), 4 + 2 + 6);
	OK(cuCtxSetCurrent(primary));
	OK(cuMipmappedArrayDestroy(mipmap));
	EQUAL(child_kind_mib(MACHINE_ARRAY), 6);
	OK(cuCtxDestroy_v2(second));
	EQUAL(child_kind_mib(MACHINE_ARRAY), 0);
	EQUAL(cuArrayDestroy(array), CUDA_ERROR_INVALID_HANDLE);
}

TEST(the_first_interfaces_need_a_context_of_their_time)
{
	CUDA_ARRAY_DESCRIPTOR_v1 flat = {64, 64, CU_AD_FORMAT_FLOAT, 1}, got;
	CUDA_ARRAY3D_DESCRIPTOR_v1 deep = {200, 200, 200, CU_AD_FORMAT_FLOAT, 1, 0};
	CUcontext context;
	CUarray array;

	child_context();
	EQUAL(cuArrayCreate(&array, &flat), CUDA_ERROR_INVALID_CONTEXT);
	EQUAL(cuArray3DCreate(&array, &deep), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuCtxCreate(&context, 0, 0));
	OK(cuArrayCreate(&array, &flat));
	OK(cuArrayGetDescriptor(&got, array));
	CHECK(memcmp(&got, &flat, sizeof(got)) == 0);
	EQUAL(child_kind_mib(MACHINE_ARRAY), 2);
	OK(cuArray3DCreate(&array, &deep));
	EQUAL(child_kind_mib(MACHINE_ARRAY), 36);
}

TEST(copies_reach_arrays_and_levels)
{
	CUDA_ARRAY3D_DESCRIPTOR d = describe(8, 4, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0);
	CUDA_MEMCPY3D copy = {.WidthInBytes = 4, .Height = 2, .Depth = 1};
	CUmipmappedArray mipmap;
	uint8_t from[8], to[8] = {0};
	CUarray array, level;

	child_context();
	for (unsigned int i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i + 1);
	OK(cuArray3DCreate_v2(&array, &d));
	OK(cuMipmappedArrayCreate(&mipmap, &d, 2));
	OK(cuMipmappedArrayGetLevel(&level, mipmap, 1));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = from;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.dstXInBytes = 3;
	copy.dstY = 2;
	copy.dstZ = 1;
	OK(cuMemcpy3D_v2(&copy));
	copy.dstXInBytes = 5;
	EQUAL(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_VALUE);
	copy = (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
		.srcArray = array,
		.srcXInBytes = 3,
		.srcY = 2,
		.srcZ = 1,
		.dstMemoryType = CU_MEMORYTYPE_ARRAY,
		.dstArray = level,
		.WidthInBytes = 4,
		.Height = 2,
		.Depth = 1};
	OK(cuMemcpy3D_v2(&copy));
	copy.srcArray = level;
	copy.srcXInBytes = copy.srcY = copy.srcZ = 0;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = to;
	OK(cuMemcpy3D_v2(&copy));
	CHECK(memcmp(from, to, sizeof(to)) == 0);
	OK(cuArrayDestroy(array));
	copy.srcArray = array;
	EQUAL(cuMemcpy3D_v2(&copy), CUDA_ERROR_INVALID_HANDLE);
}

static CUarrayMapInfo map_of(CUarray array, unsigned int x, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.memOperationType =
			handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.deviceBitMask = 1};

	info.resource.array = array;
	info.subresource.sparseLevel.offsetX = x;
	info.subresource.sparseLevel.extentWidth = 128;
	info.subresource.sparseLevel.extentHeight = 128;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memHandle.memHandle = handle;
	return info;
}

TEST(a_sparse_array_keeps_mapped_memory_until_its_stream_has_unmapped_it)
{
	CUDA_ARRAY3D_DESCRIPTOR d = FLOATS(4096, 4096, 0, CUDA_ARRAY3D_SPARSE);
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUDA_ARRAY_SPARSE_PROPERTIES properties;
	CUmemGenericAllocationHandle handles[2];
	CUarrayMapInfo info[2], off;
	CUarray array;

	child_context();
	OK(cuArray3DCreate_v2(&array, &d));
	EQUAL(child_shown_mib(), 518);
	OK(cuArrayGetSparseProperties(&properties, array));
	EQUAL(properties.tileExtent.width, 128);
	EQUAL(properties.tileExtent.height, 128);
	for (unsigned int i = 0; i < 2; i++) {
		OK(cuMemCreate(&handles[i], 2 * MiB, &prop, 0));
		info[i] = map_of(array, 128 * i, handles[i]);
	}
	OK(cuMemMapArrayAsync(info, 2, NULL));
	for (unsigned int i = 0; i < 2; i++)
		OK(cuMemRelease(handles[i]));
	EQUAL(child_kind_mib(MACHINE_VMM), 4);
	EQUAL(cuMemMapArrayAsync(info, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	off = map_of(array, 128, 0);
	OK(cuMemMapArrayAsync(&off, 1, NULL));
	OK(cuCtxSynchronize());
	EQUAL(child_kind_mib(MACHINE_VMM), 2);
	OK(cuArrayDestroy(array));
	EQUAL(child_kind_mib(MACHINE_VMM), 0);
	off.deviceBitMask = 0;
	EQUAL(cuMemMapArrayAsync(&off, 1, NULL), CUDA_ERROR_INVALID_VALUE);
	EQUAL(cuMemMapArrayAsync(NULL, 1, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_need_and_take_what_was_measured),
		cmocka_unit_test(small_arrays_share_chunks_of_their_own),
		cmocka_unit_test(what_is_no_array_is_refused),
		cmocka_unit_test(arrays_end_with_their_context_and_go_from_any_other),
		cmocka_unit_test(the_first_interfaces_need_a_context_of_their_time),
		cmocka_unit_test(copies_reach_arrays_and_levels),
		cmocka_unit_test(
			a_sparse_array_keeps_mapped_memory_until_its_stream_has_unmapped_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
