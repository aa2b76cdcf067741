/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: stream-ordered memory, its pools, and the synchronizations that empty them. */
#define LOG_TOPIC LOG_MEMORY
#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/allocations.h"
#include "tenant/driver/capture.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"
#include "tenant/memory/deferred_free.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/graphs.h"
#include "tenant/memory/oom.h"
#include "tenant/memory/oversubscribe.h"
#include "tenant/memory/pool_current.h"
#include "tenant/memory/pool_list.h"
#include "tenant/memory/pools.h"

/* Whether the process has one device, whatever context is current. */
static bool has_one_device(void)
{
	static _Atomic int known; /* relaxed both: it does not change */
	int count = atomic_load_explicit(&known, memory_order_relaxed);

	if (LIKELY(count > 0))
		return count == 1;
	if (!cuda.cuDeviceGetCount || cuda.cuDeviceGetCount(&count) != CUDA_SUCCESS)
		return false;
	atomic_store_explicit(&known, count, memory_order_relaxed);
	return count == 1;
}

/* The device whose current pool serves the stream. Of the only device the driver need not be asked. */
static CUresult device_of(CUstream stream, struct device **ret_device)
{
	CUcontext current = NULL, owner = NULL, popped;
	CUresult r;

	if (has_one_device() && state_meet_device(0, ret_device) == 0)
		return CUDA_SUCCESS;
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

/* One body for all forms: the driver's call with or without a pool of the program's choice. */
struct call {
	size_t bytes;
	CUmemoryPool chosen; /* NULL: the device's current one */
	CUstream stream;
	cuMemAllocAsync_fn *alloc; /* NULL: the program has chosen the pool */
};

static CUresult ask_driver(const struct call *c, CUdeviceptr *pointer)
{
	return c->alloc ? c->alloc(pointer, c->bytes, c->stream)
			: cuda.cuMemAllocFromPoolAsync(pointer, c->bytes, c->chosen, c->stream);
}

/* The pool that is charged, with the handle by which the driver is given it. */
static CUresult begin(const struct call *c, CUmemoryPool *ret_handle, struct pool **ret_pool)
{
	struct device *device;
	CUresult r;

	*ret_handle = c->chosen;
	if (c->chosen) {
		*ret_pool = pools_begin(c->chosen);
		return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	r = device_of(c->stream, &device);
	if (r != CUDA_SUCCESS)
		return r;
	*ret_pool = pool_current_begin(device, ret_handle);
	return *ret_pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The reservation was for a pool's growth; memory of its own is charged by its own size. */
static CUresult place_beyond(
	const struct call *c, CUresult r, struct charge *charge, CUdeviceptr *ret_pointer)
{
	struct device *device = charge->device;

	if (r != CUDA_ERROR_OUT_OF_MEMORY || !device || !oversubscribe_is_on(device))
		return r;
	charge_undo(charge);
	if (charge_reserve(device, allocations_worst_bytes(c->bytes), CHARGE_MANAGED, charge) !=
		CUDA_SUCCESS)
		return r;
	return oversubscribe_place(r, c->bytes, charge, ret_pointer);
}

/* From the pool that began; what it grew by is charged. */
static CUresult allocate_from(struct pool *pool, CUmemoryPool handle, const struct call *c,
	struct charge *charge, CUdeviceptr *ret_pointer)
{
	uint64_t since = charge_since();
	CUresult r = pools_reserve(pool, c->bytes, c->stream, charge);

	if (r == CUDA_SUCCESS) {
		r = cuda.cuMemAllocFromPoolAsync(ret_pointer, c->bytes, handle, c->stream);
		if (r == CUDA_SUCCESS)
			pools_keep(pool, charge);
		else
			pools_cancel(pool, charge);
	}
	pools_end(pool);
	if (r != CUDA_SUCCESS)
		return place_beyond(c, r, charge, ret_pointer);
	if (allocations_keep_pooled(*ret_pointer, pool, since) < 0) {
		cuda.cuMemFreeAsync(*ret_pointer, c->stream);
		pools_freed(pool, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

/* A current pool that is destroyed meanwhile was not the program's choice: another one is current then. */
#define CHOICES_MOST 8

/* By address: a struct that is passed by value is copied, and what was just written in parts is read slowly. */
static CUresult allocate(const struct call *c, CUdeviceptr *pointer)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	enum state_mode mode = state_enter();
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;
	struct capture_call capture;
	struct pool *pool = NULL;
	CUmemoryPool handle;
	CUdeviceptr made = 0;

	if (mode == STATE_ASIDE || !pointer || c->bytes == 0 || (!c->alloc && !c->chosen))
		return ask_driver(c, pointer);
	capture_enter(c->stream, &capture);
	if (capture.is_captured) {
		r = ask_driver(c, pointer);
		capture_leave(&capture);
		return r;
	}
	if (mode == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < CHOICES_MOST; i++) {
		charge_undo(&charge);
		r = begin(c, &handle, &pool);
		if (r == CUDA_SUCCESS)
			r = allocate_from(pool, handle, c, &charge, &made);
		if (r == CUDA_SUCCESS || !c->alloc || !pool || !pools_is_gone(pool))
			break;
	}
	return HOOK_GIVE(r, pointer, made);
}

/* Memory of no pool: it is charged until the stream has freed it. No graph that frees it gives it back. */
static CUresult release_other(
	const struct allocation *allocation, CUstream stream, cuMemFreeAsync_fn *call)
{
	bool is_host_fallback = allocations_is_host_fallback(allocation);
	bool may_stay = allocations_is_to_be_watched(allocation);
	struct capture_call capture;
	bool is_captured;
	CUresult r;
	CHARGE_SCOPE();

	capture_enter(stream, &capture);
	is_captured = capture.is_captured;
	if (is_host_fallback && is_captured)
		log_warn(
			"memory that was placed in the host's (CUDA_OVERSUBSCRIBE) cannot be freed "
			"by a graph",
			U64("pointer", allocation->pointer));
	if (may_stay || is_captured)
		r = call(allocation->pointer, stream);
	else
		r = deferred_free_allocation(allocation, stream, is_host_fallback ? NULL : call);
	capture_leave(&capture);
	if (r != CUDA_SUCCESS || is_captured)
		allocations_put_back(allocation);
	else if (may_stay) {
		holding_keep(&allocation->holding);
		log_info("memory that a descriptor may keep stays charged until the process ends");
	}
	return r;
}

/* What no books have: a graph's. */
static CUresult release_stray(CUdeviceptr pointer, CUstream stream, cuMemFreeAsync_fn *call)
{
	struct capture_call capture;
	CUresult r;
	CHARGE_STRAY_SCOPE();

	capture_enter(stream, &capture);
	r = capture.is_captured ? call(pointer, stream) : graphs_free(pointer, stream, call);
	capture_leave(&capture);
	return r;
}

static CUresult release(CUdeviceptr pointer, CUstream stream, cuMemFreeAsync_fn *call)
{
	struct allocation allocation;
	CUresult r;

	if (state_enter() == STATE_ASIDE) {
		CHARGE_STRAY_SCOPE();
		return call(pointer, stream);
	}
	if (allocations_take(pointer, &allocation) != 0)
		return release_stray(pointer, stream, call);
	if (!allocations_pool(&allocation))
		return release_other(&allocation, stream, call);
	r = call(pointer, stream);
	pools_after_free(r, &allocation, false);
	return r;
}

HOOK_FORMS(cuMemAllocAsync, _ptsz, CUdeviceptr *, pointer, size_t, bytes, CUstream, stream)
{
	return allocate(&(struct call){.bytes = bytes, .stream = stream, .alloc = real}, pointer);
}

HOOK_FORMS(cuMemAllocFromPoolAsync, _ptsz, CUdeviceptr *, pointer, size_t, bytes, CUmemoryPool,
	pool, CUstream, stream)
{
	return allocate(&(struct call){.bytes = bytes, .chosen = pool, .stream = stream}, pointer);
}

HOOK_FORMS(cuMemFreeAsync, _ptsz, CUdeviceptr, pointer, CUstream, stream)
{
	return release(pointer, stream, real);
}

/*
 * Memory of a managed pool may come to lie on any device, freed or not, and no driver tells how much of it does. So
 * where memory is bounded, or may be while the process runs, there are no such pools, as with drivers before CUDA 13.
 */
static bool is_refused(CUmemAllocationType type)
{
	return type == CU_MEM_ALLOCATION_TYPE_MANAGED && state_enter() == STATE_OPEN &&
	       everywhere_is_bounded();
}

#define GET_POOL(symbol)                                                                        \
	HOOK_BODY(symbol, CUmemoryPool *, pool, CUmemLocation *, location, CUmemAllocationType, \
		type)                                                                           \
	{                                                                                       \
		return is_refused(type) ? CUDA_ERROR_NOT_SUPPORTED                              \
					: cuda.symbol(pool, location, type);                    \
	}

GET_POOL(cuMemGetDefaultMemPool)
GET_POOL(cuMemGetMemPool)

/* A pool that is not in our books must not be there. */
static CUresult enter_pool(CUmemoryPool pool, const CUmemLocation *location)
{
	struct device *device = NULL;

	if ((location->type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    state_meet_device(location->id, &device) == 0) &&
		pools_add(pool, device) == 0)
		return CUDA_SUCCESS;
	cuda.cuMemPoolDestroy(pool);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

HOOK_BODY(cuMemPoolCreate, CUmemoryPool *, pool, const CUmemPoolProps *, properties)
{
	CUmemoryPool made = NULL;
	CUresult r;

	if (!pool || !properties || state_enter() != STATE_OPEN)
		return cuda.cuMemPoolCreate(pool, properties);
	HOOK_COPY(properties);
	if (is_refused(properties->allocType))
		return CUDA_ERROR_NOT_SUPPORTED;
	pool_list_create_begin();
	r = cuda.cuMemPoolCreate(&made, properties);
	FAULT("pool: made");
	if (r == CUDA_SUCCESS)
		r = enter_pool(made, &properties->location);
	pool_list_create_end();
	return HOOK_GIVE(r, pool, made);
}

HOOK_BODY(cuMemPoolDestroy, CUmemoryPool, pool)
{
	CHARGE_SCOPE();

	return state_enter() == STATE_OPEN ? pool_current_destroy(pool)
					   : cuda.cuMemPoolDestroy(pool);
}

HOOK_BODY(cuMemPoolTrimTo, CUmemoryPool, pool, size_t, keep_bytes)
{
	CUresult r;
	CHARGE_SCOPE();

	r = cuda.cuMemPoolTrimTo(pool, keep_bytes);
	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		pools_update(pool);
	return r;
}

/* After a synchronization, whatever its result: frees before it may have been done. */
static CUresult synchronized(CUresult r)
{
	/* First: in a child of fork() it makes the locks of the others new. */
	enum state_mode mode = state_enter();

	deferred_free_collect();
	pools_synchronized();
	if (mode == STATE_OPEN)
		oom_look();
	return r;
}

/* After a wait that the gate knows about. */
static CUresult waited(struct gate_wait *wait, CUresult r)
{
	gate_wait_end(wait, r);
	return synchronized(r);
}

HOOK_FORMS(cuStreamSynchronize, _ptsz, CUstream, stream)
{
	struct gate_wait wait;

	gate_wait_begin(stream, false, &wait);
	return waited(&wait, real(stream));
}

HOOK_BODY(cuEventSynchronize, CUevent, event)
{
	struct gate_wait wait;

	gate_wait_begin(GATE_ANY_STREAM, false, &wait);
	return waited(&wait, cuda.cuEventSynchronize(event));
}

HOOK_BODY(cuCtxSynchronize, void)
{
	struct gate_wait wait;

	gate_wait_begin(GATE_ANY_STREAM, true, &wait);
	return waited(&wait, cuda.cuCtxSynchronize());
}

HOOK_BODY(cuCtxSynchronize_v2, CUcontext, context)
{
	struct gate_wait wait;

	gate_wait_begin(GATE_ANY_STREAM, false, &wait);
	return waited(&wait, cuda.cuCtxSynchronize_v2(context));
}

HOOK_BODY(cuDeviceSetMemPool, CUdevice, device, CUmemoryPool, pool)
{
	CUresult r;

	if (!pool_current_choose_begin(pool))
		return CUDA_ERROR_INVALID_VALUE;
	r = cuda.cuDeviceSetMemPool(device, pool);
	pool_current_choose_end();
	return r;
}

HOOK_BODY(cuMemSetMemPool, CUmemLocation *, location, CUmemAllocationType, type, CUmemoryPool, pool)
{
	CUresult r;

	if (is_refused(type))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!pool_current_choose_begin(pool))
		return CUDA_ERROR_INVALID_VALUE;
	r = cuda.cuMemSetMemPool(location, type, pool);
	pool_current_choose_end();
	return r;
}
