/* SPDX-License-Identifier: Apache-2.0 */
/* By how much the memory of a device's graphs may grow in a call, and its reservation. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/memory/charge.h"
#include "tenant/memory/graph_memory.h"

struct pool;

/* One device's part of a call. The first four, and charge as CHARGE_NULL, are set by the caller. */
struct graph_growth {
	const struct graph_memory *memory;
	struct need *need; /* of that */
	uint64_t stream_id;
	bool is_upload;
	struct pool *pool;
	uint64_t held_bytes; /* before the call */
	bool is_in_place, is_calm;
	bool is_still;
	struct charge charge;
};

/* A number that no other stream has; 0 where that cannot be told. It is the handle's while no stream is made (capture_hold_off_changes()). */
uint64_t graph_growth_stream_id(CUstream stream);

/* Before the driver is asked to end a stream. */
void graph_growth_stream_ends(void);

/*
 * Reserves what the call takes at most; the pool is still from here to the end, as far as that could be had. Where it is refused there
 * is no end.
 */
CUresult graph_growth_begin(struct graph_growth *growth, CUstream stream) MUST_CHECK;
void graph_growth_end(struct graph_growth *growth, bool is_done);

/* For a child of fork(). */
void graph_growth_reset_after_fork(void);
