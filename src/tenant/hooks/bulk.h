/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies, fills and prefetches on their way through the gate. Their functions differ in little but
 * their parameters, so a hook is one of
 *
 *	BULK_FORMS(symbol, suffix, kind, bytes, type, name, ...)
 *	BULK_WIDTHS(symbol, _v2, suffix, kind, bytes, type, name, ...)
 *
 * BULK_FORMS writes symbol and symbol##suffix: _ptds where the call is given no stream, _ptsz where it has a
 * parameter of that name. BULK_WIDTHS writes symbol, with the types that CUDA 2 had, and both forms of symbol_v2.
 * kind and bytes are said in terms of the parameters, and are asked for only where something is metered.
 */
#pragma once

#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"

/* Work of one kind and of as many bytes, within a factor of two, is expected to take equal time. */
enum bulk {
	BULK_NOTHING,
	BULK_ENGINE, /* what an engine of its own does: told, and not metered */
	/* the same, and the call returns when it is done, and all that the stream had before; of no bytes it need not wait */
	BULK_FETCH,
	BULK_COPY,
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

/* The bytes of a batch; the list is the driver's to judge. */
static inline uint64_t bulk_sum(const size_t *sizes, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; sizes && i < count; i++)
		sum += sizes[i];
	return sum;
}

/* Before the driver is asked, where the gate is not open. */
static inline struct gate_pass bulk_begin(enum bulk kind, CUstream stream, uint64_t bytes)
{
	struct gate_pass pass = {.state = NULL};

	if (kind > BULK_FETCH)
		gate_enter_slowly(stream, bulk_key(kind, bytes), &pass);
	else if (kind != BULK_NOTHING && !gate_copy_is_small(stream, bytes))
		gate_copy_slowly(stream);
	return pass;
}

/*
 * Whether there is nothing to tell or to meter. That a copy is small is asked where it costs nothing: a kind that
 * is read from a description is not even computed.
 */
#define BULK_IS_SMALL(kind, stream, bytes)                                           \
	(__builtin_choose_expr(__builtin_constant_p(kind),                           \
		((kind) == BULK_ENGINE &&                                            \
			gate_copy_is_small(hook_meant(stream, null_stream), bytes)), \
		false))
#define BULK_IS_FREE(kind, stream, bytes) \
	(hook_is_attached() && (gate_is_free() || BULK_IS_SMALL(kind, stream, bytes)))

/* The rest of a hook: real is the driver's function, args what it is given. */
#define BULK_CALL(real, stream, kind, bytes, args)              \
	{                                                       \
		struct gate_wait wait_ = {.is_watched = false}; \
		struct gate_pass pass_;                         \
		enum bulk kind_;                                \
		CUresult r_;                                    \
                                                                \
		if (gate_is_open())                             \
			return real args;                       \
		kind_ = (kind);                                 \
		pass_ = bulk_begin(kind_, stream, bytes);       \
		if (kind_ == BULK_FETCH && (bytes) > 0)         \
			gate_wait_begin(stream, false, &wait_); \
		r_ = real args;                                 \
		gate_wait_end(&wait_, r_);                      \
		gate_leave(&pass_, r_);                         \
		return r_;                                      \
	}

#define BULK_STREAM_ptds		null_stream
#define BULK_STREAM_ptsz		stream

#define BULK_FORMS(symbol, suffix, ...) BULK_FORMS_(symbol, suffix, __VA_ARGS__)
#define BULK_FORMS_(symbol, suffix, kind, bytes, ...)                                        \
	HOOK_FORMS_UNLESS(                                                                   \
		symbol, suffix, BULK_IS_FREE(kind, BULK_STREAM##suffix, bytes), __VA_ARGS__) \
	BULK_CALL(real, BULK_STREAM##suffix, kind, bytes, (HOOK_NAMES(__VA_ARGS__)))

/* One function, on the stream that is said. */
#define BULK_BODY(symbol, stream, kind, bytes, ...) \
	HOOK_BODY(symbol, __VA_ARGS__)              \
	BULK_CALL(cuda.symbol, stream, kind, bytes, (HOOK_NAMES(__VA_ARGS__)))

#define BULK_WIDTHS(symbol, v2, suffix, ...) BULK_WIDTHS_(symbol, v2, suffix, __VA_ARGS__)
#define BULK_WIDTHS_(symbol, v2, suffix, kind, bytes, ...)       \
	BULK_FORMS(symbol##v2, suffix, kind, bytes, __VA_ARGS__) \
	BULK_BODY(symbol, BULK_STREAM_old##suffix, kind, bytes, HOOK_EACH(BULK_NARROW, __VA_ARGS__))

/* The stream and the parameters of an interface of CUDA 2, whose sizes and device pointers have 32 bits. */
#define BULK_STREAM_old_ptds	NULL
#define BULK_STREAM_old_ptsz	stream
#define BULK_NARROW(type, name) BULK_OLD_##type, name
#define BULK_OLD_CUdeviceptr	CUdeviceptr_v1
#define BULK_OLD_size_t		unsigned int
#define BULK_OLD_CUDA_MEMCPY2D	CUDA_MEMCPY2D_v1
#define BULK_OLD_CUDA_MEMCPY3D	CUDA_MEMCPY3D_v1
/* the rest begins with a word that stays what it is */
#define BULK_OLD_const	  const
#define BULK_OLD_unsigned unsigned
#define BULK_OLD_void	  void
#define BULK_OLD_CUarray  CUarray
#define BULK_OLD_CUstream CUstream
