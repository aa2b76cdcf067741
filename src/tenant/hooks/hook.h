/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a hook is written.
 *
 *	HOOK_BODY(cuMemFree_v2, CUdeviceptr, pointer)
 *	{
 *		...
 *		return cuda.cuMemFree_v2(pointer);
 *	}
 *
 * names the function, and the type and name of each parameter. The body runs when the real library is attached.
 * While it runs, the thread is not cancelled. The first hook that asks for a library also hands the table of parts down (slice/parts.h), so that the modules
 * below need not know what is built on them.
 *
 *	HOOK_FORMS(cuMemFreeAsync, _ptsz, CUdeviceptr, pointer, CUstream, stream)
 *	{
 *		...
 *		return real(pointer, stream);
 *	}
 *
 * writes cuMemFreeAsync and cuMemFreeAsync_ptsz with one body. It gets two more parameters: `real` is the driver's
 * function of that form, and `null_stream` what it takes stream 0 for. A parameter of type CUstream arrives as the
 * driver means it: CU_STREAM_PER_THREAD where the form for per-thread streams was given 0.
 */
#pragma once

#include "base/cancel.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/call_end.h"
#include "tenant/slice/begun.h"

/*
 * Another thread of the program can change the program's memory at any time. So a hook never reads there what the
 * driver answered: the driver is given variables of the hook, the books are entered from these, and the program's
 * memory is written last. What the program passes in a struct is copied once, before it is looked at.
 * tools/check_hooks.py finds what does otherwise.
 */
/* What the driver has made, into the program's memory, where the call succeeded. */
#define HOOK_GIVE(r, to, made)                     \
	({                                         \
		const CUresult hook_answer_ = (r); \
		if (hook_answer_ == CUDA_SUCCESS)  \
			*(to) = (made);            \
		hook_answer_;                      \
	})
/* From here to the end of the block the parameter points to a copy of the hook's own. */
#define HOOK_COPY(parameter) ((parameter) = (__typeof__(*(parameter))[1]){*(parameter)})

/*
 * At the beginning of a hook by which memory leaves the process or comes to it: where no quota can be enforced nothing would tell whose it is,
 * and where there is none, or the arguments ask for nothing that is charged, the call is the driver's.
 */
#define HOOK_NEEDS_BOOKS(is_plain, call)                          \
	do {                                                      \
		const enum state_mode hook_mode_ = state_enter(); \
		if (hook_mode_ == STATE_CLOSED)                   \
			return CUDA_ERROR_OUT_OF_MEMORY;          \
		if (hook_mode_ == STATE_ASIDE || (is_plain))      \
			return call;                              \
	} while (0)

/* Which libraries are attached since the table was handed down. */
extern _Atomic bool hook_has_cuda, hook_has_nvml;

bool hook_attach_cuda_slowly(void);
bool hook_attach_nvml_slowly(void);

/*
 * Where no driver is loaded: the function of that name that the program would have had without us, as of a library that loads the driver
 * when it is first called. NULL where there is none.
 */
void *hook_find_other(const char *symbol);
int hook_begun_slowly(void);
void hook_ended_slowly(void);

/* Whether CUDA is attached already. */
static inline bool hook_is_attached(void)
{
	/* pairs with the release in hook_attach_cuda_slowly() */
	return LIKELY(atomic_load_explicit(&hook_has_cuda, memory_order_acquire));
}

/* Whether the driver's functions can be called. */
static inline bool hook_attach_cuda(void)
{
	return hook_is_attached() || hook_attach_cuda_slowly();
}

static inline bool hook_attach_nvml(void)
{
	/* pairs with the release in hook_attach_nvml_slowly() */
	return LIKELY(atomic_load_explicit(&hook_has_nvml, memory_order_acquire)) ||
	       hook_attach_nvml_slowly();
}

enum {
#define HOOK(s) HOOK_##s,
#define CALL(s)
#include "gpu/cuda.def"
#define HOOK(s) HOOK_##s,
#define CALL(s)
#include "gpu/nvml.def"
	HOOK_COUNT
};

