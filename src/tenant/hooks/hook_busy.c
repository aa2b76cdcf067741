/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: how busy a device and its processes are, as NVML tells it.
 *
 * Samples, records and sessions of processes that are not the slice's are taken out of what the driver gives.
 * How busy the device is stays the device's own figure, which a program may need to choose an idle
 * one, unless VGPU_SHOW_UTILIZATION asks for the slice's.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/scratch.h"
#include "gpu/uuid.h"
#include "region/snapshot.h"
#include "tenant/hooks/hook.h"
#include "tenant/slice/members.h"
#include "tenant/slice/quota.h"
#include "tenant/slice/stack.h"

#define SAMPLES_MAX 256
/* The driver's own sampling period is between 1/6 s and 1 s. */
#define PERIOD_US 1000000u

/*
 * Leaves those of a list's rows that are of the slice's processes, and shows these as the program knows them. The PID
 * is at pid_at of a row. The answer says whether any is left.
 */
static nvmlReturn_t keep_members(
	nvmlDevice_t device, void *rows, unsigned int *count, size_t row_bytes, size_t pid_at)
{
	char *kept = rows, *row = rows, *end = row + *count * row_bytes;
	SCRATCH(struct members, members);

	if (!members) {
		*count = 0;
		return NVML_ERROR_MEMORY;
	}
	members_read(device, members);
	for (; row < end; row += row_bytes) {
		unsigned int pid;
		const struct member *m;

		memcpy(&pid, row + pid_at, sizeof(pid));
		m = members_find_listed(members, pid);
		if (!m)
			continue;
		memmove(kept, row, row_bytes);
		memcpy(kept + pid_at, &m->pid, sizeof(pid));
		kept += row_bytes;
	}
	memset(kept, 0, (size_t)(end - kept));
	*count = (unsigned int)((size_t)(kept - (char *)rows) / row_bytes);
	return *count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

#define KEEP_MEMBERS(device, rows, count) \
	keep_members(device, rows, count, sizeof(*(rows)), offsetof(__typeof__(*(rows)), pid))

/* More rows than a driver lists, whatever the program says that it has room for. */
#define ROWS_MOST 4096u

/* The driver's rows go to an array of our own: another thread of the program would see them before they are chosen. */
#define ROWS(type, room) calloc((room) < ROWS_MOST ? (room) + 1 : ROWS_MOST, sizeof(type))

HOOK_NVML(nvmlDeviceGetProcessUtilization, nvmlDevice_t, device, nvmlProcessUtilizationSample_t *,
	samples, unsigned int *, count, unsigned long long, last_seen_us)
{
	_cleanup_free_ nvmlProcessUtilizationSample_t *rows = NULL;
	unsigned int filled;
	nvmlReturn_t r;

	if (!samples || !count || !members_matter())
		return nvml.nvmlDeviceGetProcessUtilization(device, samples, count, last_seen_us);
	filled = *count;
	rows = ROWS(*rows, filled);
	if (!rows)
		return NVML_ERROR_MEMORY;
	filled = filled < ROWS_MOST ? filled : ROWS_MOST;
	r = nvml.nvmlDeviceGetProcessUtilization(device, rows, &filled, last_seen_us);
	if (r == NVML_SUCCESS) {
		r = KEEP_MEMBERS(device, rows, &filled);
		memcpy(samples, rows, filled * sizeof(*rows));
	}
	*count = filled;
	return r;
}

HOOK_NVML(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t, device,
	nvmlProcessesUtilizationInfo_t *, info)
{
	_cleanup_free_ nvmlProcessUtilizationInfo_v1_t *rows = NULL;
	nvmlProcessesUtilizationInfo_t own;
	nvmlProcessUtilizationInfo_v1_t *to;
	nvmlReturn_t r;

	if (!info || !members_matter())
		return nvml.nvmlDeviceGetProcessesUtilizationInfo(device, info);
	own = *info;
	/* What another version lists cannot be chosen from. */
	if (own.version != nvmlProcessesUtilizationInfo_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	to = own.procUtilArray;
	if (own.processSamplesCount > ROWS_MOST)
		own.processSamplesCount = ROWS_MOST;
	rows = ROWS(*rows, own.processSamplesCount);
	if (!rows)
		return NVML_ERROR_MEMORY;
	own.procUtilArray = to ? rows : NULL;
	r = nvml.nvmlDeviceGetProcessesUtilizationInfo(device, &own);
	if (r == NVML_SUCCESS && to) {
		r = KEEP_MEMBERS(device, rows, &own.processSamplesCount);
		memcpy(to, rows, own.processSamplesCount * sizeof(*rows));
	}
	info->processSamplesCount = own.processSamplesCount;
	return r;
}

/* The driver also keeps records of processes that have ended. Nothing tells whose these were. */
HOOK_NVML(nvmlDeviceGetAccountingPids, nvmlDevice_t, device, unsigned int *, count, unsigned int *,
	pids)
{
	unsigned room, none = 0, there = 0;
	nvmlAccountingStats_t stats;
	nvmlReturn_t r;

	if (!count || !members_matter())
		return nvml.nvmlDeviceGetAccountingPids(device, count, pids);
	SCRATCH(struct members, members);
	if (!members)
		return NVML_ERROR_MEMORY;
	r = nvml.nvmlDeviceGetAccountingPids(device, &none, NULL);
	if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
		return r;
	room = pids ? *count : 0;
	members_read(device, members);
	for (unsigned i = 0; none && i < members->count; i++) {
		if (!members->at[i].listed_pid ||
			nvml.nvmlDeviceGetAccountingStats(
				device, members->at[i].listed_pid, &stats) != NVML_SUCCESS)
			continue;
		if (there < room)
			pids[there] = members->at[i].pid;
		there++;
	}
	*count = there;
	return there > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

HOOK_NVML(nvmlDeviceGetAccountingStats, nvmlDevice_t, device, unsigned int, pid,
	nvmlAccountingStats_t *, stats)
{
	nvmlAccountingStats_t unseen;
	const struct member *m;
	nvmlReturn_t r;

	if (!stats || !members_matter())
		return nvml.nvmlDeviceGetAccountingStats(device, pid, stats);
	SCRATCH(struct members, members);
	if (!members)
		return NVML_ERROR_MEMORY;
	members_read(device, members);
	m = members_find(members, pid);
	if (m && m->listed_pid)
		return nvml.nvmlDeviceGetAccountingStats(device, m->listed_pid, stats);
	r = nvml.nvmlDeviceGetAccountingStats(device, pid, &unseen);
	return r == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : r;
}

/* More than a device has of either kind. */
#define SESSIONS_MOST 1024

/* Asked with no room the driver says how many there are, and calls that a success. */
static nvmlReturn_t reply_sessions(
	const void *rows, unsigned int there, size_t row_bytes, unsigned int *count, void *infos)
{
	unsigned int room = *count;

	*count = there;
	if (!room || !there)
		return NVML_SUCCESS;
	if (!infos)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (room < there)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(infos, rows, there * row_bytes);
	return NVML_SUCCESS;
}

#define SESSION_HOOK(symbol, type)                                                    \
	HOOK_NVML(symbol, nvmlDevice_t, device, unsigned int *, count, type *, infos) \
	{                                                                             \
		unsigned int there = SESSIONS_MOST;                                   \
		nvmlReturn_t r;                                                       \
                                                                                      \
		if (!count || !members_matter())                                      \
			return nvml.symbol(device, count, infos);                     \
		SCRATCH_ARRAY(type, rows, SESSIONS_MOST);                             \
		if (!rows)                                                            \
			return NVML_ERROR_MEMORY;                                     \
		r = nvml.symbol(device, &there, rows);                                \
		if (r == NVML_SUCCESS)                                                \
			r = KEEP_MEMBERS(device, rows, &there);                       \
		if (r != NVML_SUCCESS && r != NVML_ERROR_NOT_FOUND)                   \
			return r;                                                     \
		return reply_sessions(rows, there, sizeof(*rows), count, infos);      \
	}

SESSION_HOOK(nvmlDeviceGetEncoderSessions, nvmlEncoderSessionInfo_t)
SESSION_HOOK(nvmlDeviceGetFBCSessions, nvmlFBCSessionInfo_t)

static unsigned long long a_period_ago_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (unsigned long long)now.tv_sec * 1000000u + (unsigned long long)now.tv_nsec / 1000u -
	       PERIOD_US;
}

/* Whether a later row of the same process follows. */
static bool is_old(const nvmlProcessUtilizationSample_t *samples, unsigned i, unsigned count)
{
	for (unsigned j = 0; j < count; j++)
		if (samples[j].pid == samples[i].pid && j != i &&
			(samples[j].timeStamp > samples[i].timeStamp ||
				(samples[j].timeStamp == samples[i].timeStamp && j > i)))
			return true;
	return false;
}

/* The slice's processes' part of the device; false where the driver does not tell, or there is no room to ask it. */
static bool sum_slice(nvmlDevice_t device, nvmlUtilization_t *ret_sum)
{
	SCRATCH_ARRAY(nvmlProcessUtilizationSample_t, samples, SAMPLES_MAX);
	SCRATCH(struct members, members);
	nvmlUtilization_t sum = {0};
	unsigned count = SAMPLES_MAX;
	nvmlReturn_t r;

	if (!samples || !members || !stack_has_room(STACK_BUSY_BYTES))
		return false;
	r = nvml.nvmlDeviceGetProcessUtilization(device, samples, &count, a_period_ago_us());
	if (r == NVML_ERROR_NOT_FOUND)
		count = 0; /* no process has worked */
	else if (r != NVML_SUCCESS)
		return false;
	members_read(device, members);
	for (unsigned i = 0; i < count; i++) {
		if (!members_find_listed(members, samples[i].pid) || is_old(samples, i, count))
			continue;
		sum.gpu += samples[i].smUtil;
		sum.memory += samples[i].memUtil;
	}
	*ret_sum = sum;
	return true;
}

/* The share of the cores that is all there is to the slice; 100 where it has no such limit. */
static unsigned core_percent(nvmlDevice_t device)
{
	char uuid[UUID_TEXT_BYTES];
	unsigned percent = 0;

	if (!nvml.nvmlDeviceGetUUID ||
		nvml.nvmlDeviceGetUUID(device, uuid, sizeof(uuid)) != NVML_SUCCESS ||
		snapshot_core_percent(quota_region_path(), uuid, &percent) != 0)
		return 100;
	return percent ? percent : 100;
}

HOOK_NVML(nvmlDeviceGetUtilizationRates, nvmlDevice_t, device, nvmlUtilization_t *, utilization)
{
	nvmlUtilization_t sum;
	unsigned gpu;
	nvmlReturn_t r = nvml.nvmlDeviceGetUtilizationRates(device, utilization);

	if (r != NVML_SUCCESS || !members_matter() || !quota_options()->shows_slice_utilization ||
		!sum_slice(device, &sum))
		return r;
	gpu = sum.gpu * 100 / core_percent(device);
	utilization->gpu = gpu < 100 ? gpu : 100;
	utilization->memory = sum.memory < 100 ? sum.memory : 100;
	return r;
}
