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
#include "tenant/memory/code_pins.h"
#include "tenant/memory/guard.h"
#include "tenant/memory/image.h"
#include "tenant/memory/load_turn.h"
#include "tenant/memory/marks.h"

/* An image that is being loaded. */
struct code_load {
	struct guard guard;
	struct charge managed; /* for its managed variables */
	struct load_turn turn;
	bool is_kept; /* at the end: that charge is, or was for nothing */
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
	struct code_pin pin;
	struct code_pin *outer; /* of the call that it is for; or NULL */
	CUlibrary library;
	uint64_t library_number; /* (libraries.h) */
	uint64_t life;		 /* of the context in which it is used */
	struct lock *alone;	 /* held, where nobody knows what the use takes; or NULL */
	uint32_t generation;
	struct image image;
	struct code_load load;
};
CUresult code_use_begin(CUlibrary library, struct code_use *ret_use) MUST_CHECK;
CUresult code_use_kernel_begin(CUkernel kernel, struct code_use *ret_use) MUST_CHECK;
CUresult code_use_end(struct code_use *use, CUresult r);
/* Of which library it is; NULL where that is not known. */
static inline CUlibrary code_used(const struct code_use *use)
{
	return use->pin.is_library ? (CUlibrary)(uintptr_t)use->pin.owners[0] : NULL;
}

struct code_launch {
	CUfunction function;
	CUstream stream;
	CUcontext place; /* where it takes what it needs; NULL: in the current one */
	struct code_pin pin;
	struct capture_call capture;
	uint32_t generation;
	struct guard guard;
	struct charge local;
	uint64_t heap_bytes;
};

/*
 * Before a kernel of a library is used in the current context, by whatever call: the library is loaded there, or
 * refused. Nothing to do for a function. pin is the call's own for it, or NULL: it ends where the use is refused as it did not fit, so that the
 * library can be unloaded.
 */
CUresult code_prepare(CUfunction function, struct code_pin *pin) MUST_CHECK;

/* What a launch uses, in the context of its stream (code_pins.h). */
CUresult code_launch_pin(CUfunction function, CUstream stream, struct code_pin *ret_pin) MUST_CHECK;

/* Around the first launch of a function; code_launch_end() in every case after a success. */
CUresult code_launch_begin(
	CUfunction function, CUstream stream, struct code_launch *ret_launch) MUST_CHECK;
void code_launch_end(struct code_launch *launch, CUresult r);

/* For a child of fork(). */
void code_reset_after_fork(void);
