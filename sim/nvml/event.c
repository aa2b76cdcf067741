/* SPDX-License-Identifier: Apache-2.0 */
/* Events: they are asked for and waited for, and come when somebody raises them (machine/event.h). */
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "sim/machine/event.h"
#include "sim/machine/presence.h"
#include "sim/nvml/entry.h"

/* What an H200 says it can report (measured). */
#define SUPPORTED_EVENTS 0xff9full

#define EVENT_SET_MARK	 0x7665766e65766e00ull

/* Nobody wakes who waits: the machine is asked this often. */
#define POLL_MS 50u

struct nvmlEventSet_st {
	unsigned long long mark; /* against handles that are none of ours, and double frees */
	struct {
		uint64_t types; /* 0: not registered */
		uint64_t cursor;
	} device[BOARD_DEVICES_MAX];
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

/* Also one of a session that is void, which answers so. */
ENTRY_EXPORT nvmlEventSetFree_fn nvmlEventSetFree;
nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
	nvmlReturn_t result = node_enter(NODE_nvmlEventSetFree);

	if (!is_event_set(set))
		return result == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : result;
	set->mark = 0;
	free(set);
	return result;
}

static bool take_event(nvmlEventSet_t set, nvmlEventData_t *ret_data)
{
	for (int i = 0; i < BOARD_DEVICES_MAX; i++) {
		struct event_report report;

		if (!set->device[i].types || !event_read(node_machine(), i, set->device[i].types,
						     &set->device[i].cursor, &report))
			continue;
		*ret_data = (nvmlEventData_t){
			.device = node_handle(i),
			.eventType = report.type,
			.eventData = report.data,
			.gpuInstanceId = NVML_INSTANCE_NOT_AVAILABLE,
			.computeInstanceId = NVML_INSTANCE_NOT_AVAILABLE,
		};
		return true;
	}
	return false;
}

/* What a lost card reported before is told first. */
static bool is_any_lost(nvmlEventSet_t set)
{
	for (int i = 0; i < BOARD_DEVICES_MAX; i++)
		if (set->device[i].types && presence_is_lost(node_machine(), i))
			return true;
	return false;
}

ENTRY_BODY(nvmlEventSetWait, (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	(set, data, timeout_ms))
{
	uint64_t end_ns = machine_now_ns() + timeout_ms * UINT64_C(1000000);

	if (!is_event_set(set) || !data)
		return NVML_ERROR_INVALID_ARGUMENT;
	while (!take_event(set, data)) {
		if (is_any_lost(set))
			return NVML_ERROR_GPU_IS_LOST;
		if (presence_is_stopped(node_machine()))
			return NVML_ERROR_UNKNOWN;
		if (machine_now_ns() >= end_ns)
			return NVML_ERROR_TIMEOUT;
		poll(NULL, 0, timeout_ms < POLL_MS ? (int)timeout_ms : (int)POLL_MS);
	}
	return NVML_SUCCESS;
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
	if (types && !set->device[index].types)
		set->device[index].cursor = event_count(node_machine(), index);
	set->device[index].types |= types;
	return NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetSupportedEventTypes, (unsigned long long *types), (types))
{
	if (!types)
		return NVML_ERROR_INVALID_ARGUMENT;
	*types = SUPPORTED_EVENTS;
	return NVML_SUCCESS;
}
