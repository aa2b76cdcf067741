/* SPDX-License-Identifier: Apache-2.0 */
/* Memory beyond the device's. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/oversubscribe.h"

#include "base/fault.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/slice/quota.h"

enum ability { NOT_ASKED, ABLE, UNABLE };
static _Atomic int abilities[STATE_ORDINALS];

static bool has_attribute(CUdevice ordinal, CUdevice_attribute attribute)
{
	int value = 0;

	return cuda.cuDeviceGetAttribute &&
	       cuda.cuDeviceGetAttribute(&value, attribute, ordinal) == CUDA_SUCCESS && value;
}

/*
 * Without concurrent access the driver puts all managed memory on the device before each kernel, so
 * that it cannot be more than the device has.
 */
static bool is_able(const struct device *d)
{
	/* relaxed: two threads that ask at once learn the same */
	int known = atomic_load_explicit(&abilities[d->ordinal], memory_order_relaxed);

	if (LIKELY(known != NOT_ASKED))
		return known == ABLE;
	known = cuda.cuMemAdvise && has_attribute(d->ordinal, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) &&
				has_attribute(
					d->ordinal, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
			? ABLE
			: UNABLE;
	if (atomic_exchange(&abilities[d->ordinal], known) == NOT_ASKED && known == UNABLE)
		log_warn(
			"CUDA_OVERSUBSCRIBE does nothing: the device cannot work on managed memory "
			"that is elsewhere",
			STR("device", d->uuid));
	return known == ABLE;
}

bool oversubscribe_is_on(const struct device *device)
{
	/* relaxed: see set_limit() */
	return quota_options()->is_oversubscribed &&
	       atomic_load_explicit(&device->limit_units, memory_order_relaxed) !=
		       LEDGER_NO_LIMIT &&
	       is_able(device);
}

static void advise(CUdeviceptr pointer, size_t bytes, const struct device *d)
{
	if (cuda.cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) !=
			CUDA_SUCCESS ||
		cuda.cuMemAdvise(pointer, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, d->ordinal) !=
			CUDA_SUCCESS)
		log_debug("the driver does not take advice on memory beyond the device's",
			STR("device", d->uuid));
}

CUresult oversubscribe_place(CUresult r, size_t bytes, struct charge *charge, CUdeviceptr *pointer)
{
	struct device *current;
	CUdeviceptr placed;

	if (r != CUDA_ERROR_OUT_OF_MEMORY || !charge->device ||
		!oversubscribe_is_on(charge->device))
		return r;
	/* A stream of another device: what is made here would be its own context's. */
	if (state_current_device(&current) != CUDA_SUCCESS || current != charge->device ||
		cuda.cuMemAllocManaged(&placed, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS)
		return r;
	FAULT("oversubscribe: placed");
	advise(placed, bytes, current);
	charge->kind = CHARGE_MANAGED;
	r = allocations_keep_host_fallback(placed, bytes, charge);
	if (r != CUDA_SUCCESS)
		return r;
	*pointer = placed;
	log_info("the device is full, so memory is placed in the host's",
		STR("device", current->uuid), U64("bytes", bytes));
	return r;
}

void oversubscribe_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		atomic_store(&abilities[i], NOT_ASKED);
}
