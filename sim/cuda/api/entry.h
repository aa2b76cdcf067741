/* SPDX-License-Identifier: Apache-2.0 */
/* How an exported function is written. */
#pragma once

#include <stdbool.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/context/context.h"
#include "sim/cuda/model/driver.h"

/* The numbers of the functions in the counts of calls. */
enum call {
#define ENTRY(symbol, base, version, form) CALL_##symbol,
#include "sim/cuda/entry.def"
	CALL_COUNT
};

#define ENTRY_UNPACK(...) __VA_ARGS__

/* The context or the stream that an entry looks up before its body runs. */
struct entry {
	struct context *context;
	struct stream *stream;
};

static inline CUresult entry_current(unsigned int call, struct entry *entry)
{
	CUresult result = driver_enter(call);

	return result == CUDA_SUCCESS ? context_current(&entry->context) : result;
}

static inline CUresult entry_old(unsigned int call, struct entry *entry)
{
	CUresult result = entry_current(call, entry);

	return result == CUDA_SUCCESS && !context_is_old(entry->context)
		       ? CUDA_ERROR_INVALID_CONTEXT
		       : result;
}

static inline CUresult entry_stream(
	unsigned int call, CUstream handle, bool is_thread, struct entry *entry)
{
	CUresult result = driver_enter(call);

	return result == CUDA_SUCCESS ? context_stream(handle, is_thread, &entry->stream) : result;
}

/*
 * A program of tests may have a function of this name (tests/hunt): called at the beginning and at the end of each
 * call, where no lock is held. What it answers at the beginning, other than 0, is the call's answer.
 */
extern int hunt_at_call(const char *symbol, bool is_end)
	__attribute__((weak, visibility("default")));

static inline CUresult entry_begin(const char *symbol)
{
	return hunt_at_call ? (CUresult)hunt_at_call(symbol, false) : CUDA_SUCCESS;
}

static inline CUresult entry_end(const char *symbol, CUresult result)
{
	if (hunt_at_call)
		hunt_at_call(symbol, true);
	return result;
}

/* The exported function: `call` where `enter` says success. */
#define ENTRY_EXPORT(symbol, params, enter, call)                                  \
	__attribute__((visibility("default"))) symbol##_fn symbol;                 \
	CUresult symbol params                                                     \
	{                                                                          \
		__attribute__((unused)) struct entry entry;                        \
		CUresult result = entry_begin(#symbol);                            \
		if (result == CUDA_SUCCESS)                                        \
			result = enter;                                            \
		return entry_end(#symbol, result == CUDA_SUCCESS ? call : result); \
	}

/*
 * ENTRY_BODY(symbol, (parameters), (arguments)) { ... } writes an exported function. The body runs
 * when the driver is initialised and no injected fault says otherwise.
 */
#define ENTRY_BODY(symbol, params, args)                                              \
	static CUresult symbol##_body params;                                         \
	ENTRY_EXPORT(symbol, params, driver_enter(CALL_##symbol), symbol##_body args) \
	static CUresult symbol##_body params

/* The same for what a lock of the process does not stop. */
#define ENTRY_CONTROL(symbol, params, args)                                                   \
	static CUresult symbol##_body params;                                                 \
	ENTRY_EXPORT(symbol, params, driver_enter_control(CALL_##symbol), symbol##_body args) \
	static CUresult symbol##_body params

/* The same for what may be called before cuInit. */
#define ENTRY_EARLY(symbol, params, args)                                                   \
	static CUresult symbol##_body params;                                               \
	ENTRY_EXPORT(symbol, params, driver_enter_early(CALL_##symbol), symbol##_body args) \
	static CUresult symbol##_body params

/* The body gets one more parameter in front, `context`: the thread's current one, which is needed. */
#define ENTRY_CONTEXT(enter, symbol, params, args)                                   \
	static CUresult symbol##_body(struct context *context, ENTRY_UNPACK params); \
	ENTRY_EXPORT(symbol, params, enter(CALL_##symbol, &entry),                   \
		symbol##_body(entry.context, ENTRY_UNPACK args))                     \
	static CUresult symbol##_body(struct context *context, ENTRY_UNPACK params)
#define ENTRY_CURRENT(...) ENTRY_CONTEXT(entry_current, __VA_ARGS__)

/* The same for an interface of CUDA 2, whose sizes and device pointers have 32 bits. It needs a context of its version. */
#define ENTRY_OLD(...) ENTRY_CONTEXT(entry_old, __VA_ARGS__)

/* The bytes in a type of either width, or the most that it can say. */
#define ENTRY_BYTES(type, bytes) ((type)((bytes) < (type)-1 ? (bytes) : (type)-1))

/*
 * ENTRY_CALL(symbol, (parameters), call) writes an exported function that is nothing but a call, maybe of
 * another's body. In _CURRENT and _OLD the call finds the context in entry.context.
 */
#define ENTRY_CALL(symbol, params, call) \
	ENTRY_EXPORT(symbol, params, driver_enter(CALL_##symbol), call)
#define ENTRY_CALL_CURRENT(symbol, params, call) \
	ENTRY_EXPORT(symbol, params, entry_current(CALL_##symbol, &entry), call)
#define ENTRY_CALL_OLD(symbol, params, call) \
	ENTRY_EXPORT(symbol, params, entry_old(CALL_##symbol, &entry), call)

/*
 * Both forms of a function: `symbol` and `symbol##suffix`. The body gets one more parameter in
 * front, is_thread: whether stream 0 is the calling thread's.
 */
#define ENTRY_FORMS(symbol, suffix, params, args)                                 \
	static CUresult symbol##_body(bool is_thread, ENTRY_UNPACK params);       \
	ENTRY_EXPORT(symbol, params, driver_enter(CALL_##symbol),                 \
		symbol##_body(false, ENTRY_UNPACK args))                          \
	ENTRY_EXPORT(symbol##suffix, params, driver_enter(CALL_##symbol##suffix), \
		symbol##_body(true, ENTRY_UNPACK args))                           \
	static CUresult symbol##_body(bool is_thread, ENTRY_UNPACK params)

/* Both forms; the body gets in front, instead, the stream that the parameter `handle` means. */
#define ENTRY_STREAM(symbol, suffix, handle, params, args)                               \
	static CUresult symbol##_body(struct stream *stream, ENTRY_UNPACK params);       \
	ENTRY_EXPORT(symbol, params, entry_stream(CALL_##symbol, handle, false, &entry), \
		symbol##_body(entry.stream, ENTRY_UNPACK args))                          \
	ENTRY_EXPORT(symbol##suffix, params,                                             \
		entry_stream(CALL_##symbol##suffix, handle, true, &entry),               \
		symbol##_body(entry.stream, ENTRY_UNPACK args))                          \
	static CUresult symbol##_body(struct stream *stream, ENTRY_UNPACK params)
