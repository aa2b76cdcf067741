/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is created, mapped and shared by handle (cuMemCreate and its kin).
 *
 * It lives until the last of its references goes: handles that were created or retained, and
 * mappings. Releasing the handle of mapped memory frees nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "shim/charge.h"

/* Keeps the charge for a new handle. Without memory of our own the handle is released again. */
CUresult mapped_keep(CUmemGenericAllocationHandle handle, struct charge *charge);

/*
 * References come before the driver is asked and go after it has answered, so that the charge
 * outlives the memory. But a handle whose memory is gone may be given to another thread before we
 * hear of it, so what goes is taken out of the tables first (begin) and given back, or put back,
 * afterwards (end). Unknown handles and addresses are nobody's.
 */
void mapped_retain(CUmemGenericAllocationHandle handle);

struct mapped_reference {
	CUmemGenericAllocationHandle handle; /* 0: nothing of ours */
	uint64_t charge;		     /* 0: not the last reference */
};
struct mapped_reference mapped_release_begin(CUmemGenericAllocationHandle handle);
void mapped_release_end(const struct mapped_reference *reference, bool is_released);

/* Remembers a mapping, whose reference was retained before; false without memory. */
bool mapped_map(CUdeviceptr at, uint64_t bytes, CUmemGenericAllocationHandle handle);

#define MAPPED_BATCH 64
struct mapped_unmapping {
	CUdeviceptr at;
	uint64_t bytes;
	unsigned count;
	bool is_complete; /* false: more than MAPPED_BATCH mappings, so nothing was taken out */
	struct {
		CUdeviceptr at;
		uint64_t bytes;
		struct mapped_reference reference;
	} taken[MAPPED_BATCH];
};
void mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_unmapping *ret_unmapping);
void mapped_unmap_end(const struct mapped_unmapping *unmapping, bool is_unmapped);

/* For a child of fork(). */
void mapped_forget_parent(void);
