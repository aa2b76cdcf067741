/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors: how a call of the program reaches us, and how we reach the real driver.
 *
 * A program finds a driver function in three ways: by the exported name, by dlsym()/dlvsym(), and by
 * cuGetProcAddress(). The first reaches us because we are preloaded. For the other two one rule
 * holds: ask the real resolver, then swap the answer if it is the address of a function that we
 * replace. So versions, suffixes and flags are the driver's business, and another library's
 * function that has one of these names is left alone.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "gpu/driver.h"

extern struct cuda_driver cuda;
extern struct nvml_driver nvml;

/* Which libraries' tables are filled; see doors_attach_*(). */
extern _Atomic bool doors_has_cuda, doors_has_nvml;

/*
 * Fills the table if the program has loaded the library; never loads it. False where it has not, or
 * where its functions cannot be found.
 */
bool doors_attach_cuda_slowly(void);
bool doors_attach_nvml_slowly(void);

static inline bool doors_attach_cuda(void)
{
	/* pairs with the release in doors_attach_cuda_slowly() */
	return LIKELY(atomic_load_explicit(&doors_has_cuda, memory_order_acquire)) ||
	       doors_attach_cuda_slowly();
}

static inline bool doors_attach_nvml(void)
{
	/* pairs with the release in doors_attach_nvml_slowly() */
	return LIKELY(atomic_load_explicit(&doors_has_nvml, memory_order_acquire)) ||
	       doors_attach_nvml_slowly();
}

/* Loads NVML if nobody has: for a process that uses CUDA already. */
bool doors_load_nvml(void);

/* The hook of a driver function's address, or the address itself. NULL gives NULL. */
void *doors_swap(void *address);

/* Whether the address lies in this library. */
bool doors_is_ours(const void *address);

/* A HOOK row's body: exported, checked against the row and the type. NVML's bodies set the result. */
#define HOOK_RESULT CUresult
#define HOOK_BODY(symbol, ...)                                                        \
	__attribute__((visibility("default"))) symbol##_fn symbol;                    \
	_Static_assert(HOOK_##symbol < HOOK_COUNT, "no row in cuda.def or nvml.def"); \
	HOOK_RESULT symbol(__VA_ARGS__)

enum {
#define HOOK(s) HOOK_##s,
#define CALL(s)
#include "gpu/cuda.def"
#define HOOK(s) HOOK_##s,
#define CALL(s)
#include "gpu/nvml.def"
	HOOK_COUNT
};
