/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another preloaded library, as profilers and allocators are: it wraps puts and cuMemAlloc_v2 and
 * finds the ones behind it by dlsym(RTLD_NEXT), each time it is called.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "gpu/abi/cuda.h"

#define EXPORT __attribute__((visibility("default")))

typedef int puts_fn(const char *text);

unsigned outer_report(unsigned *ret_allocs);
cuMemAlloc_v2_fn cuMemAlloc_v2;

/* This library's own function, whichever of that name comes first in the program. */
static CUresult wrap_alloc(CUdeviceptr *dptr, size_t bytes);
extern cuMemAlloc_v2_fn outer_alloc __attribute__((alias("cuMemAlloc_v2"), visibility("hidden")));

static unsigned puts_calls, alloc_calls, depth;

EXPORT int puts(const char *text)
{
	puts_fn *next = (puts_fn *)dlsym(RTLD_NEXT, "puts");
	puts_fn *again = (puts_fn *)dlsym(RTLD_NEXT, "puts");

	puts_calls++;
	if (!next || next != again || next == puts)
		return -1;
	return next(text);
}

static CUresult wrap_alloc(CUdeviceptr *dptr, size_t bytes)
{
	cuMemAlloc_v2_fn *next = (cuMemAlloc_v2_fn *)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	cuMemAlloc_v2_fn *again = (cuMemAlloc_v2_fn *)dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	CUresult r;

	if (!next || next != again || next == outer_alloc || depth > 0)
		return CUDA_ERROR_UNKNOWN;
	alloc_calls++;
	depth++;
	r = next(dptr, bytes);
	depth--;
	return r;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *dptr, size_t bytes)
{
	return wrap_alloc(dptr, bytes);
}

/* The same question without the call, from a library that is not first in the search order. */
EXPORT unsigned outer_report(unsigned *ret_allocs)
{
	void *next = dlsym(RTLD_NEXT, "cuMemAlloc_v2");

	*ret_allocs = alloc_calls;
	if (!next || next == (void *)outer_alloc)
		return 0;
	return puts_calls;
}