/* clang-format off */
/* HOOK_EACH(of, type, name, ...): of(type, name), ... for each parameter; of_NONE where there is none but `void`. */
#define HOOK_EACH_0(of, none) of##_NONE
#define HOOK_EACH_1(of, type, name) of(type, name)
#define HOOK_EACH_2(of, type, name, ...) of(type, name), HOOK_EACH_1(of, __VA_ARGS__)
#define HOOK_EACH_3(of, type, name, ...) of(type, name), HOOK_EACH_2(of, __VA_ARGS__)
#define HOOK_EACH_4(of, type, name, ...) of(type, name), HOOK_EACH_3(of, __VA_ARGS__)
#define HOOK_EACH_5(of, type, name, ...) of(type, name), HOOK_EACH_4(of, __VA_ARGS__)
#define HOOK_EACH_6(of, type, name, ...) of(type, name), HOOK_EACH_5(of, __VA_ARGS__)
#define HOOK_EACH_7(of, type, name, ...) of(type, name), HOOK_EACH_6(of, __VA_ARGS__)
#define HOOK_EACH_8(of, type, name, ...) of(type, name), HOOK_EACH_7(of, __VA_ARGS__)
#define HOOK_EACH_9(of, type, name, ...) of(type, name), HOOK_EACH_8(of, __VA_ARGS__)
#define HOOK_EACH_10(of, type, name, ...) of(type, name), HOOK_EACH_9(of, __VA_ARGS__)
#define HOOK_EACH_11(of, type, name, ...) of(type, name), HOOK_EACH_10(of, __VA_ARGS__)
#define HOOK_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, each, ...) each
#define HOOK_EACH(of, ...) \
	HOOK_PICK(__VA_ARGS__, HOOK_EACH_11,, HOOK_EACH_10,, HOOK_EACH_9,, HOOK_EACH_8,, \
		HOOK_EACH_7,, HOOK_EACH_6,, HOOK_EACH_5,, HOOK_EACH_4,, HOOK_EACH_3,, HOOK_EACH_2,, \
		HOOK_EACH_1, HOOK_EACH_0)(of, __VA_ARGS__)
/* clang-format on */

/* The parameters as a function has them, as it passes them on, and with streams as the driver means them. */
#define HOOK_PARAM(type, name) type name
#define HOOK_PARAM_NONE	       void
#define HOOK_NAME(type, name)  name
#define HOOK_NAME_NONE
#define HOOK_MEANT(type, name) \
	_Generic((name), CUstream : hook_meant_at(&(name), null_stream), default : (name))
#define HOOK_PARAMS(...) HOOK_EACH(HOOK_PARAM, __VA_ARGS__)
#define HOOK_NAMES(...)	 HOOK_EACH(HOOK_NAME, __VA_ARGS__)
#define HOOK_MEANTS(...) HOOK_EACH(HOOK_MEANT, __VA_ARGS__)

/* The stream that the driver means: null_stream for 0. */
static inline CUstream hook_meant(CUstream stream, CUstream null_stream)
{
	return stream ? stream : null_stream;
}

static inline CUstream hook_meant_at(const void *stream, CUstream null_stream)
{
	return hook_meant(*(const CUstream *)stream, null_stream);
}

/* What stream 0 is to the form of that ending. */
#define HOOK_NULL_STREAM      NULL
#define HOOK_NULL_STREAM_v2   NULL
#define HOOK_NULL_STREAM_ptds CU_STREAM_PER_THREAD
#define HOOK_NULL_STREAM_ptsz CU_STREAM_PER_THREAD

/* Bodies are part of their functions: a form costs what it would if it were written by hand. */
#define HOOK_INLINE static inline __attribute__((always_inline))

/* What is done before the body, which has nothing of the driver yet and holds nothing, and when it has ended, and all that it held is let go. */
static inline int hook_begun(void)
{
	/* relaxed: one that is seen late is a call that comes in the way */
	return UNLIKELY(atomic_load_explicit(&call_end_is_awaited, memory_order_relaxed) ||
			!state_has_begun())
		       ? hook_begun_slowly()
		       : 0;
}

static inline void hook_ended(const int *scope)
{
	(void)scope;
	/* relaxed: a thread sees what it has left to be done itself */
	if (UNLIKELY(atomic_load_explicit(&call_end_is_awaited, memory_order_relaxed)))
		hook_ended_slowly();
}
#define HOOK_SCOPE __attribute__((cleanup(hook_ended), unused)) const int hook_scope_ = hook_begun()

/* A call that no driver is there for. */
#define HOOK_OTHER(error, symbol, ...)                                              \
	({                                                                          \
		symbol##_fn *hook_other_ = (symbol##_fn *)hook_find_other(#symbol); \
		hook_other_ ? hook_other_(HOOK_NAMES(__VA_ARGS__)) : error;         \
	})

