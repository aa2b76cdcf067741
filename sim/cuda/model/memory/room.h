/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that stays with a context until it ends, such as room for frames of threads. */
#pragma once

#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/machine/machine.h"

struct context;

/*
 * Takes device memory that stays with the context until it ends, or until it is let go of.
 * CUDA_ERROR_OUT_OF_MEMORY changes nothing. Under memory_lock.
 */
CUresult room_keep(struct context *context, enum machine_kind kind, uint64_t bytes);
void room_let_go(struct context *context, enum machine_kind kind, uint64_t bytes);

/*
 * Makes room for threads with frames of this size, as a launch does and an instantiation of a graph:
 * a context has room for as many threads as the device can run, each with the largest frame so far.
 * CUDA_ERROR_OUT_OF_MEMORY changes nothing. Cheap when there is room. Takes memory_lock.
 */
CUresult room_make_local(struct context *context, uint64_t frame_bytes);

/* Room for exactly such frames: what the stack limit does, which may be lowered too. */
CUresult room_set_local(struct context *context, uint64_t frame_bytes);
