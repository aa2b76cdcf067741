/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: memory of other interfaces (Vulkan and the like), and ranges that others register.
 *
 * What another interface took is charged for as long as it is imported: nobody else charges it, and the
 * process keeps it. NVML shows it for this process where the interface took it here; where another one did, it would be no
 * cover for as much that nobody names.
 */
#define LOG_TOPIC LOG_MEMORY
#include <string.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/mapped.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/reconcile.h"
#include "tenant/slice/quota.h"

static bool keep(
	CUexternalMemory memory, struct charge *charge, const struct reconcile_figure *before)
{
	struct device *device = charge->device;
	unsigned flags;
	int64_t bytes;

	if (!device)
		return true;
	if (!current_is_same(charge->current)) {
		log_warn("another context was made current within an import, so it is refused");
		return false;
	}
	flags = reconcile_is_shown(device, charge, before) ? HOLDING_OPEN_FOREIGN : 0;
	/* Of no context's life: it stays until it is destroyed, and nothing says that it ends with a context. */
	if (holding_put(HOLDING_EXTERNAL, (uintptr_t)memory, holding_of(charge, 0, flags),
		    charge->since) < 0) {
		log_error("no memory for our own tables, so an import is refused");
		return false;
	}
	bytes = (int64_t)charge_take(charge);
	if (flags)
		ipc_open_foreign(device, bytes);
	else
		reconcile_before(device); /* what it may be shown as is no later call's */
	return true;
}

HOOK_BODY(cuImportExternalMemory, CUexternalMemory *, memory,
	const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *, description)
{
	_cleanup_charge_ struct charge charge = CHARGE_NULL;
	struct reconcile_figure before = {.is_told = false};
	CUexternalMemory made = NULL;
	CUresult r = CUDA_SUCCESS;
	CURRENT_STAYS();

	if (!memory || !description)
		return cuda.cuImportExternalMemory(memory, description);
	HOOK_COPY(description);
	if (description->size)
		r = charge_reserve_current(
			allocations_worst_bytes(description->size), CHARGE_SHARED, &charge);
	if (r == CUDA_SUCCESS && charge.device)
		before = reconcile_ask(charge.device);
	if (r == CUDA_SUCCESS)
		r = cuda.cuImportExternalMemory(&made, description);
	if (r == CUDA_SUCCESS && !keep(made, &charge, &before)) {
		charge_let_go(&charge, cuda.cuDestroyExternalMemory(made));
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	return HOOK_GIVE(r, memory, made);
}

HOOK_BODY(cuDestroyExternalMemory, CUexternalMemory, memory)
{
	struct holding_end end;
	CUresult r;
	CHARGE_SCOPE();

	if (state_enter() == STATE_ASIDE || !memory ||
		holding_end_begin(HOLDING_EXTERNAL, (uintptr_t)memory, &end) != 0) {
		CHARGE_STRAY_SCOPE();
		return cuda.cuDestroyExternalMemory(memory);
	}
	r = cuda.cuDestroyExternalMemory(memory);
	holding_end_done(&end, r == CUDA_SUCCESS);
	if (!(end.holding.flags & HOLDING_OPEN_FOREIGN))
		reconcile_look_again(state_device(end.holding.device));
	return r;
}

/*
 * What lies in a range, pinned while the driver makes a descriptor that may keep it: memory of a pointer, or
 * mappings, with the rest of what lies there in part.
 */
struct range {
	CUdeviceptr pointer;
	struct holding holding; /* of the pointer; serial 0: there is none */
	enum holding_table in;
	struct mapped_range mapped;
};

static bool pin_pointer(struct range *range, enum holding_table in)
{
	range->in = in;
	return holding_pin(in, range->pointer, &range->holding) == 0;
}

static CUdeviceptr base_of(CUdeviceptr at)
{
	CUdeviceptr base = at;

	if (cuda.cuMemGetAddressRange_v2 &&
		cuda.cuMemGetAddressRange_v2(&base, NULL, at) != CUDA_SUCCESS)
		base = at;
	return base;
}

static void unpin_pointer(const struct range *range)
{
	if (range->holding.serial)
		holding_unpin(range->in, range->pointer, range->holding.serial);
}

/* Whether what lies there is what was pinned: another thread may have freed memory that was there before, and taken other. */
static bool is_pinned(const struct range *range, CUdeviceptr at, uint64_t mapped_bytes)
{
	return range->holding.serial
		       ? base_of(at) == range->pointer
		       : mapped_bytes && mapped_range_bytes(&range->mapped) == mapped_bytes;
}

/* CUDA_ERROR_INVALID_VALUE: nothing lies there, or another thread is about to free it. */
static CUresult pin_range(CUdeviceptr at, size_t bytes, struct range *range)
{
	CUdeviceptr start = at, end = at + bytes, other;
	CUresult r;

	range->holding.serial = 0;
	range->pointer = base_of(at);
	FAULT("range: found");
	if (pin_pointer(range, HOLDING_POINTERS) || pin_pointer(range, HOLDING_OPENED))
		end = start;
	else if (!mapped_find(at, &start, &other) || !mapped_find(end - 1, &other, &end))
		return CUDA_ERROR_INVALID_VALUE;
	r = mapped_stay_begin(start, end - start, &range->mapped);
	if (r == CUDA_SUCCESS && !is_pinned(range, at, end - start)) {
		mapped_stay_end(&range->mapped, false);
		r = CUDA_ERROR_INVALID_VALUE;
	}
	if (r != CUDA_SUCCESS)
		unpin_pointer(range);
	return r;
}

static bool unpin_range(struct range *range, bool is_made)
{
	bool is_right = mapped_stay_end(&range->mapped, is_made);

	if (range->holding.serial && is_made)
		return holding_stay_by_pin(range->in, range->pointer, range->holding.serial);
	unpin_pointer(range);
	return is_right;
}

HOOK_BODY(cuMemGetHandleForAddressRange, void *, handle, CUdeviceptr, at, size_t, bytes,
	CUmemRangeHandleType, type, unsigned long long, flags)
{
	struct range range;
	CUresult r;
	int made = 0;
	CHARGE_SCOPE();

	HOOK_NEEDS_BOOKS(!handle || !bytes,
		cuda.cuMemGetHandleForAddressRange(handle, at, bytes, type, flags));
	if (type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || !quota_may_export())
		return CUDA_ERROR_NOT_SUPPORTED;
	r = pin_range(at, bytes, &range);
	if (r != CUDA_SUCCESS)
		return r;
	FAULT("range: pinned");
	r = cuda.cuMemGetHandleForAddressRange(&made, at, bytes, type, flags);
	FAULT("range: the driver was called");
	if (!unpin_range(&range, r == CUDA_SUCCESS)) {
		close(made);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (r == CUDA_SUCCESS)
		memcpy(handle, &made, sizeof(made));
	return r;
}