/* The exported function: checked against its row and its type. */
#define HOOK_EXPORT(symbol)                                                           \
	_Static_assert(HOOK_##symbol < HOOK_COUNT, "no row in cuda.def or nvml.def"); \
	__attribute__((visibility("default"))) symbol##_fn symbol;

#define HOOK_ATTACHED(result, library, error, symbol, ...)             \
	HOOK_EXPORT(symbol)                                            \
	HOOK_INLINE result symbol##_body(HOOK_PARAMS(__VA_ARGS__));    \
	result symbol(HOOK_PARAMS(__VA_ARGS__))                        \
	{                                                              \
		CANCEL_PUT_OFF;                                        \
		if (!hook_attach_##library())                          \
			return HOOK_OTHER(error, symbol, __VA_ARGS__); \
		HOOK_SCOPE;                                            \
		return symbol##_body(HOOK_NAMES(__VA_ARGS__));         \
	}                                                              \
	HOOK_INLINE result symbol##_body(HOOK_PARAMS(__VA_ARGS__))

/* HOOK_BODY(symbol, type, name, ...) { ... }: a function of CUDA. Without parameters: HOOK_BODY(symbol, void). */
#define HOOK_BODY(symbol, ...) \
	HOOK_ATTACHED(CUresult, cuda, CUDA_ERROR_NOT_INITIALIZED, symbol, __VA_ARGS__)

/* The same for a function of NVML. */
#define HOOK_NVML(symbol, ...) \
	HOOK_ATTACHED(nvmlReturn_t, nvml, NVML_ERROR_UNINITIALIZED, symbol, __VA_ARGS__)

/* One form of a function. Where is_free holds, the call is the driver's alone; then after is done. */
#define HOOK_FORM(symbol, body, zero, is_free, after, ...)                                  \
	HOOK_EXPORT(symbol)                                                                 \
	CUresult symbol(HOOK_PARAMS(__VA_ARGS__))                                           \
	{                                                                                   \
		const CUstream null_stream = zero;                                          \
                                                                                            \
		if (is_free) {                                                              \
			const CUresult hook_free_ = cuda.symbol(HOOK_NAMES(__VA_ARGS__));   \
			after;                                                              \
			return hook_free_;                                                  \
		}                                                                           \
		CANCEL_PUT_OFF;                                                             \
		if (!hook_attach_cuda())                                                    \
			return HOOK_OTHER(CUDA_ERROR_NOT_INITIALIZED, symbol, __VA_ARGS__); \
		HOOK_SCOPE;                                                                 \
		return body(cuda.symbol, null_stream, HOOK_MEANTS(__VA_ARGS__));            \
	}

#define HOOK_BOTH(kind, symbol, suffix, is_free, after, ...)                               \
	kind CUresult symbol##_body(                                                       \
		symbol##_fn *real, CUstream null_stream, HOOK_PARAMS(__VA_ARGS__));        \
	HOOK_FORM(symbol, symbol##_body, HOOK_NULL_STREAM, is_free, after, __VA_ARGS__)    \
	HOOK_FORM(symbol##suffix, symbol##_body, HOOK_NULL_STREAM##suffix, is_free, after, \
		__VA_ARGS__)                                                               \
	kind CUresult symbol##_body(                                                       \
		symbol##_fn *real, CUstream null_stream, HOOK_PARAMS(__VA_ARGS__))

/* HOOK_FORMS(symbol, suffix, type, name, ...) { ... }: symbol and symbol##suffix. */
#define HOOK_FORMS(symbol, suffix, ...) \
	HOOK_BOTH(HOOK_INLINE, symbol, suffix, false, (void)0, __VA_ARGS__)

/*
 * The same for what is called most. A call for which is_free holds, which may be asked of the parameters, goes to
 * the driver as a jump, with the arguments where they are. It holds of no call before the library is attached.
 */
#define HOOK_FORMS_UNLESS(symbol, suffix, is_free, ...) \
	HOOK_FORMS_BETWEEN(symbol, suffix, is_free, (void)0, __VA_ARGS__)

/* The same, where something is to be done when the driver has answered such a call. */
#define HOOK_FORMS_BETWEEN(symbol, suffix, is_free, after, ...) \
	HOOK_BOTH(static __attribute__((noinline)), symbol, suffix, is_free, after, __VA_ARGS__)
