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

/* Whether CUDA's table is filled, and how often NVML's was; see attach_cuda() and attach_nvml(). */
extern _Atomic bool attach_has_cuda;
extern _Atomic unsigned attach_nvml_fills;

/*
 * Fills the table if the program has loaded the library. False where it has not, or where its functions
 * cannot be found. Where the program has loaded an NVML, the one in the table is that of the attached driver
 * (own_nvml.h). Context: any thread; takes the C library's lock for loading.
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
	return LIKELY(atomic_load_explicit(&attach_nvml_fills, memory_order_acquire)) ||
	       attach_nvml_slowly();
}

/*
 * CUDA's functions as they were found, by which the door knows them; `cuda` is what hooks call, and is the same but in a process
 * whose driver is another's.
 */
extern struct cuda_driver attach_found;

/*
 * From now on each function in `cuda` answers CUDA_ERROR_NOT_INITIALIZED, but for those of cuGetProcAddress(). Context: the library is attached,
 * and no other thread has come as far as to a call of the driver.
 */
void attach_refuse_cuda(void);

/* Whether a library of that file name, or name within, is what is attached as CUDA's, or as NVML's. */
bool attach_is_cuda(const char *name);
bool attach_is_nvml(const char *name);

/* Loads NVML if nobody has. */
bool attach_load_nvml(void);

/*
 * Whether NVML's table was filled before there was a driver beside which it could lie: attach_load_nvml() looks again, and it may be
 * another's then.
 */
bool attach_nvml_is_early(void);
