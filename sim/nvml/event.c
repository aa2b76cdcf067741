/* SPDX-License-Identifier: Apache-2.0 */
/* Events: they can be asked for and waited for, and none ever comes. */
#include <poll.h>
#include <stdlib.h>

#include "sim/nvml/node.h"

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

BODY(nvmlEventSetCreate, nvmlEventSet_t *set)
{
	nvmlEventSet_t fresh;

	ENTER(nvmlEventSetCreate);
	REQUIRE(set);
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return NVML_ERROR_MEMORY;
	fresh->mark = EVENT_SET_MARK;
	*set = fresh;
	return NVML_SUCCESS;
}

BODY(nvmlEventSetFree, nvmlEventSet_t set)
{
	ENTER(nvmlEventSetFree);
	REQUIRE(is_event_set(set));
	set->mark = 0;
	free(set);
	return NVML_SUCCESS;
}

static nvmlReturn_t wait_in_vain(
	nvmlEventSet_t set, const nvmlEventData_t *data, unsigned int timeout_ms)
{
	REQUIRE(is_event_set(set) && data);
	poll(NULL, 0, timeout_ms > 0x7fffffff ? -1 : (int)timeout_ms);
	return NVML_ERROR_TIMEOUT;
}

BODY(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	ENTER(nvmlEventSetWait);
	return wait_in_vain(set, data, timeout_ms);
}

BODY(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	ENTER(nvmlEventSetWait_v2);
	return wait_in_vain(set, data, timeout_ms);
}

BODY(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	ENTER(nvmlDeviceRegisterEvents);
	REQUIRE(node_index(device) >= 0 && is_event_set(set));
	if (types & ~SUPPORTED_EVENTS)
		return NVML_ERROR_NOT_SUPPORTED;
	set->types |= types;
	return NVML_SUCCESS;
}

BODY(nvmlDeviceGetSupportedEventTypes, nvmlDevice_t device, unsigned long long *types)
{
	ENTER(nvmlDeviceGetSupportedEventTypes);
	REQUIRE(node_index(device) >= 0 && types);
	*types = SUPPORTED_EVENTS;
	return NVML_SUCCESS;
}
