/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of streams, and of their contexts. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"
#include "tenant/compute/stream_ends.h"

struct meter;

/*
 * Around the driver's call that ends a stream; not with a lock. What it was given is closed before, and what another thread gives it
 * meanwhile afterwards, if it has ended.
 */
void streams_end_begins(CUstream stream, struct stream_end *ret_end);
void streams_end_ends(const struct stream_end *end, bool is_ended);

/* The driver has made a stream: what was of its handle before is another one's. */
void streams_made(CUstream stream);

/* A context is about to end: charges what is known to be done in it. Not with a lock. */
void streams_context_ends(CUcontext context);

/* A green context ends, or is_gone. Its streams' work goes on in the primary one, and is measured there. */
void streams_green_ends(
	struct meter *meter, CUcontext context, CUcontext primary, bool is_gone, uint64_t now_ns);

/* It is gone, and its streams. */
void streams_context_ended(struct meter *meter, CUcontext context, uint64_t now_ns);
