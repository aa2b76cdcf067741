/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local memory: where threads of a kernel keep frames that do not fit into registers.
 *
 * A context holds room for every thread that the device can run at once, each with the largest frame
 * so far: frame * threads of a multiprocessor * multiprocessors, rounded up to 2 MiB (H200, driver
 * 580: 16,632 MiB more for frames of 64 KiB than for the 1 KiB of the beginning). It is taken when
 * such a kernel is launched, when a graph with one is instantiated, or when the stack limit is
 * raised; the context's CU_LIMIT_STACK_SIZE always tells the frame that room was made for.
 */
#pragma once

#include "tenant/memory/charge.h"

/* The frame of a thread of the function (a CUfunction or a CUkernel) in bytes; 0 where unknown. */
uint64_t local_frame_bytes(CUfunction function);

/* Whether the current context has room for deeper ones. */
bool local_has_more_than(uint64_t frame_bytes);

/*
 * Reserves what the current context takes more for threads with such frames; nothing where it has
 * the room. CUDA_ERROR_OUT_OF_MEMORY is the only refusal. The charge goes to local_end().
 */
CUresult local_begin(uint64_t frame_bytes, struct charge *ret_charge) MUST_CHECK;

/* After the call: charges what the current context has now, and gives back what was in vain. */
void local_end(struct charge *charge);

/* The context is gone and its local memory with it. */
void local_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void local_reset_after_fork(void);
