/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts: a part of the multiprocessors, with the memory of the primary context. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "sim/cuda/model/driver.h"

struct context;
struct stream;

#define GREEN_MAGIC 0x47524e31u

/* Never freed, so that a stale handle is refused, until the next green context has it. */
struct green {
	uint32_t magic; /* 0 once destroyed */
	struct context *context;
	unsigned int sm_count;
	struct relic relic;
	struct green *next_spare;
};

/* The green context whose stream the handle means in the calling thread, or NULL. */
struct green *green_of_stream(CUstream handle, const struct stream *stream);

/* The green context of a handle, or NULL. */
struct green *green_check(CUgreenCtx handle);

/* Under memory_lock: a green context with so many multiprocessors, and its end. */
CUresult green_new(struct device *device, unsigned int sm_count, struct green **ret_green);
void green_end(struct green *green);
