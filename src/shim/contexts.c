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
#include "shim/contexts.h"

#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "shim/doors.h"
#include "shim/nvml.h"
#include "shim/own_pid.h"
#include "shim/table.h"
#include "shim/truth.h"

/* 518 MiB on the 132 multiprocessors of an H200 are 3.93 MiB each. */
#define ESTIMATE_BYTES_PER_SM UINT64_C(0x400000)
#define ESTIMATE_MIN_BYTES    UINT64_C(0x4000000)
/* A measured figure outside these bounds measured something else at the same time. */
#define MEASURED_MIN_BYTES UINT64_C(0x1000000)
#define MEASURED_MAX_TIMES 4

struct primary {
	struct lock lock;
	uint64_t charged_bytes; /* 0: there is none */
	CUcontext context;
};

static struct primary primaries[STATE_ORDINALS];
static struct table made; /* key: context; a: charged bytes; b: ordinal */

static _Atomic uint64_t *learned(const struct device *device)
{
	return &state.region.file->own.devices[device->entry].context_bytes;
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

CUresult contexts_reserve(struct device *device, struct charge *ret_charge)
{
	/* relaxed: a figure that is not there yet is measured once more */
	uint64_t bytes = atomic_load_explicit(learned(device), memory_order_relaxed);

	CUresult r;

	truth_start();
	r = charge_reserve(device, bytes ? bytes : estimate(device), CHARGE_CONTEXT, ret_charge);
	if (r == CUDA_SUCCESS && ledger_held_bytes(state.region.file, state.slot, device->entry) ==
					 (uint64_t)ret_charge->units * REGION_UNIT_BYTES)
		own_pid_before_context(device);
	return r;
}

void contexts_measure(struct device *device, struct charge *charge)
{
	uint64_t charged = (uint64_t)charge->units * REGION_UNIT_BYTES, held, used, measured;

	if (!charge->device)
		return;
	/* relaxed: as above */
	measured = atomic_load_explicit(learned(device), memory_order_relaxed);
	own_pid_after_context(device, measured);
	held = ledger_held_bytes(state.region.file, state.slot, device->entry);
	if (measured || nvml_own_use(device->uuid, held - charged, &used) != 0)
		return;
	measured = round_up_u64(used - (held - charged), REGION_UNIT_BYTES);
	if (used < held - charged || measured < MEASURED_MIN_BYTES ||
		measured > MEASURED_MAX_TIMES * charged)
		return;
	/* The charge is not taken yet: what it reserved is corrected and not noted. */
	if (measured > charged)
		ledger_charge_anyway(state.region.file, state.slot, device->entry,
			ledger_units(measured - charged));
	else if (measured < charged)
		ledger_uncharge(state.region.file, state.slot, device->entry,
			ledger_units(charged - measured));
	charge->units = (uint32_t)ledger_units(measured);
	/* relaxed: as above */
	atomic_store_explicit(learned(device), measured, memory_order_relaxed);
	log_debug("a context was measured", STR("device", device->uuid), U64("bytes", measured));
}

CUresult contexts_keep(CUcontext context, struct charge *charge)
{
	struct table_entry entry = {.key = (uintptr_t)context};

	if (!charge->device)
		return CUDA_SUCCESS;
	entry.b = (uint64_t)charge->device->ordinal;
	entry.a = (uint64_t)charge->units * REGION_UNIT_BYTES;
	if (table_put(&made, entry) < 0) {
		log_error("no memory for our own tables, so a context is refused");
		cuda.cuCtxDestroy_v2(context);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	charge_take(charge);
	return CUDA_SUCCESS;
}

/* A context is gone, and with it all that lived in it. */
static void end(struct device *device, CUcontext context, uint64_t bytes)
{
	for (int i = 0; contexts_enders[i]; i++)
		contexts_enders[i](device, context);
	charge_give_back(device, bytes, CHARGE_CONTEXT);
	truth_forget(device);
}

void contexts_destroyed(CUcontext context)
{
	struct table_entry entry;

	if (table_take(&made, (uintptr_t)context, &entry) == 0)
		end(state_device((CUdevice)entry.b), context, entry.a);
}

bool contexts_primary_is_active(const struct device *device)
{
	unsigned int flags;
	int is_active = 0;

	return cuda.cuDevicePrimaryCtxGetState &&
	       cuda.cuDevicePrimaryCtxGetState(device->ordinal, &flags, &is_active) ==
		       CUDA_SUCCESS &&
	       is_active;
}

void contexts_compare_primary(struct device *device, CUcontext context, struct charge *charge)
{
	struct primary *p = &primaries[device->ordinal];
	CUcontext gone = NULL;
	uint64_t gone_bytes = 0;

	lock_enter(&p->lock);
	if (contexts_primary_is_active(device)) {
		if (!p->charged_bytes && charge && charge->device) {
			p->context = context;
			p->charged_bytes = charge_take(charge);
		}
	} else if (p->charged_bytes) {
		gone = p->context;
		gone_bytes = p->charged_bytes;
		p->charged_bytes = 0;
	}
	lock_leave(&p->lock);
	if (gone_bytes)
		end(device, gone, gone_bytes);
}

void contexts_forget_parent(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		primaries[i] = (struct primary){.charged_bytes = 0};
	table_forget(&made);
}
