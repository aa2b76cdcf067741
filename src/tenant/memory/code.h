/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code: images that are loaded, and functions that are launched for the first time.
 *
 * The driver takes memory for an image's data when it is loaded (a library's: when it is first used),
 * for code as it is needed, and for the device's own runtime (runtime.h). A launch costs nothing here once
 * its function has been launched before.
 */
#pragma once

#include <stdatomic.h>

#include "base/bits.h"
#include "base/lock.h"
#include "tenant/driver/capture.h"
#include "tenant/memory/guard.h"
#include "tenant/memory/image.h"

/* An image that is being loaded. */
struct code_load {
	struct guard guard;
	struct charge managed; /* for its managed variables */
	bool is_kept;	       /* at the end: that charge is, or was for nothing */
};

/* Refuses an image of which neither the image tells nor NVML shows what it takes. */
CUresult code_check(const struct image *image) MUST_CHECK;

/* Before an image is loaded into the current context. *ret_load goes to code_load_end(). */
CUresult code_load_begin(const struct image *image, struct code_load *ret_load) MUST_CHECK;

/*
 * After it: false where the slice is above its quota now, and the image must be unloaded again. owner
 * is the module or library, or NULL where it was not loaded.
 */
bool code_load_end(const struct image *image, struct code_load *load, const void *owner);

/*
 * Around a use of a library, or of a kernel of one, which may make the driver load it into the current
 * context. code_use_end() in every case after a success; it returns the result that it is given, or undoes a use that
 * did not fit and says so.
 */
struct code_use {
	uintptr_t key; /* 0: used before in this context, nothing to do */
	CUlibrary library;
	struct lock *alone; /* held, where nobody knows what the use takes; or NULL */
	uint32_t generation;
	struct image image;
	struct code_load load;
};
CUresult code_use_begin(CUlibrary library, struct code_use *ret_use) MUST_CHECK;
CUresult code_use_kernel_begin(CUkernel kernel, struct code_use *ret_use) MUST_CHECK;
CUresult code_use_end(struct code_use *use, CUresult r);

/*
 * Functions that have been launched, and libraries and kernels that have been used. Each has a place, and the others in that
 * line of the processor's cache: what finds none free takes the place of another, and both are looked into at each launch.
 */
#define CODE_PLACE_BITS 13 /* PyTorch launches some hundreds */
#define CODE_PLACES	(1u << CODE_PLACE_BITS)
#define CODE_WAYS	8u
extern _Atomic uintptr_t code_launched[CODE_PLACES];
extern _Atomic bool code_has_many_contexts;

/*
 * What a function is known by; a CUkernel is another function in every context. Handles are addresses, which a program can have
 * by the thousand: without the hash two of them in two contexts give one word.
 */
static inline uintptr_t code_key(CUfunction function, CUcontext context)
{
	return (uintptr_t)function ^ (uintptr_t)hash_u64((uintptr_t)context);
}

uintptr_t code_key_slowly(CUfunction function, CUstream stream);

/* The number of its own place, which with another way in its lowest bits is that of one beside it. */
static inline uint32_t code_place(uintptr_t key)
{
	return hash_place(key, CODE_PLACE_BITS);
}

static inline bool code_has_mark(uintptr_t key)
{
	uint32_t own = code_place(key);

	/* A place without a mark holds 0, too. relaxed: nothing is read through it; who launches has the function from who loaded it */
	for (uint32_t way = 0; key && way < CODE_WAYS; way++)
		if (LIKELY(atomic_load_explicit(&code_launched[own ^ way], memory_order_relaxed) ==
			    key))
			return true;
	return false;
}

/*
 * Whether the function has been launched before in the stream's context, so that its launch takes nothing. About
 * 2 ns. No function at all has not.
 */
static inline bool code_is_launched(CUfunction function, CUstream stream)
{
	uintptr_t key = (uintptr_t)function;

	/* relaxed: a context that is not seen yet has no function that could be launched */
	if (UNLIKELY(atomic_load_explicit(&code_has_many_contexts, memory_order_relaxed)))
		key = code_key_slowly(function, stream);
	return LIKELY(code_has_mark(key));
}

/* The same at once, where one context is all there is; false may mean that it is not known. */
static inline bool code_is_marked(CUfunction function)
{
	/* relaxed: as above */
	return LIKELY(!atomic_load_explicit(&code_has_many_contexts, memory_order_relaxed) &&
		      code_has_mark((uintptr_t)function));
}

struct code_launch {
	CUfunction function;
	CUstream stream;
	struct capture_call capture;
	uint32_t generation;
	struct guard guard;
	struct charge local;
	uint64_t heap_bytes;
};

/*
 * Before a kernel of a library is used in the current context, by whatever call: the library is loaded there, or
 * refused. Nothing to do for a function.
 */
CUresult code_prepare(CUfunction function) MUST_CHECK;

/* The function's next launch in the current context takes nothing; as of a time at which it was looked into. */
uint32_t code_generation(void);
void code_note_launched(CUfunction function, uint32_t generation);

/* Around the first launch of a function; code_launch_end() in every case after a success. */
CUresult code_launch_begin(
	CUfunction function, CUstream stream, struct code_launch *ret_launch) MUST_CHECK;
void code_launch_end(struct code_launch *launch, CUresult r);

/* A function may be gone: each is to be looked at once more. */
void code_forget_launches(void);

/*
 * Around a change of the room for frames: each is to be looked at once more, and none is launched unseen until the change is
 * in the books. A launch that has been found to take nothing, and has not come to the driver, is the exception; what it takes
 * is found by the next comparison.
 */
void code_room_begin(void);
void code_room_end(void);

/*
 * Before a context is made. From the second one on functions are told apart by context: another thread may use one before it is
 * in the books.
 */
void code_context_comes(void);
void code_context_ended(struct device *device, CUcontext context);

/* For a child of fork(). */
void code_reset_after_fork(void);
