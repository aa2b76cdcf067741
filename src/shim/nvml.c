/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What we ask NVML for ourselves.
 *
 * Asked seldom: when a quota is given by index, once a slice and device to learn what a
 * context takes, and once a second what this process holds. NVML is loaded then if the program has
 * not loaded it, and begun once; it counts, so the program's own use of it is not disturbed.
 */
#include "shim/nvml.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/uuid.h"
#include "policy/device_name.h"
#include "shim/doors.h"

#define PROCESSES_MAX 256

/* Longest wait for another thread that begins NVML; it takes some 10 ms. */
#define BEGIN_WAIT_NS 2000000000u

enum { NOT_BEGUN, BEGINNING, BEGUN };
static _Atomic int phase;

static int wait_for_other(void)
{
	uint64_t deadline = clock_now_ns() + BEGIN_WAIT_NS;
	struct timespec pause = {.tv_nsec = 500000};

	while (atomic_load(&phase) == BEGINNING && clock_now_ns() < deadline)
		nanosleep(&pause, NULL);
	return atomic_load(&phase) == BEGUN ? 0 : -ENODEV;
}

/* Once a process: to end it each time would cost its whole beginning each time. */
static int begin(void)
{
	int not_begun = NOT_BEGUN;
	bool is_there;

	if (LIKELY(atomic_load(&phase) == BEGUN))
		return 0;
	if (!atomic_compare_exchange_strong(&phase, &not_begun, BEGINNING))
		return wait_for_other();
	is_there = doors_load_nvml() && nvml.nvmlInit_v2 && nvml.nvmlInit_v2() == NVML_SUCCESS;
	atomic_store(&phase, is_there ? BEGUN : NOT_BEGUN);
	return is_there ? 0 : -ENODEV;
}

void nvml_forget_parent(void)
{
	atomic_store(&phase, NOT_BEGUN);
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

static int own_use(const char *uuid, uint64_t *ret_bytes)
{
	nvmlProcessInfo_t list[PROCESSES_MAX];
	unsigned count = PROCESSES_MAX;
	nvmlDevice_t device;

	if (!nvml.nvmlDeviceGetHandleByUUID || !nvml.nvmlDeviceGetComputeRunningProcesses_v3 ||
		nvml.nvmlDeviceGetHandleByUUID(uuid, &device) != NVML_SUCCESS ||
		nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, &count, list) != NVML_SUCCESS)
		return -ENODEV;
	for (unsigned i = 0; i < count; i++) {
		if (list[i].pid != (unsigned)getpid() || list[i].usedGpuMemory == UINT64_MAX)
			continue;
		*ret_bytes = list[i].usedGpuMemory;
		return 0;
	}
	return -ENOENT;
}

int nvml_own_use(const char *uuid, uint64_t *ret_bytes)
{
	int r = begin();

	if (r < 0)
		return r;
	return own_use(uuid, ret_bytes);
}
