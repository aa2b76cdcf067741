/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated driver in one process: its devices, its contexts, and who holds which lock. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/machine/inject.h"
#include "sim/machine/lock.h"
#include "sim/machine/machine.h"
#include "sim/machine/presence.h"

/*
 * Two kinds of locks, taken in this order:
 *   driver.memory_lock  addresses, allocations, pools, contexts, modules: all of the process
 *   device.time_lock    the streams and events of a device, and its busy time
 * Neither is held while sleeping or while a callback of the program runs.
 */

enum driver_stage { DRIVER_FRESH, DRIVER_READY, DRIVER_FORKED };

struct context;
struct pool;

struct device {
	int ordinal; /* as the program counts */
	int index;   /* in the machine */
	pthread_mutex_t time_lock;
	uint64_t full_until_ns;	 /* where kernels fill it; under time_lock */
	struct context *primary; /* made at the first retain, then kept for ever */
	uint32_t primary_refs;
	uint32_t primary_flags;
	uint32_t contexts; /* alive */
	_Atomic uint32_t
		losses; /* of the card and one, when its first context came to life; 0: none lives */
	bool is_initialised_on; /* cuInit's bytes are taken */
	struct pool *default_pool;
	struct pool *current_pool;
};

struct driver {
	_Atomic int stage; /* enum driver_stage */
	uint32_t losses;   /* of all cards, when the process began */
	bool does_block; /* CUDA_LAUNCH_BLOCKING=1: a launch of a kernel returns when that is done */
	_Atomic bool has_lost; /* a card with a context of this process: nothing works any more */
	struct machine *machine;
	const struct board *board;
	int device_count;
	struct device device[MACHINE_DEVICES_MAX];
	pthread_mutex_t memory_lock;
	pthread_mutex_t init_lock;
	struct context *contexts; /* all there ever were, newest first; under memory_lock */
};
extern struct driver driver;

/*
 * Part of what is never freed, so that a stale handle is refused and not followed into foreign
 * memory. All of it can be reached from the driver, so that it is no leak.
 */
struct relic {
	struct relic *next;
};
void driver_keep_relic(struct relic *relic);

/* Attaches to the machine if that was not done yet; what cuDriverGetVersion needs. */
CUresult driver_attach(void);
/* The same under init_lock. */
CUresult driver_attach_locked(void);

/* Some card was lost since the process began: whether this process had a context there. */
CUresult driver_check_lost(void);

/* The start of every call after cuInit: counts it, applies faults. CUDA_SUCCESS: go on. */
static inline CUresult driver_enter(unsigned int call)
{
	/* Pairs with the release in cuInit. */
	if (__builtin_expect(
		    atomic_load_explicit(&driver.stage, memory_order_acquire) != DRIVER_READY, 0))
		return CUDA_ERROR_NOT_INITIALIZED;
	machine_wait_running(driver.machine);
	if (__builtin_expect(presence_all_losses(driver.machine) != driver.losses, 0) &&
		driver_check_lost() != CUDA_SUCCESS)
		return CUDA_ERROR_UNKNOWN;
	return (CUresult)inject_enter(driver.machine, call);
}

/* The same for calls that decide who may go on, and are not stopped by that themselves. */
static inline CUresult driver_enter_control(unsigned int call)
{
	/* Pairs with the release in cuInit. */
	if (atomic_load_explicit(&driver.stage, memory_order_acquire) != DRIVER_READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	return (CUresult)inject_enter(driver.machine, call);
}

/* The start of a call that is allowed before cuInit. */
CUresult driver_enter_early(unsigned int call);

/* The device of a number given by the program, or NULL. */
static inline struct device *driver_device(CUdevice ordinal)
{
	return ordinal >= 0 && ordinal < driver.device_count ? &driver.device[ordinal] : NULL;
}

/* The device that is number `index` of the machine, or NULL. */
struct device *driver_find_index(int index);

/*
 * The devices that $CUDA_VISIBLE_DEVICES names (NULL: all), as machine indices in the program's
 * order. Returns how many.
 */
int visible_parse(
	const char *list, const struct board *board, int ret_indices[MACHINE_DEVICES_MAX]);
