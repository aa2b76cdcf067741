/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: multicast objects, and the memory that is bound to them. */
#define LOG_TOPIC LOG_MEMORY
#include "base/log.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/multicast.h"

HOOK_BODY(cuMulticastCreate, CUmemGenericAllocationHandle *, object, const CUmulticastObjectProp *,
	properties)
{
	CUmemGenericAllocationHandle made = 0;

	if (state_enter() == STATE_ASIDE || !object || !properties)
		return cuda.cuMulticastCreate(object, properties);
	HOOK_COPY(properties);
	return HOOK_GIVE(multicast_create(properties, &made), object, made);
}

static CUresult bind(const struct multicast_part *part, CUmemGenericAllocationHandle memory)
{
	struct mapped_reference reference;
	CUresult r;
	CHARGE_SCOPE();

	r = mapped_refer_begin(memory, &reference);
	return r == CUDA_SUCCESS ? multicast_bind(part, &reference) : r;
}

HOOK_BODY(cuMulticastBindMem, CUmemGenericAllocationHandle, object, size_t, offset,
	CUmemGenericAllocationHandle, memory, size_t, memory_offset, size_t, size,
	unsigned long long, flags)
{
	if (state_enter() == STATE_ASIDE)
		return cuda.cuMulticastBindMem(object, offset, memory, memory_offset, size, flags);
	return bind(&(struct multicast_part){.object = object,
			    .offset = offset,
			    .memory_offset = memory_offset,
			    .size = size,
			    .flags = flags},
		memory);
}

HOOK_BODY(cuMulticastBindMem_v2, CUmemGenericAllocationHandle, object, CUdevice, device, size_t,
	offset, CUmemGenericAllocationHandle, memory, size_t, memory_offset, size_t, size,
	unsigned long long, flags)
{
	/* No memory has this handle: the driver refuses it in its own words. */
	if (state_enter() == STATE_ASIDE || !memory)
		return cuda.cuMulticastBindMem_v2(
			object, device, offset, memory, memory_offset, size, flags);
	return bind(&(struct multicast_part){.object = object,
			    .offset = offset,
			    .memory_offset = memory_offset,
			    .size = size,
			    .flags = flags,
			    .is_named = true,
			    .device = device},
		memory);
}

static CUresult bind_at(struct multicast_part *part, CUdeviceptr memory)
{
	struct mapped_reference reference, own;
	CUmemGenericAllocationHandle retained;
	CUdeviceptr start, end;
	CUresult r;
	CHARGE_SCOPE();

	if (!mapped_find(memory, &start, &end) || part->size > end - memory ||
		mapped_refer_begin_at(memory, &reference) != CUDA_SUCCESS) {
		log_info("only memory of one handle is bound to a multicast object");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	/* The program may have released the handle. */
	r = cuda.cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)memory);
	if (r == CUDA_SUCCESS && (retained != reference.handle ||
					 mapped_refer_begin(retained, &own) != CUDA_SUCCESS)) {
		mapped_let_go(retained);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS) {
		(void)mapped_refer_end(&reference, false);
		return r;
	}
	part->memory_offset = memory - start;
	r = multicast_bind(part, &reference);
	/* What keeps the memory beyond the program's own references is charged with it. */
	(void)mapped_refer_end(&own, !mapped_let_go(retained));
	return r;
}

/*
 * The memory is bound by its handle, as what is at the address may be other memory by then. Memory of a pool, which lives on in
 * the pool's books, is not bound.
 */
HOOK_BODY(cuMulticastBindAddr, CUmemGenericAllocationHandle, object, size_t, offset, CUdeviceptr,
	memory, size_t, size, unsigned long long, flags)
{
	if (state_enter() == STATE_ASIDE || !memory)
		return cuda.cuMulticastBindAddr(object, offset, memory, size, flags);
	return bind_at(
		&(struct multicast_part){
			.object = object, .offset = offset, .size = size, .flags = flags},
		memory);
}

HOOK_BODY(cuMulticastBindAddr_v2, CUmemGenericAllocationHandle, object, CUdevice, device, size_t,
	offset, CUdeviceptr, memory, size_t, size, unsigned long long, flags)
{
	if (state_enter() == STATE_ASIDE || !memory)
		return cuda.cuMulticastBindAddr_v2(object, device, offset, memory, size, flags);
	return bind_at(&(struct multicast_part){.object = object,
			       .offset = offset,
			       .size = size,
			       .flags = flags,
			       .is_named = true,
			       .device = device},
		memory);
}

HOOK_BODY(cuMulticastUnbind, CUmemGenericAllocationHandle, object, CUdevice, device, size_t, offset,
	size_t, size)
{
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE)
		return cuda.cuMulticastUnbind(object, device, offset, size);
	return multicast_unbind(object, device, offset, size);
}
