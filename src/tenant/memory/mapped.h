/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created and mapped by handle (cuMemCreate and its kin). How it is shared is in mapped_share.h.
 *
 * It lives until the last of its references goes: handles that were created or retained, mappings, and bindings to
 * multicast objects (multicast.h). Releasing the handle of mapped memory frees nothing. A handle's references end by
 * holding_end_begin() of HOLDING_CREATED.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"

/* The granularity of mappings on every device that we know (cuMemGetAllocationGranularity). */
#define MAPPING_STEP_BYTES UINT64_C(0x200000)

#define MAPPED_END_TRIES   3 /* a driver that fails does not fail each time */

/* Keeps the charge for a new handle. Without memory of our own the handle is released again. */
CUresult mapped_keep(CUmemGenericAllocationHandle handle, struct charge *charge);

/*
 * A call that will refer to the memory, around the driver's: begin pins it. serial 0: it is nobody's, as the driver says that it is on
 * the host. CUDA_ERROR_INVALID_VALUE: another thread is releasing it. What the driver refuses has its error.
 */
struct mapped_reference {
	CUmemGenericAllocationHandle handle;
	uint32_t serial;
	uint32_t pin;	/* the serial number that was pinned, also where it is nobody's */
	bool is_object; /* not memory but a multicast object, which its importers keep */
};
CUresult mapped_refer_begin(
	CUmemGenericAllocationHandle handle, struct mapped_reference *ret_reference) MUST_CHECK;
/* The mapping that the address is in. */
bool mapped_find(CUdeviceptr at, CUdeviceptr *ret_start, CUdeviceptr *ret_end) MUST_CHECK;
/* The same for what is mapped at the address. */
CUresult mapped_refer_begin_at(CUdeviceptr at, struct mapped_reference *ret_reference) MUST_CHECK;
/* False: what the driver made must be undone. */
bool mapped_refer_end(const struct mapped_reference *reference, bool is_made);

/* A mapping of the memory, if there is one. */
bool mapped_find_of(const struct mapped_reference *reference, CUdeviceptr *ret_at) MUST_CHECK;

/* Remembers a mapping, whose reference was made before; false without memory. */
bool mapped_map(CUdeviceptr at, uint64_t bytes, const struct mapped_reference *reference);

/* Ends a reference in the driver that is our own. False where it is refused each time, so that the memory stays. */
bool mapped_let_go(CUmemGenericAllocationHandle handle);

/* The mappings that lie wholly in a range. */
struct mapped_part {
	CUdeviceptr at;
	uint64_t bytes;
	struct holding_end end; /* of the mapping's reference */
	struct mapped_reference reference;
};

#define MAPPED_FEW 16 /* so many need no memory of their own */
struct mapped_range {
	unsigned count, places;
	struct mapped_part *parts;
	struct mapped_part few[MAPPED_FEW];
};

/* Out of the tables while the driver unmaps them. False without memory: the driver must not be asked. */
bool mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_range *range) MUST_CHECK;
void mapped_unmap_end(struct mapped_range *range, bool is_unmapped);

/*
 * Pinned while the driver makes something that may keep them; then they stay charged until the process ends.
 * False afterwards: they are not all there any more, and what was made must be undone.
 */
CUresult mapped_stay_begin(CUdeviceptr at, uint64_t bytes, struct mapped_range *range) MUST_CHECK;
bool mapped_stay_end(struct mapped_range *range, bool is_made);
/* What is pinned has so many bytes in all: fewer than the range where there is a gap in it. */
uint64_t mapped_range_bytes(const struct mapped_range *range);

/* For a child of fork(). */
void mapped_reset_after_fork(void);
