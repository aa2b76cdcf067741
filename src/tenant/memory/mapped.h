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
#include "tenant/memory/charge.h"

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

/*
 * The memory can be imported by other processes now, by the descriptor fd or (fd is -1) by a handle with
 * this key. Whoever imports it in this slice pays nothing more.
 */
void mapped_share(CUmemGenericAllocationHandle handle, int fd, uint64_t key);

/* An imported handle: of a joint that is held, and from now on by the handle. */
CUresult mapped_keep_joint(CUmemGenericAllocationHandle handle, unsigned joint);

/*
 * An imported handle of somebody who is not of this slice. What is not known to be so large yet (0) is
 * charged when it is mapped. CUDA_ERROR_OUT_OF_MEMORY: it must not be used.
 */
CUresult mapped_keep_foreign(
	CUmemGenericAllocationHandle handle, struct device *device, uint64_t bytes);
CUresult mapped_charge_foreign(CUmemGenericAllocationHandle handle, uint64_t bytes);

/* Something else may keep what is mapped there (whole mappings): it stays charged until the process ends. */
void mapped_may_stay(CUdeviceptr at, uint64_t bytes);

/* The mappings of a range, out of the tables while the driver unmaps them. */
struct mapped_taken {
	CUdeviceptr at;
	uint64_t bytes;
	struct mapped_reference reference;
};

#define MAPPED_FEW 64 /* so many need no memory of their own */
struct mapped_unmapping {
	unsigned count, places;
	struct mapped_taken *taken;
	struct mapped_taken few[MAPPED_FEW];
};
/* False without memory: nothing was taken out, and the driver must not be asked. */
bool mapped_unmap_begin(CUdeviceptr at, uint64_t bytes, struct mapped_unmapping *u) MUST_CHECK;
void mapped_unmap_end(struct mapped_unmapping *u, bool is_unmapped);

/* For a child of fork(). */
void mapped_reset_after_fork(void);
