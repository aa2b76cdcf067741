/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to NVML. */
#include "gpu/nvml.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "gpu/uuid.h"
#include "policy/device_name.h"

/* Longest wait for another thread that begins NVML; it takes some 10 ms. */
#define BEGIN_WAIT_NS 2000000000u

static nvmlReturn_t begin(struct nvml_session *s)
{
	if (s->load && !s->load())
		return NVML_ERROR_LIBRARY_NOT_FOUND;
	return s->driver->nvmlInit_v2 ? s->driver->nvmlInit_v2() : NVML_ERROR_FUNCTION_NOT_FOUND;
}

int nvml_session_begin(struct nvml_session *session)
{
	struct timespec pause = {.tv_nsec = 500000};
	uint64_t deadline;

	if (LIKELY(atomic_load(&session->is_begun)))
		return 0;
	deadline = clock_now_ns() + BEGIN_WAIT_NS;
	while (!lock_try_own(&session->lock)) {
		if (clock_now_ns() > deadline)
			return -ENODEV;
		nanosleep(&pause, NULL);
	}
	FAULT("nvml: beginning");
	if (!atomic_load(&session->is_begun)) {
		session->result = begin(session);
		atomic_store(&session->is_begun, session->result == NVML_SUCCESS);
	}
	lock_leave(&session->lock);
	return atomic_load(&session->is_begun) ? 0 : -ENODEV;
}

void nvml_session_end(struct nvml_session *session)
{
	if (atomic_exchange(&session->is_begun, false) && session->driver->nvmlShutdown)
		session->driver->nvmlShutdown();
}

bool nvml_session_is_begun(const struct nvml_session *session)
{
	return atomic_load(&session->is_begun);
}

bool nvml_session_is_lost(struct nvml_session *session)
{
	unsigned count;

	if (!session->driver->nvmlDeviceGetCount_v2 ||
		session->driver->nvmlDeviceGetCount_v2(&count) != NVML_ERROR_UNINITIALIZED)
		return false;
	atomic_store(&session->is_begun, false);
	return true;
}

void nvml_session_reset_after_fork(struct nvml_session *session)
{
	session->lock = (struct lock)LOCK_INIT;
	atomic_store(&session->is_begun, false);
}

int nvml_find_device(const struct nvml_driver *nvml, const char *uuid, nvmlDevice_t *ret_device)
{
	char mig[UUID_TEXT_BYTES] = "MIG-";

	if (!nvml->nvmlDeviceGetHandleByUUID)
		return -ENODEV;
	if (nvml->nvmlDeviceGetHandleByUUID(uuid, ret_device) == NVML_SUCCESS)
		return 0;
	/* A GPU-... of CUDA's may be an instance, which NVML finds by its own name alone. */
	strncat(mig, device_name_core(uuid), sizeof(mig) - sizeof("MIG-"));
	return nvml->nvmlDeviceGetHandleByUUID(mig, ret_device) == NVML_SUCCESS ? 0 : -ENODEV;
}

int nvml_find_index(const struct nvml_driver *nvml, const char *uuid, unsigned *ret_index)
{
	char text[UUID_TEXT_BYTES];
	nvmlDevice_t device;
	unsigned count;

	if (!nvml->nvmlDeviceGetCount_v2 || !nvml->nvmlDeviceGetHandleByIndex_v2 ||
		!nvml->nvmlDeviceGetUUID || nvml->nvmlDeviceGetCount_v2(&count) != NVML_SUCCESS)
		return -ENODEV;
	for (unsigned i = 0; i < count; i++) {
		if (nvml->nvmlDeviceGetHandleByIndex_v2(i, &device) != NVML_SUCCESS ||
			nvml->nvmlDeviceGetUUID(device, text, sizeof(text)) != NVML_SUCCESS)
			continue;
		if (device_name_is_same(text, uuid)) {
			*ret_index = i;
			return 0;
		}
	}
	return -ENODEV;
}

int nvml_read_memory(const struct nvml_driver *nvml, nvmlDevice_t device, nvmlMemory_t *ret_memory)
{
	return nvml->nvmlDeviceGetMemoryInfo(device, ret_memory) == NVML_SUCCESS ? 0 : -ENODEV;
}

/* The list in the oldest form, for drivers that have no other. */
static nvmlReturn_t list_v1(nvmlDeviceGetComputeRunningProcesses_fn *ask, nvmlDevice_t device,
	struct process_rows *ret_rows)
{
	const char *old = (const char *)ret_rows->at;
	unsigned count = NVML_ROWS;
	nvmlReturn_t r = ask(device, &count, (void *)ret_rows->at);

	/* The shorter rows lie where the longer ones are to be: from the last one on. */
	for (unsigned i = r == NVML_SUCCESS ? count : 0; i-- > 0;) {
		nvmlProcessInfo_v1_t row;

		memcpy(&row, old + i * sizeof(row), sizeof(row));
		ret_rows->at[i] = (nvmlProcessInfo_t){.pid = row.pid,
			.usedGpuMemory = row.usedGpuMemory,
			.gpuInstanceId = NVML_INSTANCE_NOT_AVAILABLE,
			.computeInstanceId = NVML_INSTANCE_NOT_AVAILABLE};
	}
	ret_rows->count = count;
	return r;
}

int nvml_list_processes(const struct nvml_driver *nvml, nvmlDevice_t device, enum process_list kind,
	struct process_rows *ret_rows)
{
	nvmlDeviceGetComputeRunningProcesses_v3_fn *const v3[] = {
		[LIST_COMPUTE] = nvml->nvmlDeviceGetComputeRunningProcesses_v3,
		[LIST_GRAPHICS] = nvml->nvmlDeviceGetGraphicsRunningProcesses_v3,
		[LIST_MPS] = nvml->nvmlDeviceGetMPSComputeRunningProcesses_v3,
	};
	nvmlDeviceGetComputeRunningProcesses_v2_fn *const v2[] = {
		[LIST_COMPUTE] = nvml->nvmlDeviceGetComputeRunningProcesses_v2,
		[LIST_GRAPHICS] = nvml->nvmlDeviceGetGraphicsRunningProcesses_v2,
		[LIST_MPS] = nvml->nvmlDeviceGetMPSComputeRunningProcesses_v2,
	};
	nvmlDeviceGetComputeRunningProcesses_fn *const v1[] = {
		[LIST_COMPUTE] = nvml->nvmlDeviceGetComputeRunningProcesses,
		[LIST_GRAPHICS] = nvml->nvmlDeviceGetGraphicsRunningProcesses,
		[LIST_MPS] = nvml->nvmlDeviceGetMPSComputeRunningProcesses,
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

int nvml_read_busy(const struct nvml_driver *nvml, nvmlDevice_t device, uint64_t since_us,
	struct busy_rows *ret_rows)
{
	nvmlUtilization_t rates;
	nvmlReturn_t result;

	ret_rows->count = NVML_ROWS;
	result = nvml->nvmlDeviceGetProcessUtilization(
		device, ret_rows->at, &ret_rows->count, since_us);
	if (result == NVML_ERROR_NOT_FOUND)
		ret_rows->count = 0;
	else if (result != NVML_SUCCESS || ret_rows->count > NVML_ROWS)
		return -ENODEV;
	if (nvml->nvmlDeviceGetUtilizationRates(device, &rates) != NVML_SUCCESS)
		return -ENODEV;
	ret_rows->device_percent = rates.gpu;
	return 0;
}
