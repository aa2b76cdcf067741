/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By how much the memory of graphs may grow in a call.
 *
 * How much the pool grows by a launch is only known afterwards, and what its addresses span
 * (graph_memory.c) is the most. To reserve so much for every launch would refuse a program at its quota's edge
 * the second launch of what it has launched before. What the driver documents and does (H200, driver
 * 580) makes more certain:
 *
 *   1. A graph keeps the memory of its last launch unless some of that is given back by a trim, is
 *      taken for another graph, is in use by another graph that may run at the same time, or is freed in
 *      another stream than the graph's, which may not have come to that (graphs_free()).
 *   2. Graphs that leave nothing allocated and are launched on one stream share their memory.
 *
 * An epoch is a time in which no graph lost memory to another: a launch that finds less new memory
 * than it needs at most ends it, unless (2) explains that, and so does a pool that was found to hold
 * less. A graph that was launched in this epoch takes no more (1), if what it left allocated is freed ahead
 * of it. While (2) has been true of all launches since the pool was empty, the pool is calm, and a launch
 * takes no more than what its needs are above what the pool holds.
 *
 * (1) is not so of an upload. What the graph allocated may be there still, or the graph may run in another stream: then it
 * takes other memory. A launch frees the one first, or is refused, and waits for the other.
 *
 * Whatever happens in truth, the pool is read after each launch, and the books are corrected.
 */
#include "tenant/memory/graph_growth.h"

#include "base/fault.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/pool_list.h"
#include "tenant/memory/pools.h"
#include "tenant/memory/table.h"

/* Knowledge of a device's pool by the launches so far; changed while the pool is still. */
struct calm {
	uint64_t epoch;	    /* the first is 1 */
	uint64_t losses;    /* of the pool, when last looked at */
	uint64_t stream_id; /* of all launches while it is calm; 0: of none */
	bool is_calm;
	bool is_shared;		 /* graphs of this epoch share memory */
	_Atomic bool is_spoiled; /* by a launch that could not have the pool still */
};

static struct calm calms[STATE_ORDINALS];

/* Before CUDA 12 streams have handles alone, and the next one has that of one that ended: all are other ones then. */
static _Atomic uint64_t streams_ended;

#define DEFAULT_STREAM (UINT64_C(1) << 63)

/*
 * A default stream is of a context, or of a thread in it, and the driver may give all of them one number: it is 1 for the legacy stream of
 * each context. Never the driver's own numbers, which are small.
 */
static uint64_t default_stream_id(CUstream stream)
{
	static __thread uint64_t thread;
	uint64_t life = contexts_life_current();

	if (!life)
		return 0;
	if (stream == CU_STREAM_PER_THREAD && !thread)
		thread = table_number();
	return table_key_of(life, stream == CU_STREAM_PER_THREAD ? thread : 0) | DEFAULT_STREAM;
}

uint64_t graph_growth_stream_id(CUstream stream)
{
	unsigned long long id = 0;

	/* NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
	if ((uintptr_t)stream <= 2)
		return default_stream_id(stream);
	if (!cuda.cuStreamGetId)
		return table_key_of((uintptr_t)stream, atomic_load(&streams_ended)) &
		       ~DEFAULT_STREAM;
	return cuda.cuStreamGetId(stream, &id) == CUDA_SUCCESS ? id + 1 : 0;
}

void graph_growth_stream_ends(void)
{
	atomic_fetch_add(&streams_ended, 1);
}

static void begin_epoch(struct calm *calm)
{
	calm->epoch++;
	calm->is_shared = false;
}

/* How the pool has changed since the last launch. */
static void read_pool(struct graph_growth *c, struct calm *calm)
{
	uint64_t losses;

	c->held_bytes = pools_read(c->pool, &losses);
	if (losses != calm->losses || calm->epoch == 0)
		begin_epoch(calm);
	calm->losses = losses;
	if (c->held_bytes == 0) {
		calm->is_calm = true;
		calm->stream_id = 0;
	}
	if (atomic_exchange(&calm->is_spoiled, false)) {
		begin_epoch(calm);
		calm->is_calm = false;
	}
}

/* What the last launch left allocated was freed ahead of what comes in the stream, or as if it had been. */
static bool is_freed_ahead(const struct graph_growth *c)
{
	uint64_t stream_id = atomic_load(&c->memory->freed_in);

	return !atomic_load(&c->memory->frees) && (!stream_id || stream_id == c->stream_id);
}

/* Bytes that the call takes at most. */
static uint64_t growth_bytes(struct graph_growth *c)
{
	struct calm *calm = &calms[c->need->device->ordinal];
	const struct need *need = c->need;

	c->is_in_place = c->is_calm = false;
	if (!c->is_still)
		return need->bytes;
	read_pool(c, calm);
	c->is_in_place =
		!c->is_upload && need->epoch == calm->epoch && is_freed_ahead(c) &&
		(!calm->is_shared || (c->stream_id != 0 && need->stream_id == c->stream_id));
	c->is_calm = calm->is_calm && graph_memory_is_balanced(c->memory) && c->stream_id != 0 &&
		     (calm->stream_id == 0 || calm->stream_id == c->stream_id);
	if (c->is_in_place)
		return 0;
	if (c->is_calm)
		return need->bytes - (need->bytes < c->held_bytes ? need->bytes : c->held_bytes);
	return need->bytes;
}

CUresult graph_growth_begin(struct graph_growth *c, CUstream stream)
{
	uint64_t reserved_bytes = 0, growth;
	CUresult r;

	c->pool = pool_list_of_graphs(c->need->device);
	if (!c->pool)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (;;) {
		c->is_still = pools_hold_still(c->pool);
		FAULT("graph: memory is still");
		growth = growth_bytes(c);
		if (!c->is_still)
			atomic_store(&calms[c->need->device->ordinal].is_spoiled, true);
		if (growth <= reserved_bytes)
			return CUDA_SUCCESS;
		/* To make room the pool may be trimmed, after which the answer may be another. */
		if (c->is_still)
			pools_let_move(c->pool);
		charge_undo(&c->charge);
		r = pools_reserve(c->pool, growth, stream, &c->charge);
		if (r != CUDA_SUCCESS)
			return r;
		reserved_bytes = growth;
	}
}

/* Learns from a launch, before which the pool was read, for the next ones. */
static void learn(const struct graph_growth *c, uint64_t held_bytes, uint64_t losses, bool is_done)
{
	struct calm *calm = &calms[c->need->device->ordinal];
	bool is_apart = c->is_in_place || c->held_bytes == 0 ||
			held_bytes >= c->held_bytes + c->need->bytes;

	if (losses != calm->losses || !is_done || (!is_apart && !c->is_calm))
		begin_epoch(calm);
	else if (!is_apart)
		calm->is_shared = true;
	calm->losses = losses;
	calm->is_calm = c->is_calm;
	calm->stream_id = c->stream_id;
	c->need->epoch = is_done ? calm->epoch : 0;
	c->need->stream_id = c->stream_id;
}

void graph_growth_end(struct graph_growth *c, bool is_done)
{
	uint64_t held_bytes, losses;

	FAULT("graph: the driver was called");
	pools_keep(c->pool, &c->charge);
	FAULT("graph: charged");
	held_bytes = pools_read(c->pool, &losses);
	if (!c->is_still) {
		atomic_store(&calms[c->need->device->ordinal].is_spoiled, true);
		return;
	}
	learn(c, held_bytes, losses, is_done);
	pools_let_move(c->pool);
}

void graph_growth_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		calms[i] = (struct calm){.epoch = 0};
}
