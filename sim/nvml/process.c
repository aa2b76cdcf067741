/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a device: what they hold and how busy they keep it.
 *
 * Every list is made from one snapshot by list_read(), and every interface copies from that, so
 * that the versions cannot disagree. Only processes with a context are listed. There are never
 * graphics processes on a simulated card; clients of MPS are in their own list, too.
 */
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "sim/nvml/node.h"
#include "sim/nvml/pid.h"

/* The least room the driver asks for in both utilization calls, whatever there is (measured). */
#define UTILIZATION_ROOM 72u

struct list {
	unsigned int count;
	struct {
		unsigned int pid;
		uint64_t bytes;
		unsigned int busy_percent;
	} row[MACHINE_PROCESSES_MAX];
};

enum who { ALL, MPS_CLIENTS };

static nvmlReturn_t list_read(
	nvmlDevice_t device, enum who who, uint64_t window_ns, struct list *ret_list)
{
	_cleanup_free_ struct machine_snapshot *snapshot = node_read_snapshot(window_ns);
	int index = node_index(device);

	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	ret_list->count = 0;
	for (int i = 0; i < snapshot->process_count; i++) {
		const struct machine_process *process = &snapshot->process[i];
		const struct machine_held *held = &process->device[index];
		int32_t pid;

		if (!held->has_context || (who == MPS_CLIENTS && !process->is_mps_client))
			continue;
		pid = pid_seen(process);
		if (!pid)
			continue;
		ret_list->row[ret_list->count].pid = (unsigned int)pid;
		ret_list->row[ret_list->count].bytes = held->shown_bytes;
		ret_list->row[ret_list->count].busy_percent = held->busy_permille / 10;
		ret_list->count++;
	}
	return NVML_SUCCESS;
}

/*
 * The count protocol of all process lists (measured): with room for fewer than there are the count
 * says how many; room without an array is an error, but not where there is nothing to list.
 */
static nvmlReturn_t check_room(unsigned int there, unsigned int *count, const void *array)
{
	unsigned int room = *count;

	*count = there;
	if (!there)
		return NVML_SUCCESS;
	if (room && !array)
		return NVML_ERROR_INVALID_ARGUMENT;
	return room < there ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

static nvmlReturn_t reply_v1(
	nvmlDevice_t device, enum who who, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
	struct list list;
	nvmlReturn_t result;

	REQUIRE(node_index(device) >= 0 && count);
	result = list_read(device, who, NODE_WINDOW_NS, &list);
	if (result == NVML_SUCCESS)
		result = check_room(list.count, count, infos);
	for (unsigned int i = 0; result == NVML_SUCCESS && i < list.count; i++) {
		infos[i].pid = list.row[i].pid;
		infos[i].usedGpuMemory = list.row[i].bytes;
	}
	return result;
}

static nvmlReturn_t reply_v2(
	nvmlDevice_t device, enum who who, unsigned int *count, nvmlProcessInfo_v2_t *infos)
{
	struct list list;
	nvmlReturn_t result;

	REQUIRE(node_index(device) >= 0 && count);
	result = list_read(device, who, NODE_WINDOW_NS, &list);
	if (result == NVML_SUCCESS)
		result = check_room(list.count, count, infos);
	for (unsigned int i = 0; result == NVML_SUCCESS && i < list.count; i++) {
		infos[i].pid = list.row[i].pid;
		infos[i].usedGpuMemory = list.row[i].bytes;
		infos[i].gpuInstanceId = NVML_INSTANCE_NOT_AVAILABLE;
		infos[i].computeInstanceId = NVML_INSTANCE_NOT_AVAILABLE;
	}
	return result;
}

static nvmlReturn_t reply_none(nvmlDevice_t device, unsigned int *count)
{
	REQUIRE(node_index(device) >= 0 && count);
	*count = 0;
	return NVML_SUCCESS;
}

#define LIST(symbol, type, reply)                                           \
	BODY(symbol, nvmlDevice_t device, unsigned int *count, type *infos) \
	{                                                                   \
		ENTER(symbol);                                              \
		return reply;                                               \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t,
	reply_v1(device, ALL, count, infos))
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t,
	reply_v2(device, ALL, count, infos))
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t,
	reply_v2(device, ALL, count, infos))
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, reply_none(device, count))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, reply_none(device, count))
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, reply_none(device, count))
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t,
	reply_v1(device, MPS_CLIENTS, count, infos))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t,
	reply_v2(device, MPS_CLIENTS, count, infos))
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t,
	reply_v2(device, MPS_CLIENTS, count, infos))

