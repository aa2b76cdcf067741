/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, handles, mappings. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/model/memory/heap.h"

/* The mapping in a reservation that holds `address`. Under memory_lock. */
bool vmm_find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent);

/* A mapping into an array: what a handle of the program means, held until it is let go. Under memory_lock. */
struct handle *vmm_hold(CUmemGenericAllocationHandle number, unsigned long long offset);
void vmm_let_go(struct handle *handle);
/*
 * The kept memory that the handle's memory is, or becomes now, if it was created to be shared in that
 * way; and a new handle for kept memory that this process holds. Under memory_lock.
 */
CUresult vmm_keep(CUmemGenericAllocationHandle number, CUmemAllocationHandleType type,
	struct machine_kept *ret_kept);
CUresult vmm_adopt(const struct machine_kept *kept, CUmemAllocationHandleType type,
	CUmemGenericAllocationHandle *ret_number);
