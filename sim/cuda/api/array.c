/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of arrays and mipmapped arrays. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult make(
	void **ret_handle, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int level_count)
{
	struct context *context;
	struct array *array = NULL;
	CUresult result = context_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!ret_handle || !array_is_valid(descriptor, level_count))
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	result = array_make(context, descriptor, level_count, &array);
	if (result == CUDA_SUCCESS)
		*ret_handle = array;
	return result;
}

/*
 * The members of a description with sizes of the width that `type` has: 64 bits or, in CUDA 2, 32. To make an array,
 * CUDA 2 needs a context of its version.
 */
#define SIZE(type, value) ((__typeof__(((type *)NULL)->Width))(value))
#define FLAT(type, d)                                                                              \
	.Width = SIZE(type, (d)->Width), .Height = SIZE(type, (d)->Height), .Format = (d)->Format, \
	.NumChannels = (d)->NumChannels
#define DEEP(type, d) FLAT(type, d), .Depth = SIZE(type, (d)->Depth), .Flags = (d)->Flags

#define CREATE(symbol, call, type, members)                                                 \
	call(symbol, (CUarray * array, const type *descriptor),                             \
		descriptor ? make((void **)array,                                           \
				     &(CUDA_ARRAY3D_DESCRIPTOR){                            \
					     members(CUDA_ARRAY3D_DESCRIPTOR, descriptor)}, \
				     0)                                                     \
			   : CUDA_ERROR_INVALID_VALUE)
CREATE(cuArrayCreate_v2, ENTRY_CALL, CUDA_ARRAY_DESCRIPTOR, FLAT)
CREATE(cuArray3DCreate_v2, ENTRY_CALL, CUDA_ARRAY3D_DESCRIPTOR, DEEP)
CREATE(cuArrayCreate, ENTRY_CALL_OLD, CUDA_ARRAY_DESCRIPTOR_v1, FLAT)
CREATE(cuArray3DCreate, ENTRY_CALL_OLD, CUDA_ARRAY3D_DESCRIPTOR_v1, DEEP)

