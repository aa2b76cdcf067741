/* SPDX-License-Identifier: Apache-2.0 */
/* From an address to the allocation it lies in, whatever kind it is. */
#pragma once

#include "sim/cuda/model/memory/heap.h"

/* The device allocation that holds `address`. Under memory_lock. */
bool lookup_extent(CUdeviceptr address, struct extent *ret_extent);

/*
 * Checks that [address, address + bytes) may be worked on by the device `device` (NULL: only
 * looked at from the host) and marks it touched; managed memory becomes resident. Memory that the
 * driver does not know is the host's. *ret_is_host says where it is. Takes memory_lock.
 */
CUresult lookup_use(CUdeviceptr address, size_t bytes, struct device *device, bool *ret_is_host);

/* A range of host memory that the driver allocated or was told of. */
struct host_range {
	uintptr_t base;
	size_t bytes;
	unsigned int flags;
	bool is_registered;
	struct context *context;
	struct host_range *next;
};
/* The one that holds `address`, or NULL. Under memory_lock. */
struct host_range *lookup_host(uintptr_t address);
