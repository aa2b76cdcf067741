/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the driver, and its version. */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/cuda/model/part.h"
#include "sim/machine/mps_client.h"

/* Cards that are lost are not counted, and without the driver there are none. */
static int keep_present(int indices[MACHINE_DEVICES_MAX], int count)
{
	int kept = 0;

	if (presence_is_stopped(driver.machine))
		return 0;
	for (int i = 0; i < count; i++)
		if (!presence_is_lost(driver.machine, indices[i]))
			indices[kept++] = indices[i];
	return kept;
}

/* Under init_lock. */
static CUresult start(void)
{
	const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");
	int indices[MACHINE_DEVICES_MAX];
	CUresult result = driver_attach_locked();
	int count;

	if (result != CUDA_SUCCESS)
		return result;
	driver.losses = presence_all_losses(driver.machine);
	driver.does_block = blocking && strcmp(blocking, "1") == 0;
	count = visible_parse(getenv("CUDA_VISIBLE_DEVICES"), driver.board, indices);
	count = part_choose(getenv("CUDA_VISIBLE_DEVICES"), indices, count);
	count = keep_present(indices, count);
	if (count == 0)
		return CUDA_ERROR_NO_DEVICE;
	if (machine_join(driver.machine) != 0)
		return CUDA_ERROR_SYSTEM_NOT_READY;
	part_use();
	for (int i = 0; i < count; i++) {
		struct device *device = &driver.device[i];

		memset(device, 0, sizeof(*device));
		device->ordinal = i;
		device->index = indices[i];
		pthread_mutex_init(&device->time_lock, NULL);
		if (machine_is_mps_client(driver.machine))
			machine_set_limit(
				driver.machine, device->index, mps_client_read_limit_bytes(i));
		result = pool_init_device(device);
		if (result != CUDA_SUCCESS)
			return result;
		/* The driver's own part is taken even on a full card: it is too small to refuse. */
		device->is_initialised_on = machine_grow(driver.machine, device->index,
						    MACHINE_INIT, driver.board->init_bytes) == 0;
	}
	driver.device_count = count;
	result = (CUresult)inject_enter(driver.machine, CALL_cuInit);
	if (result != CUDA_SUCCESS) {
		machine_leave(driver.machine);
		return result;
	}
	/* Pairs with the acquires in driver_enter() and driver_enter_early(). */
	atomic_store_explicit(&driver.stage, DRIVER_READY, memory_order_release);
	return CUDA_SUCCESS;
}

ENTRY_EARLY(cuInit, (unsigned int flags), (flags))
{
	CUresult result = CUDA_SUCCESS;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	LOCK_SCOPE(&driver.init_lock);
	/* Relaxed: written under init_lock. */
	if (atomic_load_explicit(&driver.stage, memory_order_relaxed) == DRIVER_FRESH)
		result = start();
	return result;
}

ENTRY_EARLY(cuDriverGetVersion, (int *version), (version))
{
	CUresult result;

	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	result = driver_attach();
	if (result == CUDA_SUCCESS)
		*version = driver.board->cuda_version;
	return result;
}
