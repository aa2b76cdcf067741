/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls by which the driver may take device memory that nobody names: code of kernels, heaps of
 * device code, streams, the driver's own bookkeeping.
 *
 *	struct guard guard;
 *	CUresult r = guard_begin_current(bound_bytes, &guard);
 *	if (r != CUDA_SUCCESS)
 *		return r;
 *	r = cuda.cuStreamCreate(...);
 *	guard_end(&guard);
 *
 * As much as the call may take at most is reserved before it; afterwards NVML's figure for this
 * process tells how much it took, which is charged as unattributed (reconcile.h). Where nothing is reserved,
 * NVML is asked only if the device's free memory has moved.
 */
#pragma once

#include "tenant/memory/charge.h"
#include "tenant/memory/reconcile.h"

struct guard {
	struct charge charge;
	uint64_t free_bytes;	   /* before the call; UINT64_MAX: unknown */
	uint64_t traffic, changes; /* of this process and of the slice, before it */
	uint64_t found_bytes;	   /* reconcile_found_bytes() before it */
	uint64_t current; /* current_since() before anything of the current context was asked */
	bool is_bounded;  /* set by who begins: no call takes far more than what is reserved */
	bool is_open_ended; /* likewise: it may take anything, and is measured with nothing in the way */
	bool is_end;	    /* likewise: the call gives back, and takes nothing */
	int64_t taken_bytes;  /* after guard_end(): by how much the device's free memory fell */
	struct growth growth; /* after guard_end(): what the call took */
	uint64_t life;	      /* after guard_end(): of the context; 0: of one that is not known */
	bool is_armed;
};

/*
 * Reserves bound_bytes on the device (0: nothing) and looks. CUDA_ERROR_OUT_OF_MEMORY is the only
 * refusal; *ret_guard is set on success only and goes to guard_end() in every case. The device's
 * context is current. Costs two questions to the driver
 * of 4.5 us and one to NVML of 15 us and more (H200).
 */
CUresult guard_begin(
	struct device *device, uint64_t bound_bytes, struct guard *ret_guard) MUST_CHECK;

/* The same for the current context's device; does nothing where there is nothing to enforce. */
CUresult guard_begin_current(uint64_t bound_bytes, struct guard *ret_guard) MUST_CHECK;

/*
 * Charges what the call took, or gives back what it gave back. False where the slice is above its
 * quota now, and something was found in this process meanwhile that no call had reserved, so this one may have taken
 * it: what can be undone should be, between another guard_begin(device, 0) and guard_end(). So it should where another context was made
 * current meanwhile, as the call may have been another device's: false, and all devices are compared.
 */
bool guard_end(struct guard *guard);

/* After guard_end(): what the call took for certain, by this process's own figure; 0: not known. */
static inline uint64_t guard_known_bytes(const struct guard *guard)
{
	const struct growth *growth = &guard->growth;

	return growth->is_told && growth->is_certain && growth->charged_bytes > 0
		       ? (uint64_t)growth->charged_bytes
		       : 0;
}

/* Instead of guard_end(), where the driver was not called after all. */
void guard_cancel(struct guard *guard);

/* What is free of the current context's device, for all processes; UINT64_MAX where it cannot be told. */
uint64_t guard_free_bytes(void);
