/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: what they take of a device, and what goes with them. */
#pragma once

#include "gpu/abi/cuda.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/holding.h"

/* The device whose contexts are to be charged; NULL where the driver is just to be asked. */
CUresult contexts_enter(CUdevice ordinal, struct device **ret_device);

/* Reserves what a context of the device takes, or will take as far as can be told. */
CUresult contexts_reserve(struct device *device, struct charge *ret_charge);

/*
 * Keeps the charge of a context that the program made, whose life begins. The charge becomes what it really took, as
 * far as NVML tells, which the slice remembers for its next ones. A context that took more than there was room for
 * is destroyed again: CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult contexts_keep(CUcontext context, struct charge *charge);

/*
 * Around a call that makes a context, from before its room is reserved until it is kept: no context that is in no books ends
 * meanwhile, as the driver may give the handle of one that does to the new one. CUDA_ERROR_OUT_OF_MEMORY: one does for too long.
 */
CUresult contexts_make_begin(void);
void contexts_make_end(void);

/* One of a device that is in no share is known as well, so that its end waits for nobody. */
void contexts_note_unlimited(CUcontext context);

/*
 * Around a call that may destroy a context that the program made. CUDA_ERROR_CONTEXT_IS_DESTROYED: it is in no books, and other threads make or end some for too
 * long, of which it may be one; the driver must not be asked.
 */
struct context_end {
	struct holding_end holding; /* serial 0: nothing is charged for it */
	bool is_known;
};
CUresult contexts_destroy_begin(CUcontext context, struct context_end *ret_end) MUST_CHECK;
void contexts_destroy_end(const struct context_end *end, bool is_destroyed);
/* The life that ends; 0: of none that is in the books. */
static inline uint64_t contexts_ending_life(const struct context_end *end)
{
	return end->holding.holding.serial ? end->holding.holding.life : 0;
}

/*
 * Around a call that may make or end the device's primary context: from begin to end no other thread of the
 * process is at one, so asking the driver and booking its answer are one step. Where it is retained a context is
 * reserved if there is none. CUDA_ERROR_OUT_OF_MEMORY: the driver must not be asked for one. end also
 * after a call that failed, with a context of NULL; it
 * returns the result that it is given, or lets a context go again that is too large, and says so.
 */
enum primary_kind { PRIMARY_RETAIN, PRIMARY_RELEASE, PRIMARY_RESET, PRIMARY_GREEN };
struct primary_call {
	enum primary_kind kind;
	struct device *device;
	struct charge charge;
	bool is_alone; /* false: another thread is at it for too long, and nothing is booked */
	bool is_stray; /* it may end the context */
};
CUresult contexts_primary_begin(
	struct device *device, enum primary_kind kind, struct primary_call *ret_call) MUST_CHECK;
CUresult contexts_primary_end(struct primary_call *call, CUresult r, CUcontext context);

/* Between these: the life that a release or reset may end; 0: none, or the program has more references. */
uint64_t contexts_primary_at_stake(const struct primary_call *call);
/* After them: whether it has ended. */
bool contexts_primary_has_ended(const struct primary_call *call, uint64_t life);

/*
 * The number of a context's life, which no other life of this process has; 0 for a context that is not in
 * the books, or is just ending. A primary context that comes back after its end lives anew. A green
 * context, used as a context, is a face of its device's primary one: what is allocated while it is
 * current belongs to that (H200, driver 580), and so its life is that one's.
 */
uint64_t contexts_life_of(CUcontext context);
uint64_t contexts_life_current(void);
/* Whether it is, or was, such a number, and no handle. */
bool contexts_is_life(uint64_t number);

/* The primary context in which a green one lives that is used as a context; NULL: it is not known as one. */
CUcontext contexts_primary_of(CUcontext green);

/* The context of a stream, to be made current for calls on it. */
CUcontext contexts_of_stream(CUstream stream);

/* A green context is used as a context from now on. */
void contexts_green_seen(CUgreenCtx green, CUcontext context);

/*
 * Around the destruction of a green context, which may be the last that kept its device's primary context:
 * nobody makes or ends a primary context meanwhile. Nothing tells of which device it is.
 */
struct green_end {
	uint64_t devices; /* a bit an ordinal */
	struct primary_call calls[STATE_ORDINALS];
};
void contexts_green_destroy_begin(struct green_end *ret_end);
void contexts_green_destroy_end(struct green_end *end, CUgreenCtx green, bool is_destroyed);

/* The devices on which this process has contexts that are in the books: one bit an ordinal. */
uint64_t contexts_devices(void);

/* Whether it may be more than one, and has been. */
bool contexts_are_on_several(void);

/* For a child of fork(). */
void contexts_reset_after_fork(void);
