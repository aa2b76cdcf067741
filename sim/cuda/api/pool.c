/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools and allocation in the order of a stream. */
#include <stddef.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/graph/capture.h"
#include "sim/cuda/model/memory/address.h"
#include "sim/cuda/model/memory/lookup.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/time/timeline.h"

static CUresult alloc(struct pool *pool, size_t bytes, struct stream *stream, CUdeviceptr *ret_base)
{
	/* Measured: nothing is allocated, and that is no error. */
	if (bytes == 0) {
		*ret_base = 0;
		return CUDA_SUCCESS;
	}
	/* An imported pool gives no memory of its own. */
	return pool->is_imported ? CUDA_ERROR_INVALID_VALUE
				 : pool_take(pool, bytes, stream, ret_base);
}

ENTRY_FORMS(cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream handle),
	(dptr, bytesize, handle))
{
	struct stream *stream;
	CUresult result;

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_stream(handle, is_thread, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	LOCK_SCOPE(&driver.memory_lock);
	if (capture_is_on(stream))
		result = capture_alloc(stream, stream->context->device, bytesize, dptr);
	else
		result = alloc(stream->context->device->current_pool, bytesize, stream, dptr);
	return result;
}

ENTRY_FORMS(cuMemAllocFromPoolAsync, _ptsz,
	(CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool_handle, CUstream handle),
	(dptr, bytesize, pool_handle, handle))
{
	struct stream *stream;
	struct pool *pool;
	CUresult result;

	if (!dptr)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_stream(handle, is_thread, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	LOCK_SCOPE(&driver.memory_lock);
	pool = pool_check(pool_handle);
	if (!pool)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (capture_is_on(stream))
		result = capture_alloc(stream, pool->device, bytesize, dptr);
	else
		result = alloc(pool, bytesize, stream, dptr);
	return result;
}

ENTRY_FORMS(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream handle), (dptr, handle))
{
	struct stream *stream;
	uint64_t end;
	CUresult result = context_stream(handle, is_thread, &stream);

	if (result != CUDA_SUCCESS || dptr == 0)
		return result;
	end = timeline_end(stream);
	LOCK_SCOPE(&driver.memory_lock);
	if (!address_find_owner(dptr))
		return CUDA_ERROR_INVALID_VALUE;
	return capture_is_on(stream) ? capture_free(stream, dptr) : lookup_free_at(dptr, end);
}

ENTRY_BODY(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props), (pool, props))
{
	bool is_managed = props && props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;
	struct device *device;
	struct pool *made;

	if (!pool || !props || (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED && !is_managed))
		return CUDA_ERROR_INVALID_VALUE;
	if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE && !is_managed)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* What has no place is where the first device touches it. */
	device = driver_device(
		props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : 0);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	made = pool_new(device, props);
	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pool = (CUmemoryPool)made;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemPoolDestroy, (CUmemoryPool pool), (pool))
{
	LOCK_SCOPE(&driver.memory_lock);
	return pool_destroy(pool_check(pool));
}

ENTRY_BODY(cuMemPoolTrimTo, (CUmemoryPool handle, size_t keep_bytes), (handle, keep_bytes))
{
	struct pool *pool;

	LOCK_SCOPE(&driver.memory_lock);
	pool = pool_check(handle);
	if (pool && pool->base != 0) {
		pool_finish(pool, timeline_now(pool->device));
		pool_trim(pool, keep_bytes);
	}
	return pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_attribute(struct pool *pool, CUmemPool_attribute attribute, const void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - 1] = *(const int *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->threshold = *(const cuuint64_t *)value;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(const cuuint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->reserved_high = pool->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(const cuuint64_t *)value != 0)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_high = pool->used;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult get_attribute(const struct pool *pool, CUmemPool_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attribute - 1];
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(cuuint64_t *)value = pool->threshold;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->reserved;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(cuuint64_t *)value = pool->reserved_high;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(cuuint64_t *)value = pool->used;
		return CUDA_SUCCESS;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(cuuint64_t *)value = pool->used_high;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

ENTRY_BODY(cuMemPoolSetAttribute, (CUmemoryPool handle, CUmemPool_attribute attribute, void *value),
	(handle, attribute, value))
{
	struct pool *pool;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	pool = pool_check(handle);
	return pool ? set_attribute(pool, attribute, value) : CUDA_ERROR_INVALID_VALUE;
}

ENTRY_BODY(cuMemPoolGetAttribute, (CUmemoryPool handle, CUmemPool_attribute attribute, void *value),
	(handle, attribute, value))
{
	struct pool *pool;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	pool = pool_check(handle);
	if (pool) {
		if (pool->pending > 0)
			pool_finish(pool, timeline_now(pool->device));
		result = get_attribute(pool, attribute, value);
	}
	return result;
}

/* Access by other devices is always there; granting it is checked only. */
ENTRY_BODY(cuMemPoolSetAccess,
	(CUmemoryPool handle, const CUmemAccessDesc *descriptions, size_t count),
	(handle, descriptions, count))
{
	struct pool *pool = pool_check(handle);

	if (!pool || (count > 0 && !descriptions))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_INVALID_VALUE;
		if (!driver_device(descriptions[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
	}
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuMemPoolGetAccess,
	(CUmemAccess_flags * flags, CUmemoryPool handle, CUmemLocation *location),
	(flags, handle, location))
{
	struct pool *pool = pool_check(handle);

	if (!pool || !flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
				 location->id == pool->device->ordinal
			 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return CUDA_SUCCESS;
}

static CUresult get_pool(CUmemoryPool *ret_pool, CUdevice ordinal, bool is_default)
{
	struct device *device = driver_device(ordinal);

	if (!ret_pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	*ret_pool = (CUmemoryPool)(is_default ? device->default_pool : device->current_pool);
	return CUDA_SUCCESS;
}

static CUresult set_pool(CUdevice ordinal, CUmemoryPool handle)
{
	struct device *device = driver_device(ordinal);
	struct pool *pool;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	LOCK_SCOPE(&driver.memory_lock);
	pool = pool_check(handle);
	if (!pool || pool->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	device->current_pool = pool;
	return CUDA_SUCCESS;
}

ENTRY_CALL(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
	get_pool(pool, device, true))

ENTRY_CALL(
	cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device), get_pool(pool, device, false))

ENTRY_CALL(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool), set_pool(device, pool))

/* Pools of the host, and default ones of managed memory, are not simulated. */
static CUresult check_location(const CUmemLocation *location, CUmemAllocationType type)
{
	if (!location)
		return CUDA_ERROR_INVALID_VALUE;
	return location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
			       type == CU_MEM_ALLOCATION_TYPE_PINNED
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_NOT_SUPPORTED;
}

ENTRY_BODY(cuMemGetDefaultMemPool,
	(CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
	(pool, location, type))
{
	CUresult result = check_location(location, type);

	return result == CUDA_SUCCESS ? get_pool(pool, location->id, true) : result;
}

ENTRY_BODY(cuMemGetMemPool,
	(CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
	(pool, location, type))
{
	CUresult result = check_location(location, type);

	return result == CUDA_SUCCESS ? get_pool(pool, location->id, false) : result;
}

ENTRY_BODY(cuMemSetMemPool, (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool),
	(location, type, pool))
{
	CUresult result = check_location(location, type);

	return result == CUDA_SUCCESS ? set_pool(location->id, pool) : result;
}
