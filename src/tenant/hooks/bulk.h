/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches on their way through the gate. Their functions differ in little but
 * their parameters, so a hook is one of
 *
 *	METERED(symbol, kind, stream, bytes, (parameters), (arguments))
 *	SEPARATED(symbol, stream, bytes, (parameters), (arguments))
 *
 * METERED is for work that may hold the device's processors, SEPARATED for what an engine of its own
 * does. stream and bytes are said in terms of the parameters; stream is as the gate wants it.
 */
#pragma once

#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"

/* Work of one kind and of as many bytes, within a factor of two, is expected to take equal time. */
enum bulk {
	BULK_COPY = 1,
	BULK_COPY_SHAPED, /* of rows and layers, or of arrays */
	BULK_COPY_PEER,	  /* between devices */
	BULK_COPY_BATCH,
	BULK_FILL,
	BULK_FILL_SHAPED,
	BULK_PREFETCH,
};

static inline uint64_t bulk_key(enum bulk kind, uint64_t bytes)
{
	uintptr_t power = 64 - (uintptr_t)__builtin_clzll(bytes | 1);

	/* gate_key() is made for aligned addresses, and keeps nothing of the lowest five bits */
	return gate_key((const void *)((uintptr_t)kind << 12 | power << 5), 0);
}

/* The stream of a call whose name ends in _ptsz. */
static inline CUstream bulk_stream(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* Whether bytes are worth being added up: nobody asks for them otherwise. */
static inline bool bulk_matters(void)
{
	return UNLIKELY(!gate_is_open());
}

/* The bytes of a batch; the list is the driver's to judge. */
static inline uint64_t bulk_sum(const size_t *sizes, size_t count)
{
	uint64_t sum = 0;

	if (!bulk_matters() || !sizes)
		return 0;
	for (size_t i = 0; i < count; i++)
		sum += sizes[i];
	return sum;
}

static inline void bulk_separate(CUstream stream, uint64_t bytes)
{
	if (bytes >= GATE_COPY_BYTES)
		gate_copy(stream, bytes);
}

#define BULK_UNPACK(...) __VA_ARGS__

#define METERED(symbol, kind, stream, bytes, params, args)         \
	HOOK_BODY(symbol, BULK_UNPACK params)                      \
	{                                                          \
		struct gate_pass pass_;                            \
		CUresult r_;                                       \
                                                                   \
		if (!hook_attach_cuda())                           \
			return CUDA_ERROR_NOT_INITIALIZED;         \
		gate_enter(stream, bulk_key(kind, bytes), &pass_); \
		r_ = cuda.symbol args;                             \
		gate_leave(&pass_, r_);                            \
		return r_;                                         \
	}

#define SEPARATED(symbol, stream, bytes, params, args)     \
	HOOK_BODY(symbol, BULK_UNPACK params)              \
	{                                                  \
		if (!hook_attach_cuda())                   \
			return CUDA_ERROR_NOT_INITIALIZED; \
		bulk_separate(stream, bytes);              \
		return cuda.symbol args;                   \
	}
