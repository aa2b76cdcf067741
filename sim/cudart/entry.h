/* SPDX-License-Identifier: Apache-2.0 */
/* How a function of the runtime is written: over the driver, with the primary context of the thread's device. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "gpu/abi/cuda.h"

/* Those that programs are built for; the libraries differ where NVIDIA changed a function's form. */
#ifndef RUNTIME_MAJOR
#error "RUNTIME_MAJOR is 12 or 13"
#endif

/* The driver's functions by name, so that a preloaded library stands between, as for any program. */
#define ENTRY(symbol, base, version, form) extern symbol##_fn symbol;
#include "sim/cuda/entry.def"

#define RUNTIME_EXPORT __attribute__((visibility("default")))

/* Errors have the driver's numbers. */
typedef CUresult cudaError_t;

struct runtime_size {
	unsigned int x, y, z;
};

/* The driver is initialised. */
CUresult runtime_start(void);
/* The same, and a context is current: the one that is, or the primary one of the thread's device. */
CUresult runtime_enter(void);
/* Remembers what went wrong for cudaGetLastError(). Returns it. */
CUresult runtime_leave(CUresult result);

/* The thread's device. */
int runtime_device(void);
/* How often a device was reset: what was loaded before is gone. */
unsigned long long runtime_resets(void);

/* The kernel or the variable behind an address of the program, in the current context. */
CUresult runtime_find_function(const void *host, CUfunction *ret_function);
CUresult runtime_find_variable(const void *host, CUdeviceptr *ret_address, size_t *ret_bytes);
/* What stands for a kernel in the program's hands. */
CUresult runtime_find_kernel(const void *host, void **ret_kernel);

#define RUNTIME_BODY(symbol, params, enter, call)                               \
	RUNTIME_EXPORT cudaError_t symbol params;                               \
	RUNTIME_EXPORT cudaError_t symbol params                                \
	{                                                                       \
		CUresult result = enter();                                      \
                                                                                \
		return runtime_leave(result == CUDA_SUCCESS ? (call) : result); \
	}

/* RUNTIME(symbol, (parameters), call): the call runs with a current context. */
#define RUNTIME(symbol, params, call) RUNTIME_BODY(symbol, params, runtime_enter, call)
/* The same for what needs none. */
#define RUNTIME_EARLY(symbol, params, call) RUNTIME_BODY(symbol, params, runtime_start, call)
