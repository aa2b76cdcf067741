/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real driver's functions, and NVML's.
 *
 * The table of a library is filled once the program has loaded it. This module never loads CUDA: a process
 * that did not ask for the driver does not get it from us.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "base/bits.h"
#include "gpu/driver.h"

extern struct cuda_driver cuda;
extern struct nvml_driver nvml;

/* Which libraries' tables are filled; see attach_cuda() and attach_nvml(). */
extern _Atomic bool attach_has_cuda, attach_has_nvml;

/*
 * Fills the table if the program has loaded the library. False where it has not, or where its functions
 * cannot be found. Context: any thread; takes the C library's lock for loading.
 */
bool attach_cuda_slowly(void);
bool attach_nvml_slowly(void);

static inline bool attach_cuda(void)
{
	/* pairs with the release in attach_cuda_slowly() */
	return LIKELY(atomic_load_explicit(&attach_has_cuda, memory_order_acquire)) ||
	       attach_cuda_slowly();
}

static inline bool attach_nvml(void)
{
	/* pairs with the release in fill_nvml() */
	return LIKELY(atomic_load_explicit(&attach_has_nvml, memory_order_acquire)) ||
	       attach_nvml_slowly();
}

/* Whether a library of that file name, or name within, is what is attached as CUDA's, or as NVML's. */
bool attach_is_cuda(const char *name);
bool attach_is_nvml(const char *name);

/* Loads NVML if nobody has: for a process that uses CUDA already. */
bool attach_load_nvml(void);
