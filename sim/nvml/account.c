/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounting: what a process has used since it began. Off, as on a card that nobody has set up; the
 * word "accounting" in $VGPU_SIM_NVML switches it on. Processes that have ended are not kept.
 */
#include "base/cleanup.h"
#include "sim/nvml/entry.h"
#include "sim/nvml/pid.h"

#define BUFFER_PROCESSES 4000u

static int is_on(void)
{
	return node_is_told("accounting");
}

ENTRY_ANSWER(nvmlDeviceGetAccountingMode, nvmlEnableState_t,
	is_on() ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED)
ENTRY_ANSWER(nvmlDeviceGetAccountingBufferSize, unsigned int, BUFFER_PROCESSES)

static unsigned int account_pid(const struct machine_process *process, int index)
{
	return process->device[index].has_context ? (unsigned int)pid_seen(process) : 0;
}

/* Switched off there is nothing to list, and that is no error (measured). */
ENTRY_DEVICE(nvmlDeviceGetAccountingPids, (unsigned int *count, unsigned int *pids), (count, pids))
{
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;
	unsigned int there = 0, room;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	room = pids ? *count : 0;
	*count = 0;
	if (!is_on())
		return NVML_SUCCESS;
	snapshot = node_read_snapshot(NODE_WINDOW_NS);
	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	for (int i = 0; i < snapshot->process_count; i++) {
		unsigned int pid = account_pid(&snapshot->process[i], index);

		if (pid && there < room)
			pids[there] = pid;
		there += pid != 0;
	}
	*count = there;
	return there > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

ENTRY_DEVICE(nvmlDeviceGetAccountingStats, (unsigned int pid, nvmlAccountingStats_t *stats),
	(pid, stats))
{
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;

	if (!stats)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!is_on())
		return NVML_ERROR_NOT_SUPPORTED;
	snapshot = node_read_snapshot(NODE_WINDOW_NS);
	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	for (int i = 0; pid && i < snapshot->process_count; i++) {
		const struct machine_held *held = &snapshot->process[i].device[index];

		if (account_pid(&snapshot->process[i], index) != pid)
			continue;
		*stats = (nvmlAccountingStats_t){.gpuUtilization = held->busy_permille / 10,
			.memoryUtilization = held->busy_permille / 10,
			.maxMemoryUsage = held->shown_bytes,
			.isRunning = 1};
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}
