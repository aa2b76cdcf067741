/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we ask NVML for ourselves.
 *
 * Asked seldom: when a quota is given by index, once a slice and device to learn what a
 * context takes, and once a second what this process holds. NVML is loaded then if the program has
 * not loaded it, and begun once; it counts, so the program's own use of it is not disturbed.
 */
#include "tenant/slice/nvml.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "gpu/uuid.h"
#include "policy/device_name.h"
#include "tenant/driver/attach.h"

/* Longest wait for another thread that begins NVML; it takes some 10 ms. */
#define BEGIN_WAIT_NS 2000000000u

static struct lock begin_lock;
static _Atomic bool is_begun;

/* Once a process: to end it each time would cost its whole beginning each time. */
static int begin(void)
{
	struct timespec pause = {.tv_nsec = 500000};
	uint64_t deadline;

	if (LIKELY(atomic_load(&is_begun)))
		return 0;
	deadline = clock_now_ns() + BEGIN_WAIT_NS;
	while (!lock_try_own(&begin_lock)) {
		if (clock_now_ns() > deadline)
			return -ENODEV;
		nanosleep(&pause, NULL);
	}
	FAULT("nvml: beginning");
	if (!atomic_load(&is_begun))
		atomic_store(&is_begun, attach_load_nvml() && nvml.nvmlInit_v2 &&
						nvml.nvmlInit_v2() == NVML_SUCCESS);
	lock_leave(&begin_lock);
	return atomic_load(&is_begun) ? 0 : -ENODEV;
}

void nvml_reset_after_fork(void)
{
	begin_lock = (struct lock)LOCK_INIT;
	atomic_store(&is_begun, false);
}

static int index_of(const char *uuid, unsigned *ret_index)
{
	char text[UUID_TEXT_BYTES];
	nvmlDevice_t device;
	unsigned count;

	if (!nvml.nvmlDeviceGetCount_v2 || !nvml.nvmlDeviceGetHandleByIndex_v2 ||
		!nvml.nvmlDeviceGetUUID || nvml.nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
		return -ENODEV;
	for (unsigned i = 0; i < count; i++) {
		if (nvml.nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
			nvml.nvmlDeviceGetUUID(device, text, sizeof(text)) != NVML_SUCCESS)
			continue;
		if (device_name_is_same(text, uuid)) {
			*ret_index = i;
			return 0;
		}
	}
	return -ENODEV;
}

int nvml_index_of(const char *uuid, unsigned *ret_index)
{
	int r = begin();

	if (r < 0)
		return r;
	return index_of(uuid, ret_index);
}

static int find_handle(const char *uuid, nvmlDevice_t *ret_device)
{
	char mig[UUID_TEXT_BYTES] = "MIG-";

	if (!nvml.nvmlDeviceGetHandleByUUID)
		return -ENODEV;
	if (nvml.nvmlDeviceGetHandleByUUID(uuid, ret_device) == NVML_SUCCESS)
		return 0;
	/* What CUDA calls GPU-... may be an instance, which NVML finds by its own name alone. */
	strncat(mig, device_name_core(uuid), sizeof(mig) - sizeof("MIG-"));
	return nvml.nvmlDeviceGetHandleByUUID(mig, ret_device) == NVML_SUCCESS ? 0 : -ENODEV;
}

/* The list in the oldest form, for drivers that have no other. */
static nvmlReturn_t list_v1(nvmlDeviceGetComputeRunningProcesses_fn *ask, nvmlDevice_t device,
	struct process_rows *ret_rows)
{
	nvmlProcessInfo_v1_t old[NVML_ROWS];
	unsigned count = NVML_ROWS;
	nvmlReturn_t r = ask(device, &count, old);

	for (unsigned i = 0; r == NVML_SUCCESS && i < count; i++)
		ret_rows->at[i] = (nvmlProcessInfo_t){.pid = old[i].pid,
			.usedGpuMemory = old[i].usedGpuMemory,
			.gpuInstanceId = NVML_INSTANCE_NOT_AVAILABLE,
			.computeInstanceId = NVML_INSTANCE_NOT_AVAILABLE};
	ret_rows->count = count;
	return r;
}

int nvml_list(nvmlDevice_t device, enum process_list kind, struct process_rows *ret_rows)
{
	nvmlDeviceGetComputeRunningProcesses_v3_fn *const v3[] = {
		[LIST_COMPUTE] = nvml.nvmlDeviceGetComputeRunningProcesses_v3,
		[LIST_GRAPHICS] = nvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
		[LIST_MPS] = nvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
	};
	nvmlDeviceGetComputeRunningProcesses_v2_fn *const v2[] = {
		[LIST_COMPUTE] = nvml.nvmlDeviceGetComputeRunningProcesses_v2,
		[LIST_GRAPHICS] = nvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
		[LIST_MPS] = nvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
	};
	nvmlDeviceGetComputeRunningProcesses_fn *const v1[] = {
		[LIST_COMPUTE] = nvml.nvmlDeviceGetComputeRunningProcesses,
		[LIST_GRAPHICS] = nvml.nvmlDeviceGetGraphicsRunningProcesses,
		[LIST_MPS] = nvml.nvmlDeviceGetMPSComputeRunningProcesses,
	};
	nvmlReturn_t r;

	ret_rows->count = NVML_ROWS;
	r = v3[kind](device, &ret_rows->count, ret_rows->at);
	if (r == NVML_ERROR_FUNCTION_NOT_FOUND) {
		ret_rows->count = NVML_ROWS;
		r = v2[kind](device, &ret_rows->count, ret_rows->at);
	}
	if (r == NVML_ERROR_FUNCTION_NOT_FOUND)
		r = list_v1(v1[kind], device, ret_rows);
	return r == NVML_SUCCESS ? 0 : -ENODEV;
}

static int find_processes(const char *uuid, nvmlDevice_t *ret_device, struct process_rows *ret_rows)
{
	int r = begin();

	if (r == 0)
		r = find_handle(uuid, ret_device);
	if (r == 0)
		r = nvml_list(*ret_device, LIST_COMPUTE, ret_rows);
	return r;
}

int nvml_processes(const char *uuid, struct process_rows *ret_rows)
{
	nvmlDevice_t device;

	return find_processes(uuid, &device, ret_rows);
}

int nvml_look(const char *uuid, struct process_rows *ret_rows, uint64_t *ret_used_bytes)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;
	int r = find_processes(uuid, &device, ret_rows);

	if (r == 0 && nvml.nvmlDeviceGetMemoryInfo(device, &memory) != NVML_SUCCESS)
		r = -ENODEV;
	if (r == 0)
		*ret_used_bytes = memory.used;
	return r;
}

int nvml_busy(const char *uuid, uint64_t since_us, struct busy_rows *ret_rows)
{
	nvmlUtilization_t rates;
	nvmlDevice_t device;
	nvmlReturn_t result;
	int r = begin();

	if (r == 0)
		r = find_handle(uuid, &device);
	if (r < 0)
		return r;
	ret_rows->count = NVML_ROWS;
	result = nvml.nvmlDeviceGetProcessUtilization(
		device, ret_rows->at, &ret_rows->count, since_us);
	if (result == NVML_ERROR_NOT_FOUND)
		ret_rows->count = 0;
	else if (result != NVML_SUCCESS || ret_rows->count > NVML_ROWS)
		return -ENODEV;
	if (nvml.nvmlDeviceGetUtilizationRates(device, &rates) != NVML_SUCCESS)
		return -ENODEV;
	ret_rows->device_percent = rates.gpu;
	return 0;
}

bool nvml_is_begun(void)
{
	return atomic_load(&is_begun);
}