/* The number of levels is cut to what the sizes allow. */
ENTRY_BODY(cuMipmappedArrayCreate,
	(CUmipmappedArray * mipmap, const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
		unsigned int level_count),
	(mipmap, descriptor, level_count))
{
	unsigned int most = 1;
	size_t longest;

	if (!descriptor)
		return CUDA_ERROR_INVALID_VALUE;
	longest = descriptor->Width > descriptor->Height ? descriptor->Width : descriptor->Height;
	if ((descriptor->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0 &&
		descriptor->Depth > longest)
		longest = descriptor->Depth;
	while (longest >> most > 0 && most < ARRAY_LEVELS)
		most++;
	if (level_count > most)
		level_count = most;
	return make((void **)mipmap, descriptor, level_count > 0 ? level_count : 1);
}

static CUresult destroy(const void *handle, bool is_mipmap)
{
	struct array *array;

	LOCK_SCOPE(&driver.memory_lock);
	array = array_find(handle, is_mipmap);
	/* A level belongs to its mipmapped array. */
	if (!array || array->parent)
		return CUDA_ERROR_INVALID_HANDLE;
	array_drop(array);
	return CUDA_SUCCESS;
}

ENTRY_CALL_CURRENT(cuArrayDestroy, (CUarray array), destroy(array, false))
ENTRY_CALL_CURRENT(cuMipmappedArrayDestroy, (CUmipmappedArray mipmap), destroy(mipmap, true))

ENTRY_BODY(cuMipmappedArrayGetLevel,
	(CUarray * ret_array, CUmipmappedArray handle, unsigned int level),
	(ret_array, handle, level))
{
	struct array *mipmap, *array = NULL;
	CUresult result = CUDA_SUCCESS;

	if (!ret_array)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	mipmap = array_find(handle, true);
	if (!mipmap)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if (level >= mipmap->level_count)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		array = array_level(mipmap, level);
	if (result == CUDA_SUCCESS && !array)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		*ret_array = (CUarray)array;
	return result;
}

static CUresult describe(CUarray handle, CUDA_ARRAY3D_DESCRIPTOR *ret_descriptor)
{
	struct array *array;

	LOCK_SCOPE(&driver.memory_lock);
	array = array_find(handle, false);
	if (array)
		*ret_descriptor = array->descriptor;
	return array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

#define GET_DESCRIPTOR(symbol, type, members)                                                      \
	ENTRY_BODY(symbol, (type * ret_descriptor, CUarray array), (ret_descriptor, array))        \
	{                                                                                          \
		CUDA_ARRAY3D_DESCRIPTOR d;                                                         \
		CUresult result = ret_descriptor ? describe(array, &d) : CUDA_ERROR_INVALID_VALUE; \
                                                                                                   \
		if (result == CUDA_SUCCESS)                                                        \
			*ret_descriptor = (type){members(type, &d)};                               \
		return result;                                                                     \
	}
GET_DESCRIPTOR(cuArrayGetDescriptor_v2, CUDA_ARRAY_DESCRIPTOR, FLAT)
GET_DESCRIPTOR(cuArray3DGetDescriptor_v2, CUDA_ARRAY3D_DESCRIPTOR, DEEP)
GET_DESCRIPTOR(cuArrayGetDescriptor, CUDA_ARRAY_DESCRIPTOR_v1, FLAT)
GET_DESCRIPTOR(cuArray3DGetDescriptor, CUDA_ARRAY3D_DESCRIPTOR_v1, DEEP)

/* Only an array whose memory comes later is told how much that is (measured). */
static CUresult require(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret_requirements, const void *handle,
	bool is_mipmap, CUdevice ordinal)
{
	struct array *array;
	CUresult result = CUDA_SUCCESS;

	if (!ret_requirements)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	array = array_find(handle, is_mipmap);
	if (!array)
		result = CUDA_ERROR_INVALID_HANDLE;
	else if ((array->descriptor.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		*ret_requirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
			.size = (array->bytes + ARRAY_STEP - 1) / ARRAY_STEP * ARRAY_STEP,
			.alignment = ARRAY_STEP};
	return result;
}

ENTRY_CALL(cuArrayGetMemoryRequirements,
	(CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUarray array, CUdevice device),
	require(requirements, array, false, device))

ENTRY_CALL(cuMipmappedArrayGetMemoryRequirements,
	(CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUmipmappedArray mipmap, CUdevice device),
	require(requirements, mipmap, true, device))

/* Tiles of 64 KiB, as square as powers of two allow. */
static void set_tile(CUDA_ARRAY_SPARSE_PROPERTIES *p, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	unsigned int elements = (unsigned int)(ARRAY_STEP / array_element(d));
	bool is_cube =
		d->Depth > 0 && (d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) == 0;
	unsigned int *const in_turn[] = {
		&p->tileExtent.width, &p->tileExtent.height, &p->tileExtent.depth};

	p->tileExtent.width = p->tileExtent.height = p->tileExtent.depth = 1;
	for (unsigned int i = 0; elements > 1; elements /= 2, i++)
		*in_turn[i % (is_cube ? 3 : 2)] *= 2;
}

static CUresult describe_sparse(
	CUDA_ARRAY_SPARSE_PROPERTIES *ret_properties, const void *handle, bool is_mipmap)
{
	CUDA_ARRAY_SPARSE_PROPERTIES p = {.miptailSize = ARRAY_STEP};
	struct array *array;
	CUresult result = CUDA_SUCCESS;

	if (!ret_properties)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	array = array_find(handle, is_mipmap);
	if (!array) {
		result = CUDA_ERROR_INVALID_HANDLE;
	} else if ((array->descriptor.Flags & CUDA_ARRAY3D_SPARSE) == 0) {
		result = CUDA_ERROR_INVALID_VALUE;
	} else {
		set_tile(&p, &array->descriptor);
		while (p.miptailFirstLevel < array->level_count &&
			array->descriptor.Width >> p.miptailFirstLevel >= p.tileExtent.width &&
			array->descriptor.Height >> p.miptailFirstLevel >= p.tileExtent.height)
			p.miptailFirstLevel++;
		*ret_properties = p;
	}
	return result;
}

ENTRY_CALL(cuArrayGetSparseProperties, (CUDA_ARRAY_SPARSE_PROPERTIES * properties, CUarray array),
	describe_sparse(properties, array, false))

ENTRY_CALL(cuMipmappedArrayGetSparseProperties,
	(CUDA_ARRAY_SPARSE_PROPERTIES * properties, CUmipmappedArray mipmap),
	describe_sparse(properties, mipmap, true))

ENTRY_STREAM(cuMemMapArrayAsync, _ptsz, handle,
	(CUarrayMapInfo * list, unsigned int count, CUstream handle), (list, count, handle))
{
	uint64_t time_ns;
	CUresult result = CUDA_SUCCESS;

	if (!list || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	array_collect();
	time_ns = timeline_end(stream);
	LOCK_SCOPE(&driver.memory_lock);
	for (unsigned int i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = array_map(&list[i], time_ns);
	return result;
}
