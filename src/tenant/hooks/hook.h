/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every hook begins with.
 *
 * A hook asks first whether the real library is attached. The first one that asks also hands the table of
 * parts down (slice/parts.h), so that the modules below need not know who builds on them.
 */
#pragma once

#include "tenant/driver/attach.h"

/* Which libraries are attached since the table was handed down. */
extern _Atomic bool hook_has_cuda, hook_has_nvml;

bool hook_attach_cuda_slowly(void);
bool hook_attach_nvml_slowly(void);

/* Whether the driver's functions can be called. */
static inline bool hook_attach_cuda(void)
{
	/* pairs with the release in hook_attach_cuda_slowly() */
	return LIKELY(atomic_load_explicit(&hook_has_cuda, memory_order_acquire)) ||
	       hook_attach_cuda_slowly();
}

static inline bool hook_attach_nvml(void)
{
	/* pairs with the release in hook_attach_nvml_slowly() */
	return LIKELY(atomic_load_explicit(&hook_has_nvml, memory_order_acquire)) ||
	       hook_attach_nvml_slowly();
}

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
