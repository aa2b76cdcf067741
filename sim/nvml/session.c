/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions of the video encoder and of the capture of a screen. A card for computing has neither; with the word "sessions" in
 * $VGPU_SIM_NVML each process with a context has one of both kinds. The protocol is the header's, and is not measured.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "sim/nvml/entry.h"
#include "sim/nvml/pid.h"

struct owners {
	unsigned int count; /* whose sessions are to be written */
	unsigned int pid[MACHINE_PROCESSES_MAX];
};

/* With no room the count alone is told, and that is a success. */
static nvmlReturn_t check_room(struct owners *owners, unsigned int *count, const void *infos)
{
	unsigned int room = *count;

	*count = owners->count;
	if (!room)
		owners->count = 0;
	if (!owners->count)
		return NVML_SUCCESS;
	if (!infos)
		return NVML_ERROR_INVALID_ARGUMENT;
	return room < owners->count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t read_owners(
	int index, unsigned int *count, const void *infos, struct owners *ret_owners)
{
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;

	ret_owners->count = 0;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!node_is_told("sessions"))
		return NVML_ERROR_NOT_SUPPORTED;
	snapshot = node_read_snapshot(NODE_WINDOW_NS);
	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	for (int i = 0; i < snapshot->process_count; i++) {
		const struct machine_process *process = &snapshot->process[i];
		int32_t pid = process->device[index].has_context ? pid_seen(process) : 0;

		if (pid)
			ret_owners->pid[ret_owners->count++] = (unsigned int)pid;
	}
	return check_room(ret_owners, count, infos);
}

#define SESSIONS(symbol, type)                                                            \
	ENTRY_DEVICE(symbol, (unsigned int *count, type *infos), (count, infos))          \
	{                                                                                 \
		struct owners owners;                                                     \
		nvmlReturn_t result = read_owners(index, count, infos, &owners);          \
                                                                                          \
		for (unsigned int i = 0; result == NVML_SUCCESS && i < owners.count; i++) \
			infos[i] = (type){.sessionId = i + 1, .pid = owners.pid[i]};      \
		return result;                                                            \
	}

SESSIONS(nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t)
SESSIONS(nvmlDeviceGetFBCSessions, nvmlFBCSessionInfo_t)
