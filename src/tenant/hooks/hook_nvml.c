/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: what the tenant sees of its device through NVML.
 *
 * A process that only reads figures (nvidia-smi) takes no slot and makes no file: it reads the slice's
 * region, if there is one, and the same quota as everybody.
 */
#include <string.h>

#include "gpu/uuid.h"
#include "region/ledger.h"
#include "region/snapshot.h"
#include "tenant/hooks/hook.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/quota.h"

/* NVML is begun once for the program's beginnings and for ours: it may end no more than its own. */
#define INIT(symbol, names, ...)                    \
	HOOK_NVML(symbol, __VA_ARGS__)              \
	{                                           \
		nvmlReturn_t r = nvml.symbol names; \
                                                    \
		if (r == NVML_SUCCESS)              \
			nvml_program_began();       \
		return r;                           \
	}

INIT(nvmlInit, (), void)
INIT(nvmlInit_v2, (), void)
INIT(nvmlInitWithFlags, (flags), unsigned int, flags)

HOOK_NVML(nvmlShutdown, void)
{
	return nvml_program_may_end() ? nvml.nvmlShutdown() : NVML_ERROR_UNINITIALIZED;
}

/* The device's quota and the slice's use of it; false where there is no quota. A broken one is 0. */
static bool slice_view(nvmlDevice_t device, uint64_t *ret_quota_bytes, uint64_t *ret_used_bytes)
{
	enum quota_mode mode = quota_start();
	char uuid[UUID_TEXT_BYTES];
	uint64_t quota, used, limit;

	if (mode == QUOTA_NONE || !nvml.nvmlDeviceGetUUID ||
		nvml.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) != NVML_SUCCESS)
		return false;
	quota_refresh(false);
	if (mode == QUOTA_BROKEN || quota_memory_bytes(uuid, &quota) != 0)
		quota = 0;
	if (quota == QUOTA_UNLIMITED)
		return false;
	if (snapshot_device_use(quota_region_path(), uuid, &used, &limit) != 0)
		used = 0;
	*ret_quota_bytes = quota;
	*ret_used_bytes = used < quota ? used : quota;
	return true;
}

/* Shows the slice's part of what the driver has told of a card, where it is less. */
static bool show_slice(nvmlDevice_t device, unsigned long long *total, unsigned long long *used,
	unsigned long long *ret_free)
{
	uint64_t quota_bytes, used_bytes;

	if (!slice_view(device, &quota_bytes, &used_bytes) || *total <= quota_bytes)
		return false;
	*total = quota_bytes;
	*used = used_bytes;
	*ret_free = quota_bytes - used_bytes;
	return true;
}

HOOK_NVML(nvmlDeviceGetMemoryInfo, nvmlDevice_t, device, nvmlMemory_t *, memory)
{
	nvmlMemory_t own;
	nvmlReturn_t r;

	if (!memory)
		return nvml.nvmlDeviceGetMemoryInfo(device, memory);
	r = nvml.nvmlDeviceGetMemoryInfo(device, &own);
	if (r != NVML_SUCCESS)
		return r;
	show_slice(device, &own.total, &own.used, &own.free);
	*memory = own;
	return r;
}

HOOK_NVML(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, device, nvmlMemory_v2_t *, memory)
{
	nvmlMemory_v2_t own;
	nvmlReturn_t r;

	if (!memory)
		return nvml.nvmlDeviceGetMemoryInfo_v2(device, memory);
	own = *memory;
	r = nvml.nvmlDeviceGetMemoryInfo_v2(device, &own);
	if (r != NVML_SUCCESS)
		return r;
	/* What the card keeps for itself is not the slice's. */
	if (show_slice(device, &own.total, &own.used, &own.free))
		own.reserved = 0;
	*memory = own;
	return r;
}

/*
 * The window's size is the card's. A card whose window is as large as its memory maps all that is in
 * use (measured on an H200), so there the slice's part is what the slice holds; nothing tells
 * whose parts of a smaller window are mapped, so none is shown as the slice's.
 */
HOOK_NVML(nvmlDeviceGetBAR1MemoryInfo, nvmlDevice_t, device, nvmlBAR1Memory_t *, bar1)
{
	uint64_t quota, used;
	nvmlMemory_t card;
	nvmlBAR1Memory_t own;
	nvmlReturn_t r;

	if (!bar1)
		return nvml.nvmlDeviceGetBAR1MemoryInfo(device, bar1);
	r = nvml.nvmlDeviceGetBAR1MemoryInfo(device, &own);
	if (r != NVML_SUCCESS)
		return r;
	if (slice_view(device, &quota, &used) &&
		nvml.nvmlDeviceGetMemoryInfo(device, &card) == NVML_SUCCESS && card.total > quota) {
		own.bar1Used = own.bar1Total < card.total ? 0 : used;
		own.bar1Free = own.bar1Total - own.bar1Used;
	}
	*bar1 = own;
	return r;
}
