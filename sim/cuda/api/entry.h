/* SPDX-License-Identifier: Apache-2.0 */
/* How an exported function is written. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/driver.h"

/* The numbers of the functions in the counts of calls. */
enum call {
#define ENTRY(symbol, base, version, form) CALL_##symbol,
#include "sim/cuda/entry.def"
	CALL_COUNT
};

#define ENTRY_UNPACK(...) __VA_ARGS__
#define ENTRY_EXPORT	  __attribute__((visibility("default")))

/*
 * ENTRY_BODY(symbol, (parameters), (arguments)) { ... } writes an exported function. The body runs
 * when the driver is initialised and no injected fault says otherwise.
 */
#define ENTRY_BODY(symbol, params, args)                                     \
	static CUresult symbol##_body params;                                \
	ENTRY_EXPORT symbol##_fn symbol;                                     \
	CUresult symbol params                                               \
	{                                                                    \
		CUresult result = driver_enter(CALL_##symbol);               \
		return result == CUDA_SUCCESS ? symbol##_body args : result; \
	}                                                                    \
	static CUresult symbol##_body params

/* The same for what a lock of the process does not stop. */
#define ENTRY_CONTROL(symbol, params, args)                                  \
	static CUresult symbol##_body params;                                \
	ENTRY_EXPORT symbol##_fn symbol;                                     \
	CUresult symbol params                                               \
	{                                                                    \
		CUresult result = driver_enter_control(CALL_##symbol);       \
		return result == CUDA_SUCCESS ? symbol##_body args : result; \
	}                                                                    \
	static CUresult symbol##_body params

/* The same for what may be called before cuInit. */
#define ENTRY_EARLY(symbol, params, args)                                    \
	static CUresult symbol##_body params;                                \
	ENTRY_EXPORT symbol##_fn symbol;                                     \
	CUresult symbol params                                               \
	{                                                                    \
		CUresult result = driver_enter_early(CALL_##symbol);         \
		return result == CUDA_SUCCESS ? symbol##_body args : result; \
	}                                                                    \
	static CUresult symbol##_body params

/*
 * Both forms of a function: `symbol` and `symbol##suffix`. The body gets one more parameter in
 * front, is_thread: whether stream 0 is the calling thread's.
 */
#define ENTRY_FORMS(symbol, suffix, params, args)                                                 \
	static CUresult symbol##_body(bool is_thread, ENTRY_UNPACK params);                       \
	ENTRY_EXPORT symbol##_fn symbol;                                                          \
	ENTRY_EXPORT symbol##suffix##_fn symbol##suffix;                                          \
	CUresult symbol params                                                                    \
	{                                                                                         \
		CUresult result = driver_enter(CALL_##symbol);                                    \
		return result == CUDA_SUCCESS ? symbol##_body(false, ENTRY_UNPACK args) : result; \
	}                                                                                         \
	CUresult symbol##suffix params                                                            \
	{                                                                                         \
		CUresult result = driver_enter(CALL_##symbol##suffix);                            \
		return result == CUDA_SUCCESS ? symbol##_body(true, ENTRY_UNPACK args) : result;  \
	}                                                                                         \
	static CUresult symbol##_body(bool is_thread, ENTRY_UNPACK params)
