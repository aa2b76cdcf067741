/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, handles, mappings. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/model/memory/heap.h"

/* Whether memory may be created so; whether a size or an address is a multiple of what is mapped. */
CUresult vmm_check(const CUmemAllocationProp *prop);
bool vmm_is_aligned(uint64_t value);

/* All other functions here are called under driver.memory_lock. */

/* Addresses without memory, and their end. */
CUresult vmm_reserve(size_t size, size_t alignment, CUdeviceptr *ret_base);
CUresult vmm_unreserve(CUdeviceptr base, size_t size);

/* A multicast object, which is a handle without memory; and what a number means as one that has this range, or NULL. */
CUresult vmm_create_multicast(
	const CUmulticastObjectProp *object, CUmemGenericAllocationHandle *ret_number);
struct multicast *vmm_multicast(CUmemGenericAllocationHandle number, size_t offset, size_t size);
/* It was given to others, if it was created to be shared in that way: nothing ends it before this process. */
CUresult vmm_keep_multicast(CUmemGenericAllocationHandle number, CUmemAllocationHandleType type);

/* Memory without an address: a reference of the program, and its end. */
CUresult vmm_create(
	size_t size, const CUmemAllocationProp *prop, CUmemGenericAllocationHandle *ret_number);
CUresult vmm_release(CUmemGenericAllocationHandle number);
CUresult vmm_get_prop(CUmemGenericAllocationHandle number, CUmemAllocationProp *ret_prop);

/* Memory at an address. */
CUresult vmm_map(CUdeviceptr base, size_t size, size_t offset, CUmemGenericAllocationHandle number,
	unsigned long long flags);
CUresult vmm_unmap(CUdeviceptr base, size_t size);
CUresult vmm_set_access(CUdeviceptr base, size_t size, CUmemAccess_flags access);
CUresult vmm_get_access(CUdeviceptr address, unsigned long long *ret_flags);
/* One more reference to what is mapped there. */
CUresult vmm_retain(CUdeviceptr address, CUmemGenericAllocationHandle *ret_number);

/* A mapping into an array: what a handle of the program means, held until it is let go. */
struct handle *vmm_hold(CUmemGenericAllocationHandle number, unsigned long long offset);
void vmm_let_go(struct handle *handle);
/*
 * The kept memory that the handle's memory is, or becomes now, if it was created to be shared in that
 * way; and a new handle for kept memory that this process holds.
 */
CUresult vmm_keep(CUmemGenericAllocationHandle number, CUmemAllocationHandleType type,
	struct machine_kept *ret_kept);
CUresult vmm_adopt(const struct machine_kept *kept, CUmemAllocationHandleType type,
	CUmemGenericAllocationHandle *ret_number);
