/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: the processes that NVML shows.
 *
 * The driver is asked first, with no room, so that its refusals reach the program; what is listed then
 * are the slice's processes. Those that hold memory are compute processes, unless the driver lists
 * them as clients of MPS; graphics processes are those that the driver calls so.
 */
#include <string.h>

#include "base/scratch.h"
#include "gpu/nvml.h"
#include "tenant/hooks/hook.h"
#include "tenant/slice/members.h"

/* Writes a row of a program's array, in the form of the interface that it called. */
typedef void put_fn(void *array, unsigned i, const struct member *m);

static void put_v1(void *array, unsigned i, const struct member *m)
{
	((nvmlProcessInfo_v1_t *)array)[i] =
		(nvmlProcessInfo_v1_t){.pid = m->pid, .usedGpuMemory = m->held_bytes};
}

static void put_v2(void *array, unsigned i, const struct member *m)
{
	((nvmlProcessInfo_v2_t *)array)[i] = (nvmlProcessInfo_v2_t){.pid = m->pid,
		.usedGpuMemory = m->held_bytes,
		.gpuInstanceId = m->gpu_instance,
		.computeInstanceId = m->compute_instance};
}

static void put_detail(void *array, unsigned i, const struct member *m)
{
	((nvmlProcessDetail_v1_t *)array)[i] = (nvmlProcessDetail_v1_t){.pid = m->pid,
		.usedGpuMemory = m->held_bytes,
		.gpuInstanceId = m->gpu_instance,
		.computeInstanceId = m->compute_instance};
}

/* Takes over from the driver's list which members are in it, and in which instances. */
static nvmlReturn_t mark(
	nvmlDevice_t device, enum process_list kind, bool is_shown, struct members *members)
{
	SCRATCH(struct process_rows, rows);

	if (!rows)
		return NVML_ERROR_MEMORY;
	if (nvml_list_processes(&nvml, device, kind, rows) != 0)
		return NVML_SUCCESS;
	for (unsigned i = 0; i < rows->count; i++) {
		struct member *m = members_find_listed(members, rows->at[i].pid);

		if (!m)
			continue;
		m->is_shown = is_shown;
		m->gpu_instance = rows->at[i].gpuInstanceId;
		m->compute_instance = rows->at[i].computeInstanceId;
	}
	return NVML_SUCCESS;
}

static nvmlReturn_t choose(nvmlDevice_t device, enum process_list kind, struct members *members)
{
	nvmlReturn_t r;

	members_read(device, members);
	r = mark(device, kind, true, members);
	if (kind != LIST_COMPUTE || r != NVML_SUCCESS)
		return r;
	for (unsigned i = 0; i < members->count; i++)
		members->at[i].is_shown = members->at[i].held_bytes > 0;
	return mark(device, LIST_MPS, false, members);
}

/*
 * Answers as the driver does (measured): too little room is told with the number that is needed, and
 * room without an array is an error unless there is nothing to list.
 */
static nvmlReturn_t answer(struct members *members, unsigned *count, void *array, put_fn *put)
{
	unsigned room = *count, there = 0;

	for (unsigned i = 0; i < members->count; i++)
		there += members->at[i].is_shown;
	*count = there;
	if (there && room && !array)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (room < there)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	there = 0;
	for (unsigned i = 0; i < members->count; i++)
		if (members->at[i].is_shown)
			put(array, there++, &members->at[i]);
	return NVML_SUCCESS;
}

/* said: what the driver answered to a call with no room. */
static nvmlReturn_t list(nvmlReturn_t said, nvmlDevice_t device, enum process_list kind,
	unsigned *count, void *array, put_fn *put)
{
	SCRATCH(struct members, members);
	nvmlReturn_t r;

	if (said != NVML_SUCCESS && said != NVML_ERROR_INSUFFICIENT_SIZE)
		return said;
	r = members ? choose(device, kind, members) : NVML_ERROR_MEMORY;
	return r == NVML_SUCCESS ? answer(members, count, array, put) : r;
}

#define LIST_HOOK(symbol, type, kind, put)                                                      \
	HOOK_NVML(symbol, nvmlDevice_t, device, unsigned int *, count, type *, infos)           \
	{                                                                                       \
		unsigned none = 0;                                                              \
                                                                                                \
		if (!count || !members_matter())                                                \
			return nvml.symbol(device, count, infos);                               \
		return list(nvml.symbol(device, &none, NULL), device, kind, count, infos, put); \
	}

LIST_HOOK(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, LIST_COMPUTE, put_v1)
LIST_HOOK(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, LIST_COMPUTE, put_v2)
LIST_HOOK(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, LIST_COMPUTE, put_v2)
LIST_HOOK(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, LIST_GRAPHICS, put_v1)
LIST_HOOK(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, LIST_GRAPHICS, put_v2)
LIST_HOOK(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, LIST_GRAPHICS, put_v2)
LIST_HOOK(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, LIST_MPS, put_v1)
LIST_HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, LIST_MPS, put_v2)
LIST_HOOK(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, LIST_MPS, put_v2)

HOOK_NVML(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t, device, nvmlProcessDetailList_t *,
	details)
{
	static const enum process_list kinds[] = {
		[NVML_PROCESS_MODE_COMPUTE] = LIST_COMPUTE,
		[NVML_PROCESS_MODE_GRAPHICS] = LIST_GRAPHICS,
		[NVML_PROCESS_MODE_MPS] = LIST_MPS,
	};
	nvmlProcessDetailList_t own, probe;
	nvmlReturn_t r;

	if (!details || !members_matter())
		return nvml.nvmlDeviceGetRunningProcessDetailList(device, details);
	own = *details;
	/* What another version lists cannot be chosen from. */
	if (own.version != nvmlProcessDetailList_v1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	probe = (nvmlProcessDetailList_t){.version = own.version, .mode = own.mode};
	r = nvml.nvmlDeviceGetRunningProcessDetailList(device, &probe);
	if (own.mode > NVML_PROCESS_MODE_MPS) /* as the driver says */
		return r;
	r = list(r, device, kinds[own.mode], &own.numProcArrayEntries, own.procArray, put_detail);
	details->numProcArrayEntries = own.numProcArrayEntries;
	return r;
}

/* Puts the first letters of the name into the program's buffer, as the driver cuts its own. */
static void reply_name(const char *name, char *buffer, unsigned length)
{
	size_t kept = strlen(name);

	if (kept >= length)
		kept = length - 1;
	memcpy(buffer, name, kept);
	buffer[kept] = '\0';
}

/* An older driver knows names by the host's PIDs alone. */
HOOK_NVML(nvmlSystemGetProcessName, unsigned int, pid, char *, name, unsigned int, length)
{
	char known[17];
	nvmlReturn_t r = nvml.nvmlSystemGetProcessName(pid, name, length);

	if ((r != NVML_ERROR_NOT_FOUND && r != NVML_ERROR_NO_PERMISSION) || !name || !length ||
		!members_matter() || !members_name(pid, known))
		return r;
	reply_name(known, name, length);
	return NVML_SUCCESS;
}
