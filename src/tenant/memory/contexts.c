/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts.
 *
 * What a context takes depends on device and driver (518 MiB on an H200 with driver 580) and nobody
 * tells beforehand. So the first of a slice reserves an estimate, and afterwards NVML's figure
 * for this process tells the truth, which the region keeps for all that follow.
 *
 * The primary context is counted by the driver, retained and released by anybody, and reset without
 * being released. Instead of counting along we ask the driver after each such call whether it is
 * there, and book the change, under a lock that makes asking and booking one step.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/contexts.h"

#include <errno.h>

#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"
#include "tenant/slice/table.h"
#include "tenant/memory/truth.h"

/* 518 MiB on the 132 multiprocessors of an H200 are 3.93 MiB each. */
#define ESTIMATE_BYTES_PER_SM UINT64_C(0x400000)
#define ESTIMATE_MIN_BYTES    UINT64_C(0x4000000)
/* A measured figure outside these bounds measured something else at the same time. */
#define MEASURED_MIN_BYTES UINT64_C(0x1000000)
#define MEASURED_MAX_TIMES 4

struct primary {
	struct lock lock;
	_Atomic uint64_t charged_bytes; /* 0: there is none */
	CUcontext context;
};

static struct primary primaries[STATE_ORDINALS];
static struct table greens; /* key: context; a: the green context it is a face of; b: ordinal */
static _Atomic uint32_t green_count;
static struct table made; /* key: context; a: charged bytes; b: ordinal */

CUresult contexts_enter(CUdevice ordinal, struct device **ret_device)
{
	int r;

	*ret_device = NULL;
	switch (state_enter()) {
	case STATE_OPEN:
		r = state_meet_device(ordinal, ret_device);
		return r == 0 || r == -ENODEV ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	case STATE_CLOSED:
		return CUDA_ERROR_OUT_OF_MEMORY;
	default:
		return CUDA_SUCCESS;
	}
}

static uint64_t estimate(const struct device *device)
{
	int multiprocessors = 0;
	uint64_t bytes;

	if (!cuda.cuDeviceGetAttribute ||
		cuda.cuDeviceGetAttribute(&multiprocessors,
			CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->ordinal) != CUDA_SUCCESS)
		multiprocessors = 0;
	bytes = (uint64_t)multiprocessors * ESTIMATE_BYTES_PER_SM;
	return bytes > ESTIMATE_MIN_BYTES ? bytes : ESTIMATE_MIN_BYTES;
}

/* What a context of the device was measured to take; 0: nothing yet, or too little to be true. */
static uint64_t learned_bytes(const struct device *device)
{
	/* relaxed: a figure that is not there yet is measured once more */
	uint64_t bytes = atomic_load_explicit(
		&state.region.file->own.devices[device->entry].context_bytes, memory_order_relaxed);

	return bytes >= MEASURED_MIN_BYTES ? bytes : 0;
}

CUresult contexts_reserve(struct device *device, struct charge *ret_charge)
{
	uint64_t bytes = learned_bytes(device);

	CUresult r;

	truth_start(device);
	r = charge_reserve(device, bytes ? bytes : estimate(device), CHARGE_CONTEXT, ret_charge);
	if (r == CUDA_SUCCESS && !own_pid_is_certain(device) &&
		ledger_held_bytes(state.region.file, state.slot, device->entry) ==
			(uint64_t)ret_charge->units * REGION_UNIT_BYTES)
		own_pid_before_context(device);
	return r;
}

void contexts_measure(struct device *device, struct charge *charge)
{
	uint64_t charged = (uint64_t)charge->units * REGION_UNIT_BYTES, held, used, measured;
	uint64_t traffic = charge_traffic();

	if (!charge->device)
		return;
	measured = learned_bytes(device);
	if (!own_pid_is_certain(device))
		own_pid_after_context(device, measured);
	held = ledger_held_bytes(state.region.file, state.slot, device->entry);
	FAULT("context: asking");
	/* Beside another call the difference would not be this context's alone; the next one is measured. */
	if (measured || (uint32_t)traffic != 1 ||
		own_pid_memory_bytes(device->uuid, held - charged, &used) != 0 ||
		traffic != charge_traffic())
		return;
	own_pid_is_confirmed(device);
	measured = round_up_u64(used - (held - charged), REGION_UNIT_BYTES);
	if (used < held - charged || measured < MEASURED_MIN_BYTES ||
		measured > MEASURED_MAX_TIMES * charged)
		return;
	FAULT("context: measured");
	/* The charge is not taken yet: what it reserved is corrected and not noted. */
	if (measured > charged)
		ledger_charge_anyway(state.region.file, state.slot, device->entry,
			ledger_units(measured - charged));
	else if (measured < charged)
		ledger_uncharge(state.region.file, state.slot, device->entry,
			ledger_units(charged - measured));
	FAULT("context: corrected");
	charge->units = (uint32_t)ledger_units(measured);
	/* relaxed: as in learned_bytes() */
	atomic_store_explicit(&state.region.file->own.devices[device->entry].context_bytes,
		measured, memory_order_relaxed);
	log_debug("a context was measured", STR("device", device->uuid), U64("bytes", measured));
}

