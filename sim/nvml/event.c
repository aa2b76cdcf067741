/* SPDX-License-Identifier: Apache-2.0 */
/* Events: they can be asked for and waited for, and none ever comes. */
#include <poll.h>
#include <stdlib.h>

#include "sim/nvml/entry.h"

/* What an H200 says it can report (measured). */
#define SUPPORTED_EVENTS 0xff9full

#define EVENT_SET_MARK	 0x7665766e65766e00ull

struct nvmlEventSet_st {
	unsigned long long mark; /* against handles that are none of ours, and double frees */
	unsigned long long types;
};

static int is_event_set(nvmlEventSet_t set)
{
	return set && set->mark == EVENT_SET_MARK;
}

ENTRY_BODY(nvmlEventSetCreate, (nvmlEventSet_t * set), (set))
{
	nvmlEventSet_t fresh;

	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return NVML_ERROR_MEMORY;
	fresh->mark = EVENT_SET_MARK;
	*set = fresh;
	return NVML_SUCCESS;
}

ENTRY_BODY(nvmlEventSetFree, (nvmlEventSet_t set), (set))
{
	if (!is_event_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	set->mark = 0;
	free(set);
	return NVML_SUCCESS;
}

/* In vain. */
ENTRY_BODY(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	(set, data, timeout_ms))
{
	if (!is_event_set(set) || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	poll(NULL, 0, timeout_ms > 0x7fffffff ? -1 : (int)timeout_ms);
	return NVML_ERROR_TIMEOUT;
}
ENTRY_ALIAS(nvmlEventSetWait_v2, nvmlEventSetWait,
	(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	(set, data, timeout_ms))

ENTRY_DEVICE(nvmlDeviceRegisterEvents, (unsigned long long types, nvmlEventSet_t set), (types, set))
{
	if (!is_event_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (types & ~SUPPORTED_EVENTS)
		return NVML_ERROR_NOT_SUPPORTED;
	set->types |= types;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetSupportedEventTypes, (unsigned long long *types), (types))
{
	if (!types)
		return NVML_ERROR_INVALID_ARGUMENT;
	*types = SUPPORTED_EVENTS;
	return NVML_SUCCESS;
}
