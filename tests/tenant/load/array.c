/* SPDX-License-Identifier: Apache-2.0 */
/* Load families: arrays and mipmapped arrays of odd sizes, and sparse ones with memory mapped into them. */
#include "tests/tenant/load/load.h"

/* A tile of a sparse array of floats is 128 x 128 of them. */
#define TILE 128u

static CUresult make_mipmap(
	const struct load *l, const CUDA_ARRAY3D_DESCRIPTOR *d, struct load_held *ret_held)
{
	CUmipmappedArray mipmap = NULL;
	CUresult r = l->client->cu.cuMipmappedArrayCreate(&mipmap, d, 3);

	ret_held->value = (uintptr_t)mipmap;
	ret_held->other = 1;
	return r;
}

static CUresult make(
	const struct load *l, const CUDA_ARRAY3D_DESCRIPTOR *d, struct load_held *ret_held)
{
	CUarray array = NULL;
	CUresult r = l->client->cu.cuArray3DCreate_v2(&array, d);

	ret_held->value = (uintptr_t)array;
	return r;
}

/* Half of them may share a chunk with others, and half have chunks of their own. */
static CUresult take_array(struct load *l, struct load_held *ret_held)
{
	uint64_t side = load_below(l, 2) ? 64 : 1500;
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 8 + load_below(l, side),
		.Height = 8 + load_below(l, side),
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1u << load_below(l, 3)};

	switch (load_below(l, 4)) {
	case 0:
		d.Depth = 1 + load_below(l, 8);
		return make(l, &d, ret_held);
	case 1:
		d.Depth = 1 + load_below(l, 8);
		d.Flags = CUDA_ARRAY3D_LAYERED;
		return make(l, &d, ret_held);
	case 2:
		return make_mipmap(l, &d, ret_held);
	default:
		return make(l, &d, ret_held);
	}
}

static CUresult give_array(struct load *l, const struct load_held *held)
{
	const struct door *cu = &l->client->cu;

	return held->other ? cu->cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)held->value)
			   : cu->cuArrayDestroy((CUarray)(uintptr_t)held->value);
}

static CUresult map_tile(struct load *l, CUarray array, CUmemGenericAllocationHandle handle)
{
	CUarrayMapInfo info = {.deviceBitMask = 1u << l->client->device,
		.memOperationType =
			handle ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP};

	info.resource.array = array;
	info.memHandle.memHandle = handle;
	info.subresource.sparseLevel.extentWidth = TILE;
	info.subresource.sparseLevel.extentHeight = TILE;
	info.subresource.sparseLevel.extentDepth = 1;
	return l->client->cu.cuMemMapArrayAsync(&info, 1, NULL);
}

/* The handle is released at once: the mapping keeps the memory. */
static CUresult take_sparse(struct load *l, struct load_held *ret_held)
{
	const struct door *cu = &l->client->cu;
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = l->client->device}};
	CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 4 * TILE,
		.Height = 4 * TILE,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE};
	CUmemGenericAllocationHandle handle = 0;
	CUresult r = cu->cuMemCreate(&handle, 2 * LOAD_MIB, &prop, 0), released;

	if (r != CUDA_SUCCESS)
		return r;
	r = make(l, &d, ret_held);
	if (r == CUDA_SUCCESS)
		r = map_tile(l, (CUarray)(uintptr_t)ret_held->value, handle);
	released = cu->cuMemRelease(handle);
	return r == CUDA_SUCCESS ? released : r;
}

/* The tile is unmapped before, or goes with the array. */
static CUresult give_sparse(struct load *l, const struct load_held *held)
{
	CUarray array = (CUarray)(uintptr_t)held->value;
	CUresult r = load_below(l, 2) ? map_tile(l, array, 0) : CUDA_SUCCESS;

	return r == CUDA_SUCCESS ? l->client->cu.cuArrayDestroy(array) : r;
}

const struct load_family load_array = {.bears_misuse = true,
	.weight = 96,
	.symbol = "cuArrayCreate_v2",
	.ends_with_context = true,
	.take = take_array,
	.give = give_array};
const struct load_family load_sparse = {.bears_misuse = true,
	.weight = 16,
	.symbol = "cuMemMapArrayAsync",
	.ends_with_context = true,
	.take = take_sparse,
	.give = give_sparse};
