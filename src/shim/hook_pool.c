/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: stream-ordered memory, its pools, and the synchronizations that empty them. */
#include "shim/allocations.h"
#include "shim/doors.h"
#include "shim/pools.h"
#include "shim/tiles.h"

/* The device whose current pool serves the stream. */
static CUresult device_of(CUstream stream, struct device **ret_device)
{
	CUcontext current = NULL, owner = NULL, popped;
	CUresult r;

	/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are streams of the current context. */
	if ((uintptr_t)stream <= 2 || !cuda.cuStreamGetCtx || !cuda.cuCtxGetCurrent ||
		cuda.cuStreamGetCtx(stream, &owner) != CUDA_SUCCESS ||
		cuda.cuCtxGetCurrent(&current) != CUDA_SUCCESS || owner == current)
		return state_current_device(ret_device);
	r = cuda.cuCtxPushCurrent_v2(owner);
	if (r != CUDA_SUCCESS)
		return r;
	r = state_current_device(ret_device);
	cuda.cuCtxPopCurrent_v2(&popped);
	return r;
}

/* What is allocated while a stream is captured belongs to the graph, not to the pool. */
static bool is_capturing(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return cuda.cuStreamIsCapturing &&
	       cuda.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* One body for all forms: the driver's call with or without a pool of the program's choice. */
struct call {
	CUdeviceptr *pointer;
	size_t bytes;
	CUmemoryPool chosen; /* NULL: the device's current one */
	CUstream stream;
	cuMemAllocAsync_fn *alloc;
	cuMemAllocFromPoolAsync_fn *alloc_from;
};

static CUresult ask_driver(const struct call *c)
{
	return c->alloc ? c->alloc(c->pointer, c->bytes, c->stream)
			: c->alloc_from(c->pointer, c->bytes, c->chosen, c->stream);
}

static CUresult choose_pool(const struct call *c, struct pool **ret_pool)
{
	struct device *device;
	CUresult r;

	if (!c->alloc) {
		*ret_pool = pools_find(c->chosen);
		return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = device_of(c->stream, &device);
	if (r != CUDA_SUCCESS)
		return r;
	*ret_pool = pools_current(device);
	return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult allocate(const struct call *c)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	enum state_mode mode = state_enter();
	struct pool *pool;
	CUresult r;

	if (mode == STATE_ASIDE || !c->pointer || c->bytes == 0 || (!c->alloc && !c->chosen) ||
		is_capturing(c->stream))
		return ask_driver(c);
	if (mode == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = choose_pool(c, &pool);
	if (r == CUDA_SUCCESS)
		r = pools_reserve(pool, c->bytes, c->stream, &charge);
	if (r == CUDA_SUCCESS)
		r = ask_driver(c);
	if (r != CUDA_SUCCESS)
		return r;
	pools_keep(pool, &charge);
	pools_allocated(pool);
	if (allocations_keep_pooled(*c->pointer, pool) < 0) {
		cuda.cuMemFreeAsync(*c->pointer, c->stream);
		pools_freed(pool, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

static CUresult release(CUdeviceptr pointer, CUstream stream, cuMemFreeAsync_fn *call)
{
	struct allocation allocation;
	CUresult r;

	if (state_enter() == STATE_ASIDE || allocations_take(pointer, &allocation) != 0)
		return call(pointer, stream);
	r = call(pointer, stream);
	if (r != CUDA_SUCCESS) {
		allocations_put_back(&allocation);
		return r;
	}
	allocations_give_back(&allocation);
	if (allocations_pool(&allocation))
		pools_freed(allocations_pool(&allocation), false);
	return r;
}

HOOK_BODY(cuMemAllocAsync, CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return allocate(&(struct call){.pointer = pointer,
		.bytes = bytes,
		.stream = stream,
		.alloc = cuda.cuMemAllocAsync});
}

HOOK_BODY(cuMemAllocAsync_ptsz, CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return allocate(&(struct call){.pointer = pointer,
		.bytes = bytes,
		.stream = stream,
		.alloc = cuda.cuMemAllocAsync_ptsz});
}

HOOK_BODY(cuMemAllocFromPoolAsync, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
	CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return allocate(&(struct call){.pointer = pointer,
		.bytes = bytes,
		.chosen = pool,
		.stream = stream,
		.alloc_from = cuda.cuMemAllocFromPoolAsync});
}

HOOK_BODY(cuMemAllocFromPoolAsync_ptsz, CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
	CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return allocate(&(struct call){.pointer = pointer,
		.bytes = bytes,
		.chosen = pool,
		.stream = stream,
		.alloc_from = cuda.cuMemAllocFromPoolAsync_ptsz});
}

HOOK_BODY(cuMemFreeAsync, CUdeviceptr pointer, CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return release(pointer, stream, cuda.cuMemFreeAsync);
}

HOOK_BODY(cuMemFreeAsync_ptsz, CUdeviceptr pointer, CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return release(pointer, stream, cuda.cuMemFreeAsync_ptsz);
}

HOOK_BODY(cuMemPoolCreate, CUmemoryPool *pool, const CUmemPoolProps *properties)
{
	struct device *device = NULL;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuMemPoolCreate(pool, properties);
	if (r != CUDA_SUCCESS || state_enter() != STATE_OPEN)
		return r;
	if (properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		state_meet_device(properties->location.id, &device) != 0)
		state_on_failure("pool", "its device is not in the region");
	else
		pools_add(*pool, device);
	return r;
}

HOOK_BODY(cuMemPoolDestroy, CUmemoryPool pool)
{
	struct pool *known;
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	if (state_enter() != STATE_OPEN)
		return cuda.cuMemPoolDestroy(pool);
	known = pools_destroy_begin(pool);
	r = cuda.cuMemPoolDestroy(pool);
	pools_destroy_end(known, pool, r == CUDA_SUCCESS);
	return r;
}

HOOK_BODY(cuMemPoolTrimTo, CUmemoryPool pool, size_t keep_bytes)
{
	CUresult r;

	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	r = cuda.cuMemPoolTrimTo(pool, keep_bytes);
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		pools_settle_handle(pool);
	return r;
}

/* After a synchronization, whatever its result: frees before it may have been done. */
static CUresult synchronized(CUresult r)
{
	pools_synchronized();
	tiles_settle();
	return r;
}

HOOK_BODY(cuStreamSynchronize, CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return synchronized(cuda.cuStreamSynchronize(stream));
}

HOOK_BODY(cuStreamSynchronize_ptsz, CUstream stream)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return synchronized(cuda.cuStreamSynchronize_ptsz(stream));
}

HOOK_BODY(cuEventSynchronize, CUevent event)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return synchronized(cuda.cuEventSynchronize(event));
}

HOOK_BODY(cuCtxSynchronize, void)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return synchronized(cuda.cuCtxSynchronize());
}

HOOK_BODY(cuCtxSynchronize_v2, CUcontext context)
{
	if (!doors_attach_cuda())
		return CUDA_ERROR_NOT_INITIALIZED;
	return synchronized(cuda.cuCtxSynchronize_v2(context));
}
