/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that the driver allocated or was told of. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

/* A range of host memory that the driver allocated or was told of. */
struct host_range {
	uintptr_t base;
	size_t bytes;
	unsigned int flags;
	bool is_registered;
	struct context *context;
	struct host_range *next;
};

/* All functions here are called under driver.memory_lock. */

/* The range that holds `address`, or NULL. */
struct host_range *host_find(uintptr_t address);

/* Remembers a range; a registered one must not begin in another. */
CUresult host_add(void *base, size_t bytes, unsigned int flags, bool is_registered);

/* Forgets the range of this kind that starts at `base`. Returns its bytes; 0: there is none. */
size_t host_remove(void *base, bool is_registered);
