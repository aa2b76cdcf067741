/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, handles, mappings. */
#pragma once

#include <stdbool.h>

#include "sim/cuda/heap.h"

/* The mapping in a reservation that holds `address`. Under memory_lock. */
bool vmm_find(struct owner *owner, CUdeviceptr address, struct extent *ret_extent);
