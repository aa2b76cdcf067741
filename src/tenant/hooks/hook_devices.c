/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: which devices NVML shows. One that the slice was not granted is not there: programs that divide by the memory of each
 * device, or put the host's in its place, found one without any.
 */
#include <limits.h>

#include "gpu/uuid.h"
#include "tenant/hooks/hook.h"
#include "tenant/slice/quota.h"

static bool is_hiding(void)
{
	return quota_start() == QUOTA_SET && quota_hides();
}

/* What cannot be told is shown, for NVML to refuse. */
static bool is_hidden(nvmlDevice_t device)
{
	char uuid[UUID_TEXT_BYTES];

	return nvml.nvmlDeviceGetUUID &&
	       nvml.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) == NVML_SUCCESS &&
	       !quota_is_granted(uuid);
}

static bool is_index_hidden(unsigned index)
{
	nvmlDevice_t device;

	return nvml.nvmlDeviceGetHandleByIndex_v2(index, &device) == NVML_SUCCESS &&
	       is_hidden(device);
}

/* How many of NVML's first devices are shown. */
static unsigned count_shown(unsigned first)
{
	unsigned shown = 0;

	for (unsigned i = 0; i < first; i++)
		shown += !is_index_hidden(i);
	return shown;
}

/* NVML's index of a device that is shown; none of NVML's where so many are not. */
static unsigned real_index(unsigned shown)
{
	unsigned count;

	if (nvml.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
		return shown;
	for (unsigned i = 0; i < count; i++)
		if (!is_index_hidden(i) && shown-- == 0)
			return i;
	return UINT_MAX;
}

#define COUNT(symbol)                                                      \
	HOOK_NVML(symbol, unsigned int *, count)                           \
	{                                                                  \
		unsigned there = 0;                                        \
		nvmlReturn_t r = nvml.symbol(count ? &there : NULL);       \
                                                                           \
		if (r == NVML_SUCCESS)                                     \
			*count = is_hiding() ? count_shown(there) : there; \
		return r;                                                  \
	}

COUNT(nvmlDeviceGetCount)
COUNT(nvmlDeviceGetCount_v2)

#define BY_INDEX(symbol)                                                             \
	HOOK_NVML(symbol, unsigned int, index, nvmlDevice_t *, device)               \
	{                                                                            \
		return nvml.symbol(is_hiding() ? real_index(index) : index, device); \
	}

BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

#define BY_NAME(symbol)                                                     \
	HOOK_NVML(symbol, const char *, name, nvmlDevice_t *, device)       \
	{                                                                   \
		nvmlDevice_t found = NULL;                                  \
		nvmlReturn_t r = nvml.symbol(name, device ? &found : NULL); \
                                                                            \
		if (r == NVML_SUCCESS && is_hiding() && is_hidden(found))   \
			return NVML_ERROR_NOT_FOUND;                        \
		if (r == NVML_SUCCESS)                                      \
			*device = found;                                    \
		return r;                                                   \
	}

BY_NAME(nvmlDeviceGetHandleByUUID)
BY_NAME(nvmlDeviceGetHandleBySerial)
BY_NAME(nvmlDeviceGetHandleByPciBusId)
BY_NAME(nvmlDeviceGetHandleByPciBusId_v2)

HOOK_NVML(nvmlDeviceGetIndex, nvmlDevice_t, device, unsigned int *, index)
{
	unsigned real = 0;
	nvmlReturn_t r = nvml.nvmlDeviceGetIndex(device, index ? &real : NULL);

	if (r == NVML_SUCCESS)
		*index = is_hiding() ? count_shown(real) : real;
	return r;
}
