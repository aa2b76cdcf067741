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
#include "sim/nvml/entry.h"
#include "sim/nvml/pid.h"

/* The least room the driver asks for in both utilization calls, whatever there is (measured). */
#define UTILIZATION_ROOM 72u

struct list {
	unsigned int count;
	struct list_row {
		unsigned int pid;
		uint64_t bytes;
		unsigned int busy_percent;	/* as NVML has seen it, in sixths */
		unsigned int instance, compute; /* or NVML_INSTANCE_NOT_AVAILABLE */
	} row[MACHINE_PROCESSES_MAX];
};

enum group { ALL, MPS_CLIENTS, GRAPHICS };

/* A card lists the processes of all its parts. */
static bool is_on(const struct part *part, const struct machine_held *held)
{
	return held->has_context &&
	       (part->is_whole || (held->has_part && held->instance == part->id &&
					  held->compute == part->compute));
}

static nvmlReturn_t list_read(
	const struct part *part, enum group group, uint64_t window_ns, struct list *ret_list)
{
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;

	ret_list->count = 0;
	if (group == GRAPHICS)
		return NVML_SUCCESS;
	snapshot = node_read_snapshot(window_ns);
	if (!snapshot)
		return NVML_ERROR_UNKNOWN;
	for (int i = 0; i < snapshot->process_count; i++) {
		const struct machine_process *process = &snapshot->process[i];
		const struct machine_held *held = &process->device[part->index];
		int32_t pid;

		if (!is_on(part, held) || (group == MPS_CLIENTS && !process->is_mps_client))
			continue;
		pid = pid_seen(process);
		if (!pid)
			continue;
		ret_list->row[ret_list->count++] = (struct list_row){
			.pid = (unsigned int)pid,
			.bytes = held->shown_bytes,
			.busy_percent = held->seen_percent,
			.instance = held->has_part ? held->instance : NVML_INSTANCE_NOT_AVAILABLE,
			.compute = held->has_part ? held->compute : NVML_INSTANCE_NOT_AVAILABLE,
		};
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

static nvmlReturn_t read_all(const struct part *part, enum group group, unsigned int *count,
	const void *array, struct list *ret_list)
{
	nvmlReturn_t result;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = list_read(part, group, NODE_WINDOW_NS, ret_list);
	return result == NVML_SUCCESS ? check_room(ret_list->count, count, array) : result;
}

static nvmlReturn_t reply_v1(
	const struct part *part, enum group group, unsigned int *count, nvmlProcessInfo_v1_t *infos)
{
	_cleanup_free_ struct list *list = malloc(sizeof(*list));
	nvmlReturn_t result = list ? read_all(part, group, count, infos, list) : NVML_ERROR_MEMORY;

	for (unsigned int i = 0; result == NVML_SUCCESS && i < list->count; i++) {
		infos[i].pid = list->row[i].pid;
		infos[i].usedGpuMemory = list->row[i].bytes;
	}
	return result;
}

/* nvmlProcessInfo_v2_t is the same struct under its older name. */
static nvmlReturn_t reply(
	const struct part *part, enum group group, unsigned int *count, nvmlProcessInfo_t *infos)
{
	_cleanup_free_ struct list *list = malloc(sizeof(*list));
	nvmlReturn_t result = list ? read_all(part, group, count, infos, list) : NVML_ERROR_MEMORY;

	for (unsigned int i = 0; result == NVML_SUCCESS && i < list->count; i++) {
		infos[i].pid = list->row[i].pid;
		infos[i].usedGpuMemory = list->row[i].bytes;
		infos[i].gpuInstanceId = list->row[i].instance;
		infos[i].computeInstanceId = list->row[i].compute;
	}
	return result;
}

/* The three versions of a list. */
#define LISTS(symbol, group)                                                                     \
	ENTRY_PART(symbol, (unsigned int *count, nvmlProcessInfo_v1_t *infos), (count, infos))   \
	{                                                                                        \
		return reply_v1(part, group, count, infos);                                      \
	}                                                                                        \
	ENTRY_PART(                                                                              \
		symbol##_v2, (unsigned int *count, nvmlProcessInfo_v2_t *infos), (count, infos)) \
	{                                                                                        \
		return reply(part, group, count, infos);                                         \
	}                                                                                        \
	ENTRY_PART(symbol##_v3, (unsigned int *count, nvmlProcessInfo_t *infos), (count, infos)) \
	{                                                                                        \
		return reply(part, group, count, infos);                                         \
	}

LISTS(nvmlDeviceGetComputeRunningProcesses, ALL)
LISTS(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS)
LISTS(nvmlDeviceGetMPSComputeRunningProcesses, MPS_CLIENTS)

static enum group group_of_mode(unsigned int mode)
{
	if (mode == NVML_PROCESS_MODE_GRAPHICS)
		return GRAPHICS;
	return mode == NVML_PROCESS_MODE_MPS ? MPS_CLIENTS : ALL;
}

ENTRY_DEVICE(nvmlDeviceGetRunningProcessDetailList, (nvmlProcessDetailList_t * details), (details))
{
	const struct part whole = {.index = index, .is_whole = true};
	_cleanup_free_ struct list *list = malloc(sizeof(*list));
	nvmlReturn_t result;

	if (!details)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!list)
		return NVML_ERROR_MEMORY;
	if (details->version != nvmlProcessDetailList_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (details->mode > NVML_PROCESS_MODE_MPS)
		return NVML_ERROR_INVALID_ARGUMENT;
	result = read_all(&whole, group_of_mode(details->mode), &details->numProcArrayEntries,
		details->procArray, list);
	for (unsigned int i = 0; result == NVML_SUCCESS && i < list->count; i++)
		details->procArray[i] = (nvmlProcessDetail_v1_t){
			.pid = list->row[i].pid,
			.usedGpuMemory = list->row[i].bytes,
			.gpuInstanceId = list->row[i].instance,
			.computeInstanceId = list->row[i].compute,
		};
	return result;
}

static unsigned long long now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
}

/* The driver takes a new sample so often at most [e]. */
#define SAMPLE_US 16000u

/*
 * One sample a process, of the last looks (measured: sixths). 0: there is nothing new since then.
 */
static uint64_t sample_window(unsigned long long time_us, unsigned long long last_seen_us)
{
	if (time_us < last_seen_us || time_us - last_seen_us < SAMPLE_US)
		return 0;
	return time_us - last_seen_us < NODE_WINDOW_NS / 1000 ? (time_us - last_seen_us) * 1000
							      : NODE_WINDOW_NS;
}

/*
 * The processes that worked since then, and the count protocol of both calls. The driver asks for
 * room for UTILIZATION_ROOM samples even when it has none (measured).
 */
static nvmlReturn_t read_samples(int index, uint64_t window_ns, const void *array,
	unsigned int *count, struct list *ret_list)
{
	const struct part whole = {.index = index, .is_whole = true};
	nvmlReturn_t result = list_read(&whole, ALL, window_ns, ret_list);
	unsigned int used = 0, room = UTILIZATION_ROOM;

	if (result != NVML_SUCCESS)
		return result;
	if (ret_list->count > room)
		room = ret_list->count;
	if (!array || *count < room) {
		*count = room;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (unsigned int i = 0; i < ret_list->count && window_ns > 0; i++)
		if (ret_list->row[i].busy_percent)
			ret_list->row[used++] = ret_list->row[i];
	ret_list->count = used;
	*count = used;
	return used ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

ENTRY_DEVICE(nvmlDeviceGetProcessUtilization,
	(nvmlProcessUtilizationSample_t * samples, unsigned int *count,
		unsigned long long last_seen_us),
	(samples, count, last_seen_us))
{
	unsigned long long time_us = now_us();
	_cleanup_free_ struct list *list = malloc(sizeof(*list));
	nvmlReturn_t result;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!list)
		return NVML_ERROR_MEMORY;
	result = read_samples(index, sample_window(time_us, last_seen_us), samples, count, list);
	for (unsigned int i = 0; result == NVML_SUCCESS && i < list->count; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){
			.pid = list->row[i].pid,
			.timeStamp = time_us,
			.smUtil = list->row[i].busy_percent,
			.memUtil = list->row[i].busy_percent,
		};
	return result;
}

ENTRY_DEVICE(nvmlDeviceGetProcessesUtilizationInfo, (nvmlProcessesUtilizationInfo_t * info), (info))
{
	unsigned long long time_us = now_us();
	_cleanup_free_ struct list *list = malloc(sizeof(*list));
	nvmlReturn_t result;

	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!list)
		return NVML_ERROR_MEMORY;
	if (info->version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = read_samples(index, sample_window(time_us, info->lastSeenTimeStamp),
		info->procUtilArray, &info->processSamplesCount, list);
	for (unsigned int i = 0; result == NVML_SUCCESS && i < list->count; i++)
		info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
			.timeStamp = time_us,
			.pid = list->row[i].pid,
			.smUtil = list->row[i].busy_percent,
			.memUtil = list->row[i].busy_percent,
		};
	return result;
}
