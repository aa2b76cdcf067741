/* SPDX-License-Identifier: Apache-2.0 */
/* What a context takes. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/context_size.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/ipc.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"

/* 518 MiB on the 132 multiprocessors of an H200 are 3.93 MiB each. */
#define ESTIMATE_BYTES_PER_SM UINT64_C(0x400000)
#define ESTIMATE_MIN_BYTES    UINT64_C(0x4000000)
/* A measured figure outside these bounds measured something else at the same time. */
#define MEASURED_MIN_BYTES    UINT64_C(0x1000000)
#define MEASURED_MAX_TIMES    4
#define UNANNOUNCED_MAX_BYTES UINT64_C(0x1000000)

/* A figure that is so old is measured again: drivers change while a slice lives, and a measure may have been wrong. */
#define MEASURED_FOR_NS UINT64_C(600000000000)

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

/* That was so long ago, or never, that the next context tells. */
static bool is_to_be_measured(const struct device *device)
{
	/* relaxed: two that measure say the same */
	uint64_t then = atomic_load_explicit(
		&state.region.file->own.devices[device->entry].context_measured_ns,
		memory_order_relaxed);
	uint64_t now = clock_coarse_ns();

	return !then || then > now || now - then > MEASURED_FOR_NS;
}

uint64_t context_size_expected_bytes(const struct device *device)
{
	uint64_t learned = learned_bytes(device), estimated = estimate(device);

	return learned && (learned <= estimated || !is_to_be_measured(device)) ? learned
									       : estimated;
}

/* Makes what was reserved for a context what it took. The charge is not taken yet, so nothing is noted. */
static void correct(struct device *device, struct charge *charge, uint64_t bytes)
{
	uint64_t charged = (uint64_t)charge->units * REGION_UNIT_BYTES;

	FAULT("context: measured");
	if (bytes > charged)
		ledger_charge_anyway(state.region.file, state.slot, device->entry,
			ledger_units(bytes - charged));
	else if (bytes < charged)
		ledger_uncharge(state.region.file, state.slot, device->entry,
			ledger_units(charged - bytes));
	FAULT("context: corrected");
	charge->units = (uint32_t)ledger_units(bytes);
}

static void learn(const struct device *device, uint64_t bytes)
{
	struct region_device *entry = &state.region.file->own.devices[device->entry];

	if (bytes != learned_bytes(device))
		log_debug(
			"a context was measured", STR("device", device->uuid), U64("bytes", bytes));
	/* relaxed both: as in learned_bytes() and is_to_be_measured() */
	atomic_store_explicit(&entry->context_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&entry->context_measured_ns, clock_coarse_ns(), memory_order_relaxed);
}

/*
 * And little that the driver took unannounced, which makes the figure larger. What is shared with other processes is
 * charged apart, but the figure has it.
 */
static bool holds_contexts_alone(const struct device *device, uint64_t held)
{
	const _Atomic uint64_t *kinds =
		state.region.file->own.slots[state.slot].kind_bytes[device->entry];
	/* relaxed both: written by charges, of which none is under way */
	uint64_t contexts = atomic_load_explicit(&kinds[CHARGE_CONTEXT], memory_order_relaxed);
	uint64_t other = atomic_load_explicit(&kinds[CHARGE_UNATTRIBUTED], memory_order_relaxed);

	return held == contexts + other && other <= UNANNOUNCED_MAX_BYTES &&
	       !ipc_shown_bytes(device) && !ipc_foreign_bytes(device) &&
	       !ipc_is_open_elsewhere(device);
}

/*
 * What the figure says that a context takes, of as many; what is unattributed may be theirs. Where it is not, it
 * explains all that the figure says beyond the size that is remembered, and stays charged as what it is: charged to a
 * context, it would be given back with that.
 */
static uint64_t share_of_one(
	const struct device *device, uint64_t used, uint64_t contexts, uint64_t learned)
{
	/* relaxed: written by charges, of which none is under way */
	uint64_t other =
		atomic_load_explicit(&state.region.file->own.slots[state.slot]
					      .kind_bytes[device->entry][CHARGE_UNATTRIBUTED],
			memory_order_relaxed);
	uint64_t known = learned * contexts + other;

	if (learned && used <= known && known - used < (contexts + 1) * REGION_UNIT_BYTES)
		return learned;
	return round_up_u64(used / contexts, REGION_UNIT_BYTES);
}

enum context_size_found context_size_measure(
	struct device *device, struct charge *charge, const _Atomic uint32_t *live)
{
	uint64_t charged = (uint64_t)charge->units * REGION_UNIT_BYTES, held, used, measured;
	uint64_t traffic = charge_traffic(), learned;
	bool is_exact;

	if (!charge->device)
		return CONTEXT_SIZE_KNOWN;
	learned = learned_bytes(device);
	if (!own_pid_is_certain(device))
		own_pid_after_context(device, learned);
	/* To begin NVML takes longer than it is worth each time. */
	if (learned && !nvml_is_begun() && !is_to_be_measured(device))
		return CONTEXT_SIZE_KNOWN;
	held = charge_held_bytes(device);
	FAULT("context: asking");
	if (own_pid_memory_bytes(device->uuid, held - charged, &used) != 0)
		return CONTEXT_SIZE_KNOWN;
	is_exact = holds_contexts_alone(device, held - charged) && (uint32_t)traffic == 1 &&
		   traffic == charge_traffic();
	if (used < held - charged)
		return CONTEXT_SIZE_UNSURE;
	measured = round_up_u64(used - (held - charged), REGION_UNIT_BYTES);
	if (is_exact)
		measured = share_of_one(device, used, atomic_load(live) + 1, learned);
	if (measured < MEASURED_MIN_BYTES)
		return CONTEXT_SIZE_UNSURE;
	if (is_exact)
		own_pid_is_confirmed(device);
	if (is_exact)
		correct(device, charge, measured);
	if (is_exact && measured <= MEASURED_MAX_TIMES * estimate(device))
		learn(device, measured);
	if (!is_exact)
		return CONTEXT_SIZE_UNSURE;
	return measured <= charged ? CONTEXT_SIZE_KNOWN : CONTEXT_SIZE_LARGER;
}
