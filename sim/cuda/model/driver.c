/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of a process: attaching to the machine, fork, devices by number. */
#include "sim/cuda/model/driver.h"

#include <stdio.h>
#include <unistd.h>

#include "sim/machine/state_file.h"

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

CUresult driver_attach_locked(void)
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
	LOCK_SCOPE(&driver.init_lock);
	return driver_attach_locked();
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

struct device *driver_find_index(int index)
{
	for (int i = 0; i < driver.device_count; i++) {
		if (driver.device[i].index == index)
			return &driver.device[i];
	}
	return NULL;
}

/*
 * What a call answers then is estimated: programs on a card that fell off the bus report an unknown error. It is
 * one for all of the process's calls, and for good.
 */
CUresult driver_check_lost(void)
{
	/* Relaxed, all: it becomes true once, and the next call looks, too. */
	for (int i = 0; i < driver.device_count; i++) {
		uint32_t then =
			atomic_load_explicit(&driver.device[i].losses, memory_order_relaxed);

		if (then && presence_losses(driver.machine, driver.device[i].index) + 1 != then)
			atomic_store_explicit(&driver.has_lost, true, memory_order_relaxed);
	}
	return atomic_load_explicit(&driver.has_lost, memory_order_relaxed) ? CUDA_ERROR_UNKNOWN
									    : CUDA_SUCCESS;
}
