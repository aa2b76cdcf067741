/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of handles mapped into sparse and deferred arrays. */
#include <stdlib.h>

#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/memory/vmm.h"
#include "sim/cuda/model/time/timeline.h"

/*
 * A part that is mapped again has the new memory; what is unmapped goes when its stream gets there.
 * A part that is smaller than what was mapped at once leaves that mapping as it is.
 */

static bool is_inside(
	unsigned int at, unsigned int extent, unsigned int outer, unsigned int outer_extent)
{
	return at >= outer && (uint64_t)at + extent <= (uint64_t)outer + outer_extent;
}

/* Whether the part of a lies wholly in that of b. */
static bool is_part_of(const CUarrayMapInfo *a, const CUarrayMapInfo *b)
{
	if (a->subresourceType != b->subresourceType)
		return false;
	if (a->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
		return a->subresource.miptail.layer == b->subresource.miptail.layer &&
		       a->subresource.miptail.offset >= b->subresource.miptail.offset &&
		       a->subresource.miptail.offset + a->subresource.miptail.size <=
			       b->subresource.miptail.offset + b->subresource.miptail.size;
	return a->subresource.sparseLevel.level == b->subresource.sparseLevel.level &&
	       a->subresource.sparseLevel.layer == b->subresource.sparseLevel.layer &&
	       is_inside(a->subresource.sparseLevel.offsetX, a->subresource.sparseLevel.extentWidth,
		       b->subresource.sparseLevel.offsetX,
		       b->subresource.sparseLevel.extentWidth) &&
	       is_inside(a->subresource.sparseLevel.offsetY,
		       a->subresource.sparseLevel.extentHeight, b->subresource.sparseLevel.offsetY,
		       b->subresource.sparseLevel.extentHeight) &&
	       is_inside(a->subresource.sparseLevel.offsetZ, a->subresource.sparseLevel.extentDepth,
		       b->subresource.sparseLevel.offsetZ, b->subresource.sparseLevel.extentDepth);
}

static bool is_well_formed(const CUarrayMapInfo *info)
{
	return info->flags == 0 && info->reserved[0] == 0 && info->reserved[1] == 0 &&
	       info->memHandleType == CU_MEM_HANDLE_TYPE_GENERIC && info->deviceBitMask != 0 &&
	       (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP ||
		       info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP) &&
	       info->subresourceType <= CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL &&
	       info->resourceType <= CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
}

CUresult array_map(const CUarrayMapInfo *info, uint64_t time_ns)
{
	struct array *array;
	struct tile *tile = NULL;

	if (!is_well_formed(info))
		return CUDA_ERROR_INVALID_VALUE;
	array = array_find(
		info->resource.array, info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
	if (!array || (array->descriptor.Flags &
			      (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (info->memOperationType == CU_MEM_OPERATION_TYPE_MAP) {
		tile = calloc(1, sizeof(*tile));
		if (!tile)
			return CUDA_ERROR_OUT_OF_MEMORY;
		tile->handle = vmm_hold(info->memHandle.memHandle, info->offset);
		if (!tile->handle) {
			free(tile);
			return CUDA_ERROR_INVALID_VALUE;
		}
		tile->info = *info;
		tile->until_ns = UINT64_MAX;
	}
	for (struct tile *old = array->tiles; old; old = old->next)
		if (old->until_ns == UINT64_MAX && is_part_of(&old->info, info))
			old->until_ns = time_ns;
	if (tile) {
		tile->next = array->tiles;
		array->tiles = tile;
	}
	return CUDA_SUCCESS;
}

void array_collect(void)
{
	LOCK_SCOPE(&driver.memory_lock);
	for (struct context *c = driver.contexts; c; c = c->next)
		for (struct array *a = c->arrays; a; a = a->next)
			if (a->tiles)
				array_let_go(a, timeline_now(c->device));
}
