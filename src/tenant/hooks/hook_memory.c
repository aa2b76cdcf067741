/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: plain memory. */
#define LOG_TOPIC LOG_MEMORY
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/memory/allocations.h"
#include "tenant/hooks/hook.h"
#include "tenant/memory/oversubscribe.h"
#include "tenant/memory/pools.h"
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

static uint64_t free_bytes(void)
{
	size_t free = 0, total;

	return cuda.cuMemGetInfo_v2 && cuda.cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS ? free
											   : 0;
}

/*
 * A free. Memory that something else may keep, like a network card that has it registered, is watched: where the
 * device has no more free afterwards, or another thread is in the way, the charge stays for as long as the process.
 */
struct free_reading {
	uint64_t bytes;		   /* 0: not known */
	uint64_t traffic, changes; /* of this process, and of the slice's books */
};
struct ending {
	struct allocation allocation;
	bool is_watched;
	struct free_reading before;
};

static uint64_t free_bytes_of(const struct device *device)
{
	struct device *current;

	return state_current_device(&current) == CUDA_SUCCESS && current == device ? free_bytes()
										   : 0;
}

/* What has changed so far, with what pools have given back by themselves. */
static void read_changes(struct device *device, struct free_reading *reading)
{
	parts_collect(device);
	reading->traffic = charge_traffic();
	reading->changes = ledger_changes(state.region.file, device->entry);
}

static void watch(const struct allocation *allocation, struct free_reading *ret_before)
{
	struct device *device = state_device(allocation->holding.device);

	read_changes(device, ret_before);
	ret_before->bytes = free_bytes_of(device);
}

/* Before the driver is asked; false where the pointer is the driver's alone. */
static inline bool free_begin(CUdeviceptr pointer, struct ending *ret_ending)
{
	if (state_enter() == STATE_ASIDE || allocations_take(pointer, &ret_ending->allocation) != 0)
		return false;
	ret_ending->is_watched = allocations_is_to_be_watched(&ret_ending->allocation);
	if (UNLIKELY(ret_ending->is_watched))
		watch(&ret_ending->allocation, &ret_ending->before);
	return true;
}

static void free_watched(const struct ending *ending)
{
	const struct allocation *allocation = &ending->allocation;
	struct device *device = state_device(allocation->holding.device);
	struct free_reading before = ending->before, after = {.bytes = free_bytes_of(device)};
	bool was_alone;

	/* Both looks at what is free lie between both at the changes: another free in between is one. */
	read_changes(device, &after);
	was_alone = before.traffic == after.traffic && (uint32_t)after.traffic == 1 &&
		    before.changes == after.changes;
	if (was_alone && before.bytes &&
		after.bytes >= before.bytes + allocations_bytes(allocation))
		allocations_give_back(allocation);
	else
		log_info("freed memory is kept by a descriptor: charged until the process ends");
}

static inline CUresult free_end(CUresult r, const struct ending *ending)
{
	if (UNLIKELY(ending->is_watched && r == CUDA_SUCCESS))
		free_watched(ending);
	else
		pools_after_free(r, &ending->allocation, true);
	return r;
}

#define FREE(symbol, type)                                      \
	HOOK_BODY(symbol, type, pointer)                        \
	{                                                       \
		struct ending ending;                           \
		CHARGE_SCOPE();                                 \
                                                                \
		if (!free_begin(pointer, &ending))              \
			return cuda.symbol(pointer);            \
		return free_end(cuda.symbol(pointer), &ending); \
	}

FREE(cuMemFree_v2, CUdeviceptr)
FREE(cuMemFree, CUdeviceptr_v1)
