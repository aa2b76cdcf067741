/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the simulated driver in a process, and what it can say before that. */
#include "sim/cuda/model/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cuda/api/entry.h"
#include "sim/cuda/model/memory/pool.h"
#include "sim/machine/mps_client.h"

struct driver driver = {
	.memory_lock = PTHREAD_MUTEX_INITIALIZER, .init_lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * After a fork the child has no driver: the parent's contexts are not its own, and the real one
 * fails every call there. A child of a parent that had not called cuInit starts afresh.
 */
static void after_fork_in_child(void)
{
	/* Relaxed: the child has one thread. */
	if (atomic_load_explicit(&driver.stage, memory_order_relaxed) == DRIVER_READY)
		atomic_store_explicit(&driver.stage, DRIVER_FORKED, memory_order_relaxed);
	pthread_mutex_init(&driver.init_lock, NULL);
	pthread_mutex_init(&driver.memory_lock, NULL);
}

__attribute__((constructor)) static void register_fork(void)
{
	pthread_atfork(NULL, NULL, after_fork_in_child);
}

void driver_keep_relic(struct relic *relic)
{
	static struct relic *_Atomic relics;

	relic->next = atomic_load_explicit(&relics, memory_order_relaxed);
	/* Relaxed: nobody ever walks the list. */
	while (!atomic_compare_exchange_weak_explicit(
		&relics, &relic->next, relic, memory_order_relaxed, memory_order_relaxed))
		;
}

/* Under init_lock. */
static CUresult attach(void)
{
	struct machine *machine;
	char why[512];

	if (driver.machine)
		return CUDA_SUCCESS;
	if (machine_open(NULL, NULL, &machine, why, sizeof(why)) != 0) {
		char line[600];
		int n = snprintf(line, sizeof(line), "vgpu-sim: %s\n", why);
		size_t length = n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1;

		if (write(STDERR_FILENO, line, length) < 0)
			return CUDA_ERROR_SYSTEM_NOT_READY;
		return CUDA_ERROR_SYSTEM_NOT_READY;
	}
	driver.board = machine_board(machine);
	driver.machine = machine;
	return CUDA_SUCCESS;
}

CUresult driver_attach(void)
{
	CUresult result;

	pthread_mutex_lock(&driver.init_lock);
	result = attach();
	pthread_mutex_unlock(&driver.init_lock);
	return result;
}

CUresult driver_enter_early(unsigned int call)
{
	/* Pairs with the release in cuInit. */
	int stage = atomic_load_explicit(&driver.stage, memory_order_acquire);

	if (stage == DRIVER_FORKED)
		return CUDA_ERROR_NOT_INITIALIZED;
	/* Before cuInit the process is none of the machine's, and its calls are not counted. */
	return stage == DRIVER_READY ? (CUresult)inject_enter(driver.machine, call) : CUDA_SUCCESS;
}

/* Under init_lock. */
static CUresult start(void)
{
	int indices[MACHINE_DEVICES_MAX];
	CUresult result = attach();
	int count;

	if (result != CUDA_SUCCESS)
		return result;
	count = visible_parse(getenv("CUDA_VISIBLE_DEVICES"), driver.board, indices);
	if (count == 0)
		return CUDA_ERROR_NO_DEVICE;
	if (machine_join(driver.machine) != 0)
		return CUDA_ERROR_SYSTEM_NOT_READY;
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
	pthread_mutex_lock(&driver.init_lock);
	/* Relaxed: written under init_lock. */
	if (atomic_load_explicit(&driver.stage, memory_order_relaxed) == DRIVER_FRESH)
		result = start();
	pthread_mutex_unlock(&driver.init_lock);
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