CUresult contexts_keep(CUcontext context, struct charge *charge)
{
	struct table_entry entry = {.key = (uintptr_t)context};

	if (!charge->device)
		return CUDA_SUCCESS;
	entry.b = (uint64_t)charge->device->ordinal;
	entry.a = (uint64_t)charge->units * REGION_UNIT_BYTES;
	FAULT("context: made");
	if (table_put(&made, entry) < 0) {
		log_error("no memory for our own tables, so a context is refused");
		cuda.cuCtxDestroy_v2(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("context: entered");
	charge_take(charge);
	parts_context_made();
	return CUDA_SUCCESS;
}

/* A context is gone, and with it all that lived in it. */
static void end(struct device *device, CUcontext context, uint64_t bytes)
{
	FAULT("context: gone");
	parts_context_ended(device, context);
	FAULT("context: its memory given back");
	charge_give_back(device, bytes, CHARGE_CONTEXT);
	truth_forget(device);
}

void contexts_destroyed(CUcontext context)
{
	struct table_entry entry;

	if (table_take(&made, (uintptr_t)context, &entry) == 0)
		end(state_device((CUdevice)entry.b), context, entry.a);
}

/* Whether the driver holds a primary context; as_told where it does not answer. */
static bool is_active(const struct device *device, bool as_told)
{
	unsigned int flags;
	int active = 0;

	if (!cuda.cuDevicePrimaryCtxGetState ||
		cuda.cuDevicePrimaryCtxGetState(device->ordinal, &flags, &active) != CUDA_SUCCESS)
		return as_told;
	return active;
}

bool contexts_primary_is_active(const struct device *device)
{
	return is_active(device, false);
}

void contexts_compare_primary(struct device *device, CUcontext context, struct charge *charge)
{
	struct primary *p = &primaries[device->ordinal];
	CUcontext gone = NULL;
	uint64_t gone_bytes = 0;
	bool is_new = false;

	lock_enter(&p->lock);
	FAULT("context: primary locked");
	/* Without an answer what is charged stays: too much in the books is safe. */
	if (is_active(device, true)) {
		if (!p->charged_bytes && charge && charge->device) {
			p->context = context;
			p->charged_bytes = charge_take(charge);
			is_new = true;
		}
	} else if (p->charged_bytes) {
		gone = p->context;
		gone_bytes = p->charged_bytes;
		p->charged_bytes = 0;
	}
	lock_leave(&p->lock);
	if (is_new)
		parts_context_made();
	if (gone_bytes)
		end(device, gone, gone_bytes);
}

void contexts_green_seen(CUgreenCtx green, CUcontext context)
{
	struct table_entry entry = {.key = (uintptr_t)context, .a = (uintptr_t)green};
	CUdevice ordinal = -1;
	CUcontext popped;

	if (cuda.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS)
		return;
	if (cuda.cuCtxGetDevice(&ordinal) != CUDA_SUCCESS)
		ordinal = -1;
	cuda.cuCtxPopCurrent_v2(&popped);
	if (ordinal < 0 || ordinal >= STATE_ORDINALS || table_get(&greens, entry.key, NULL) == 0)
		return;
	entry.b = (uint64_t)ordinal;
	if (table_put(&greens, entry) < 0)
		log_warn("what a green context allocates stays charged until the process ends");
	else
		atomic_fetch_add(&green_count, 1);
}

void contexts_green_destroyed(CUgreenCtx green)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_by_a(&greens, (uintptr_t)green, &cursor, &entry) == 0)
		atomic_fetch_sub(&green_count, 1);
	for (int i = 0; i < STATE_ORDINALS; i++)
		if (primaries[i].charged_bytes)
			contexts_compare_primary(state_device(i), NULL, NULL);
}

CUcontext contexts_owner(CUcontext context)
{
	struct table_entry entry;

	/* relaxed: who uses a green context as one has it from a call that we saw */
	if (LIKELY(!atomic_load_explicit(&green_count, memory_order_relaxed)) ||
		table_get(&greens, (uintptr_t)context, &entry) != 0)
		return context;
	return primaries[entry.b].context;
}

void contexts_reset_after_fork(void)
{
	table_forget(&greens);
	atomic_store(&green_count, 0);
	for (int i = 0; i < STATE_ORDINALS; i++)
		primaries[i] = (struct primary){.charged_bytes = 0};
	table_forget(&made);
}