BODY(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device, nvmlProcessDetailList_t *details)
{
	struct list list = {0};
	nvmlReturn_t result = NVML_SUCCESS;

	ENTER(nvmlDeviceGetRunningProcessDetailList);
	REQUIRE(node_index(device) >= 0 && details);
	if (details->version != nvmlProcessDetailList_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	REQUIRE(details->mode <= NVML_PROCESS_MODE_MPS);
	if (details->mode != NVML_PROCESS_MODE_GRAPHICS)
		result = list_read(device,
			details->mode == NVML_PROCESS_MODE_MPS ? MPS_CLIENTS : ALL, NODE_WINDOW_NS,
			&list);
	if (result == NVML_SUCCESS)
		result = check_room(list.count, &details->numProcArrayEntries, details->procArray);
	for (unsigned int i = 0; result == NVML_SUCCESS && i < list.count; i++)
		details->procArray[i] = (nvmlProcessDetail_v1_t){
			.pid = list.row[i].pid,
			.usedGpuMemory = list.row[i].bytes,
			.gpuInstanceId = NVML_INSTANCE_NOT_AVAILABLE,
			.computeInstanceId = NVML_INSTANCE_NOT_AVAILABLE,
			.usedGpuCcProtectedMemory = 0,
		};
	return result;
}

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* The driver asks for room for UTILIZATION_ROOM samples even when it has none (measured). */
static unsigned int utilization_room(const struct list *list)
{
	return list->count > UTILIZATION_ROOM ? list->count : UTILIZATION_ROOM;
}

/* The driver takes a new sample so often at most [e]. */
#define SAMPLE_US 16000u

/*
 * One sample a process, taken now, of the time since the caller's last one, at most of
 * NODE_WINDOW_NS. 0: there is nothing new since then.
 */
static uint64_t sample_window(unsigned long long time_us, unsigned long long last_seen_us)
{
	if (time_us < last_seen_us || time_us - last_seen_us < SAMPLE_US)
		return 0;
	return time_us - last_seen_us < NODE_WINDOW_NS / 1000 ? (time_us - last_seen_us) * 1000
							      : NODE_WINDOW_NS;
}

BODY(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
	unsigned int *count, unsigned long long last_seen_us)
{
	unsigned long long time_us = now_us();
	uint64_t window_ns = sample_window(time_us, last_seen_us);
	unsigned int used = 0;
	struct list list;
	nvmlReturn_t result;

	ENTER(nvmlDeviceGetProcessUtilization);
	REQUIRE(node_index(device) >= 0 && count);
	result = list_read(device, ALL, window_ns, &list);
	if (result != NVML_SUCCESS)
		return result;
	if (!samples || *count < utilization_room(&list)) {
		*count = utilization_room(&list);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < list.count && window_ns > 0; i++)
		if (list.row[i].busy_percent)
			samples[used++] = (nvmlProcessUtilizationSample_t){
				.pid = list.row[i].pid,
				.timeStamp = time_us,
				.smUtil = list.row[i].busy_percent,
				.memUtil = list.row[i].busy_percent,
			};
	*count = used;
	return used ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

BODY(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device,
	nvmlProcessesUtilizationInfo_t *info)
{
	unsigned long long time_us = now_us();
	unsigned int used = 0;
	struct list list;
	nvmlReturn_t result;
	uint64_t window_ns;

	ENTER(nvmlDeviceGetProcessesUtilizationInfo);
	REQUIRE(node_index(device) >= 0 && info);
	if (info->version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	window_ns = sample_window(time_us, info->lastSeenTimeStamp);
	result = list_read(device, ALL, window_ns, &list);
	if (result != NVML_SUCCESS)
		return result;
	if (!info->procUtilArray || info->processSamplesCount < utilization_room(&list)) {
		info->processSamplesCount = utilization_room(&list);
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < list.count && window_ns > 0; i++)
		if (list.row[i].busy_percent)
			info->procUtilArray[used++] = (nvmlProcessUtilizationInfo_v1_t){
				.timeStamp = time_us,
				.pid = list.row[i].pid,
				.smUtil = list.row[i].busy_percent,
				.memUtil = list.row[i].busy_percent,
			};
	info->processSamplesCount = used;
	return used ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
