/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: plain memory. */
#define LOG_TOPIC LOG_MEMORY
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/oversubscribe.h"
#include "tenant/memory/pools.h"
#include "tenant/memory/watch.h"
#include "tenant/slice/parts.h"

/*
 * An allocation: the bytes it asks for, none where the driver will refuse; what is kept of it, and what comes of a
 * refusal. The interfaces of CUDA 2 differ in the width of sizes and device pointers alone, and a pointer means the
 * same memory to both, so either may free what the other has allocated.
 */
#define ALLOCATE(symbol, kind, asked, kept, refused, type, ...)                               \
	HOOK_BODY(symbol, type *, pointer, __VA_ARGS__)                                       \
	{                                                                                     \
		_cleanup_charge_ struct charge charge = CHARGE_NULL;                          \
		uint64_t expected = pointer ? (asked) : 0;                                    \
		type made;                                                                    \
		CUresult r;                                                                   \
		CURRENT_STAYS();                                                              \
                                                                                              \
		if (expected == 0)                                                            \
			return cuda.symbol(pointer, HOOK_NAMES(__VA_ARGS__));                 \
		r = charge_reserve_current(allocations_worst_bytes(expected), kind, &charge); \
		if (r == CUDA_SUCCESS)                                                        \
			r = cuda.symbol(&made, HOOK_NAMES(__VA_ARGS__));                      \
		r = r == CUDA_SUCCESS ? kept : refused;                                       \
		return HOOK_GIVE(r, pointer, made);                                           \
	}

#define KEPT allocations_keep(made, bytes, &charge)
ALLOCATE(cuMemAlloc_v2, CHARGE_PLAIN, bytes, KEPT, oversubscribe_place(r, bytes, &charge, &made),
	CUdeviceptr, size_t, bytes)
ALLOCATE(cuMemAlloc, CHARGE_PLAIN, bytes, KEPT, r, CUdeviceptr_v1, unsigned int, bytes)

/* The driver chooses the pitch. The rows of a host fallback are as far apart as its own. */
#define ALLOCATE_PITCH(symbol, refused, type, size)                                                \
	HOOK_BODY(symbol, type *, pointer, size *, pitch, size, width, size, height, unsigned int, \
		element)                                                                           \
	{                                                                                          \
		_cleanup_charge_ struct charge charge = CHARGE_NULL;                               \
		uint64_t expected = allocations_pitched_bytes(width, height);                      \
		size step = (size)allocations_pitched_bytes(width, 1);                             \
		type made;                                                                         \
		CUresult r;                                                                        \
		CURRENT_STAYS();                                                                   \
                                                                                                   \
		if (!pointer || !pitch || expected == 0)                                           \
			return cuda.symbol(pointer, pitch, width, height, element);                \
		r = charge_reserve_current(                                                        \
			allocations_worst_bytes(expected), CHARGE_PLAIN, &charge);                 \
		if (r == CUDA_SUCCESS)                                                             \
			r = cuda.symbol(&made, &step, width, height, element);                     \
		r = r == CUDA_SUCCESS ? allocations_keep_pitched(                                  \
						made, expected, (uint64_t)step * height, &charge)  \
				      : refused;                                                   \
		if (r == CUDA_SUCCESS)                                                             \
			*pitch = step;                                                             \
		return HOOK_GIVE(r, pointer, made);                                                \
	}
ALLOCATE_PITCH(
	cuMemAllocPitch_v2, oversubscribe_place(r, expected, &charge, &made), CUdeviceptr, size_t)
ALLOCATE_PITCH(cuMemAllocPitch, r, CUdeviceptr_v1, unsigned int)

/* CHUNK_BYTES at least: managed memory is placed by pages of its own, not in shared chunks. */
#define KEPT_MANAGED allocations_keep(made, allocations_worst_bytes(bytes), &charge)

/*
 * Managed memory takes device memory when it is touched there, up to its size: so much is charged
 * from the beginning (docs/decisions/0009-managed-memory.md).
 */
ALLOCATE(cuMemAllocManaged, CHARGE_MANAGED, bytes, KEPT_MANAGED, r, CUdeviceptr, size_t, bytes,
	unsigned int, flags)

/* A free. */
struct ending {
	struct allocation allocation;
	bool is_watched, is_chunk_in_doubt;
	union {
		struct watch watch;
		struct reconcile_chunk chunk;
	};
};

/* Before the driver is asked; false where the pointer is the driver's alone. */
static inline bool free_begin(CUdeviceptr pointer, struct ending *ret_ending)
{
	if (state_enter() == STATE_ASIDE || allocations_take(pointer, &ret_ending->allocation) != 0)
		return false;
	ret_ending->is_watched = allocations_is_to_be_watched(&ret_ending->allocation);
	ret_ending->is_chunk_in_doubt =
		!ret_ending->is_watched && allocations_is_chunk_in_doubt(&ret_ending->allocation);
	if (UNLIKELY(ret_ending->is_watched))
		watch_begin(
			state_device(ret_ending->allocation.holding.device), &ret_ending->watch);
	else if (UNLIKELY(ret_ending->is_chunk_in_doubt))
		ret_ending->chunk =
			reconcile_chunk_ends(state_device(ret_ending->allocation.holding.device));
	return true;
}

/* What it gives back at most, as far as that is this pointer's alone. */
static inline uint64_t free_bytes(const struct ending *ending)
{
	const unsigned elsewhere = HOLDING_POOLED | HOLDING_SHARED | HOLDING_OBJECT;

	return ending->allocation.holding.flags & elsewhere
		       ? CHARGE_ANY_BYTES
		       : allocations_bytes(&ending->allocation);
}

static inline CUresult free_end(CUresult r, const struct ending *ending)
{
	if (UNLIKELY(ending->is_chunk_in_doubt && r == CUDA_SUCCESS))
		allocations_give_back_chunk(&ending->allocation, &ending->chunk);
	else if (LIKELY(!ending->is_watched || r != CUDA_SUCCESS))
		pools_after_free(r, &ending->allocation, true);
	else if (watch_has_risen(&ending->watch, allocations_bytes(&ending->allocation)))
		allocations_give_back(&ending->allocation);
	else
		holding_keep(&ending->allocation.holding);
	return r;
}

#define FREE(symbol, type)                                      \
	HOOK_BODY(symbol, type, pointer)                        \
	{                                                       \
		struct ending ending;                           \
		CHARGE_SCOPE();                                 \
                                                                \
		if (!free_begin(pointer, &ending)) {            \
			CHARGE_STRAY_SCOPE();                   \
			return cuda.symbol(pointer);            \
		}                                               \
		CHARGE_SCOPE_ENDS(free_bytes(&ending));         \
		return free_end(cuda.symbol(pointer), &ending); \
	}

FREE(cuMemFree_v2, CUdeviceptr)
FREE(cuMemFree, CUdeviceptr_v1)
