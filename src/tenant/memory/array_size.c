/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an array will take, before it is made.
 *
 * The layout of an array is the driver's secret, but it tells the size of one whose memory comes
 * later. So a probe array with deferred memory is made, asked and destroyed: 5 to 10 us, no memory, and the
 * answer is what the real one takes (H200, driver 580). Drivers before CUDA 11.6 cannot be asked, and
 * some descriptors have no deferred probe array: then a formula stands in that is never too low.
 */
#include "tenant/memory/array_size.h"

#include "base/bits.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/state.h"

/*
 * The formula: rows and layers padded to the largest blocks of the tiled layout that we know (a block
 * is at most 128 rows high and 32 layers deep; measured sizes fit 64 bytes, 128 rows, 8 layers).
 */
#define ROW_BYTES	   512u
#define BLOCK_ROWS	   128u
#define BLOCK_LAYERS	   32u
#define LEVELS_MOST	   32u
#define ELEMENT_MOST_BYTES 16u

bool array_size_is_deferred(const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	return (descriptor->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) != 0;
}

static uint64_t element_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	switch (d->Format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 4;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 8;
	default:
		return ELEMENT_MOST_BYTES;
	}
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t level_of(uint64_t extent, unsigned level)
{
	return extent >> level ? extent >> level : 1;
}

static uint64_t formula(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned level_count)
{
	bool is_cube = !(d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP));
	uint64_t sum = 0;

	for (unsigned i = 0; i < (level_count < LEVELS_MOST ? level_count : LEVELS_MOST); i++) {
		uint64_t row =
			round_up_u64(times(level_of(d->Width, i), element_bytes(d)), ROW_BYTES);
		uint64_t rows = round_up_u64(level_of(d->Height, i), BLOCK_ROWS);
		uint64_t layers = level_of(d->Depth, is_cube ? i : 0);

		if (is_cube && layers > 1)
			layers = round_up_u64(layers, BLOCK_LAYERS);
		if (__builtin_add_overflow(sum, times(times(row, rows), layers), &sum))
			return UINT64_MAX;
	}
	return sum;
}

static CUresult ask_array(
	const CUDA_ARRAY3D_DESCRIPTOR *probe, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret)
{
	CUarray array;
	CUresult r = cuda.cuArray3DCreate_v2(&array, probe);

	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuArrayGetMemoryRequirements(ret, array, device);
	cuda.cuArrayDestroy(array);
	return r;
}

static CUresult ask_mipmap(const CUDA_ARRAY3D_DESCRIPTOR *probe, unsigned level_count,
	CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS *ret)
{
	CUmipmappedArray mipmap;
	CUresult r = cuda.cuMipmappedArrayCreate(&mipmap, probe, level_count);

	if (r != CUDA_SUCCESS)
		return r;
	r = cuda.cuMipmappedArrayGetMemoryRequirements(ret, mipmap, device);
	cuda.cuMipmappedArrayDestroy(mipmap);
	return r;
}

static bool can_ask(bool is_mipmap)
{
	return is_mipmap ? cuda.cuMipmappedArrayGetMemoryRequirements &&
				   cuda.cuMipmappedArrayCreate && cuda.cuMipmappedArrayDestroy
			 : cuda.cuArrayGetMemoryRequirements && cuda.cuArray3DCreate_v2 &&
				   cuda.cuArrayDestroy;
}

static CUresult ask(const CUDA_ARRAY3D_DESCRIPTOR *probe, unsigned level_count, CUdevice device,
	CUDA_ARRAY_MEMORY_REQUIREMENTS *ret)
{
	return level_count > 0 ? ask_mipmap(probe, level_count, device, ret)
			       : ask_array(probe, device, ret);
}

uint64_t array_size_ask(
	const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned level_count, CUresult *ret_refusal)
{
	CUDA_ARRAY3D_DESCRIPTOR probe = *descriptor;
	CUDA_ARRAY_MEMORY_REQUIREMENTS need = {.size = 0};
	CUresult r = CUDA_ERROR_NOT_SUPPORTED;
	CUdevice device;

	probe.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
	if (can_ask(level_count > 0) && cuda.cuCtxGetDevice &&
		cuda.cuCtxGetDevice(&device) == CUDA_SUCCESS)
		r = ask(&probe, level_count, device, &need);
	/* A failure of that moment would leave the array charged by the formula for its whole life. */
	if (r != CUDA_SUCCESS && r != CUDA_ERROR_NOT_SUPPORTED && r != CUDA_ERROR_INVALID_VALUE)
		r = ask(&probe, level_count, device, &need);
	*ret_refusal = r == CUDA_ERROR_NOT_SUPPORTED ? CUDA_SUCCESS : r;
	if (r == CUDA_SUCCESS && need.size > 0)
		return round_up_u64(need.size, REGION_UNIT_BYTES);
	return formula(descriptor, level_count ? level_count : 1);
}
