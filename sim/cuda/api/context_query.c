/* SPDX-License-Identifier: Apache-2.0 */
/* Properties and limits of a context, and waiting for it. */
#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/array.h"
#include "sim/cuda/model/memory/heap.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/memory/room.h"
#include "sim/cuda/model/time/callback.h"
#include "sim/machine/topology.h"

ENTRY_CURRENT(cuCtxGetDevice, (CUdevice * device), (device))
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device->ordinal;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxGetDevice_v2, (CUdevice * device, CUcontext handle), (device, handle))
{
	struct context *context;
	CUresult result = context_check(handle, &context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = context->device->ordinal;
	return CUDA_SUCCESS;
}

static CUresult synchronize(struct context *context)
{
	callback_wait_all(context, NULL);
	pool_collect(context->device);
	array_collect();
	heap_collect();
	return CUDA_SUCCESS;
}

ENTRY_CALL_CURRENT(cuCtxSynchronize, (void), synchronize(entry.context))

ENTRY_BODY(cuCtxSynchronize_v2, (CUcontext handle), (handle))
{
	struct context *context;
	CUresult result = context_check(handle, &context);

	return result == CUDA_SUCCESS ? synchronize(context) : result;
}

ENTRY_CURRENT(cuCtxGetFlags, (unsigned int *flags), (flags))
{
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = context->flags;
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuCtxSetFlags, (unsigned int flags), (flags))
{
	if ((flags & ~(unsigned int)CU_CTX_FLAGS_MASK) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	context->flags = flags;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxGetId, (CUcontext handle, unsigned long long *id), (handle, id))
{
	struct context *context;
	CUresult result = context_check_itself(handle, &context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	*id = context->id;
	return CUDA_SUCCESS;
}

ENTRY_BODY(cuCtxGetApiVersion, (CUcontext handle, unsigned int *version), (handle, version))
{
	struct context *context;
	CUresult result = context_check(handle, &context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = context->api_version;
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuCtxGetLimit, (size_t * value, CUlimit limit), (value, limit))
{
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if ((unsigned int)limit >= CONTEXT_LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	*value = context_limit(context, limit);
	return CUDA_SUCCESS;
}

/* The most local memory that a thread may have on any architecture. */
#define FRAME_BYTES_MAX (512u << 10)

/* All but the stack limit are only remembered: what they ask for is taken when it is used. */
ENTRY_CURRENT(cuCtxSetLimit, (CUlimit limit, size_t value), (limit, value))
{
	if ((unsigned int)limit >= CONTEXT_LIMITS)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	if (limit == CU_LIMIT_STACK_SIZE)
		return value <= FRAME_BYTES_MAX ? room_set_local(context, value)
						: CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.memory_lock);
	/* Too late when it was used. */
	if ((limit == CU_LIMIT_MALLOC_HEAP_SIZE && context->code.has_heap) ||
		(limit == CU_LIMIT_PRINTF_FIFO_SIZE && context->code.has_printed))
		return CUDA_ERROR_INVALID_VALUE;
	context_set_limit(context, limit, value);
	return CUDA_SUCCESS;
}

ENTRY_CALL_CURRENT(cuCtxResetPersistingL2Cache, (void), CUDA_SUCCESS)

ENTRY_CURRENT(cuCtxGetCacheConfig, (CUfunc_cache * config), (config))
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = context->cache_config;
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuCtxSetCacheConfig, (CUfunc_cache config), (config))
{
	context->cache_config = config;
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuCtxGetSharedMemConfig, (CUsharedconfig * config), (config))
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuCtxSetSharedMemConfig, (CUsharedconfig config), (config))
{
	context->shared_config = config;
	return CUDA_SUCCESS;
}

ENTRY_CURRENT(cuCtxGetStreamPriorityRange, (int *least, int *greatest), (least, greatest))
{
	if (least)
		*least = 0;
	/* Six levels since compute capability 7. */
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

/* Copies between devices work without it, so peer access only has to be granted. */
ENTRY_CURRENT(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags), (peer, flags))
{
	struct context *other;
	CUresult result;

	if (flags != 0 || !peer)
		return CUDA_ERROR_INVALID_VALUE;
	result = context_check(peer, &other);
	if (result != CUDA_SUCCESS)
		return result;
	if (other == context)
		return CUDA_ERROR_INVALID_DEVICE;
	/* Two contexts of one device reach each other wherever two devices could. */
	if (other->device == context->device && driver.board->nvlink_count > 0)
		return CUDA_SUCCESS;
	return topology_has_peer(driver.board, context->device->index, other->device->index)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

ENTRY_CALL_CURRENT(cuCtxDisablePeerAccess, (CUcontext peer), context_check(peer, &entry.context))
