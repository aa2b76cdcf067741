/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to the allocation it lies in, whatever kind it is. */
#pragma once

#include "sim/cuda/model/memory/heap.h"

/* The device allocation that holds `address`. Under memory_lock. */
bool lookup_extent(CUdeviceptr address, struct extent *ret_extent);

/* cuMemFree, and cuMemFreeAsync in a stream that gets there at that time. Under memory_lock. */
CUresult lookup_free(CUdeviceptr base);
CUresult lookup_free_at(CUdeviceptr base, uint64_t at_ns);

/*
 * Checks that [address, address + bytes) may be worked on by the device `device` (NULL: only
 * looked at from the host) and marks it touched; managed memory becomes resident. Memory that the
 * driver does not know is the host's. *ret_is_host says where it is. Takes memory_lock.
 */
CUresult lookup_use(CUdeviceptr address, size_t bytes, struct device *device, bool *ret_is_host);
