/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: memory of other interfaces (Vulkan and the like), and ranges that others register.
 *
 * What another interface took is charged for as long as it is imported: nobody else charges it, and the
 * process keeps it.
 */
#define LOG_TOPIC LOG_MEMORY
#include "base/log.h"
#include "tenant/memory/allocations.h"
#include "tenant/memory/contexts.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/mapped.h"
#include "tenant/memory/opened.h"
#include "tenant/slice/table.h"

/* key the object, a the context, b units << 32 | ordinal */
static struct table externals;

static bool keep(CUexternalMemory memory, struct charge *charge)
{
	struct table_entry entry = {.key = (uintptr_t)memory};
	CUcontext context = NULL;

	if (!charge->device)
		return true;
	if (cuda.cuCtxGetCurrent)
		cuda.cuCtxGetCurrent(&context);
	entry.a = (uintptr_t)contexts_owner(context);
	entry.b = (uint64_t)charge->units << 32 | (uint64_t)charge->device->ordinal;
	if (table_put(&externals, entry) < 0) {
		log_error("no memory for our own tables, so an import is refused");
		return false;
	}
	charge_take(charge);
	return true;
}

static void give_back(uint64_t b)
{
	charge_give_back(
		state_device((CUdevice)(b & 0xff)), (b >> 32) * REGION_UNIT_BYTES, CHARGE_SHARED);
}

HOOK_BODY(cuImportExternalMemory, CUexternalMemory *, memory,
	const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *, description)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	CUresult r;

	if (!memory || !description || description->size == 0)
		return cuda.cuImportExternalMemory(memory, description);
	r = charge_reserve_current(
		allocations_worst_bytes(description->size), CHARGE_SHARED, &charge);
	if (r == CUDA_SUCCESS)
		r = cuda.cuImportExternalMemory(memory, description);
	if (r == CUDA_SUCCESS && !keep(*memory, &charge)) {
		cuda.cuDestroyExternalMemory(*memory);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return r;
}

HOOK_BODY(cuDestroyExternalMemory, CUexternalMemory, memory)
{
	struct table_entry entry;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || !memory ||
		table_take(&externals, (uintptr_t)memory, &entry) != 0)
		return cuda.cuDestroyExternalMemory(memory);
	r = cuda.cuDestroyExternalMemory(memory);
	if (r == CUDA_SUCCESS)
		give_back(entry.b);
	else if (table_put(&externals, entry) < 0)
		log_warn("a charge stays in the books until the process ends");
	return r;
}

void external_context_ended(struct device *device, CUcontext context)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_by_a(&externals, (uintptr_t)context, &cursor, &entry) == 0)
		give_back(entry.b);
}

void external_reset_after_fork(void)
{
	table_forget(&externals);
}

/* Everything that lies in the range, with the rest of what lies there in part, may be kept by it. */
static void range_may_stay(CUdeviceptr at, size_t bytes)
{
	CUdeviceptr base = at, end = at + bytes, last = 0;
	size_t size = 0;

	if (cuda.cuMemGetAddressRange_v2 &&
		cuda.cuMemGetAddressRange_v2(&base, &size, at) != CUDA_SUCCESS)
		base = at;
	if (cuda.cuMemGetAddressRange_v2 &&
		cuda.cuMemGetAddressRange_v2(&last, &size, end - 1) == CUDA_SUCCESS)
		end = last + size;
	allocations_may_stay(base);
	mapped_may_stay(base, end - base);
}

HOOK_BODY(cuMemGetHandleForAddressRange, void *, handle, CUdeviceptr, at, size_t, bytes,
	CUmemRangeHandleType, type, unsigned long long, flags)
{
	CUresult r = cuda.cuMemGetHandleForAddressRange(handle, at, bytes, type, flags);

	if (r == CUDA_SUCCESS && state_enter() == STATE_OPEN)
		range_may_stay(at, bytes);
	return r;
}
