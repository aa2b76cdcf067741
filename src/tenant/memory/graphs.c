/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs that allocate memory when they are launched.
 *
 * How much the pool grows by a launch is only known afterwards, and the sum of all allocations of the
 * graph is the most. To reserve so much for every launch would refuse a program at its quota's edge
 * the second launch of what it has launched before. What the driver documents and does (H200, driver
 * 580) makes more certain:
 *
 *   1. A graph keeps the memory of its last launch unless some of that is given back by a trim, is
 *      taken for another graph, or is in use by another graph that may run at the same time.
 *   2. Graphs that leave nothing allocated and are launched on one stream share their memory.
 *
 * An epoch is a time in which no graph lost memory to another: a launch that finds less new memory
 * than it needs at most ends it, unless (2) explains that, and so does a pool that was found to hold
 * less. A graph that was launched in this epoch takes no more (1). While (2) has been true of all
 * launches since the pool was empty, the pool is calm, and a launch takes no more than what its needs
 * are above what the pool holds.
 *
 * (1) is not so of an upload. What the graph allocated may be there still, or the graph may run in another stream: then it
 * takes other memory. A launch frees the one first, or is refused, and waits for the other.
 *
 * Whatever happens in truth, the pool is read after each launch, and the books are corrected.
 *
 * Another thread may know a handle before its graph is entered, as the driver gives out again those of graphs that are destroyed.
 * So each executable graph is entered, also one that needs nothing. A call for one that is known pins it, and it is not destroyed
 * meanwhile; none begins while it is. A call for one that is not known, and each that destroys one, is never beside one that makes one.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/graphs.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/makings.h"
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

/*
 * key: executable graph; a: its needs, or 0; b: calls for it that are under way, or BEING_DESTROYED; c: its number
 * (table_number()), as a graph may go with its context without being destroyed, and its handle is another's then; d: the devices
 * that it gives work to (graph_survey.h).
 */
#define BEING_DESTROYED UINT64_MAX
static struct table execs;
static struct calm calms[STATE_ORDINALS];

CUresult graphs_keep(CUgraphExec exec, struct graph_survey *survey)
{
	struct table_place place = table_enter(&execs, (uintptr_t)exec, true);
	struct need *old = NULL;

	if (place.entry) {
		/* A call for the one that was there before reads them still. */
		if (!place.entry->b || place.entry->b == BEING_DESTROYED)
			old = (struct need *)(uintptr_t)place.entry->a;
		*place.entry = (struct table_entry){.key = (uintptr_t)exec,
			.a = (uintptr_t)survey->needs,
			.c = table_number(),
			.d = survey->devices};
	}
	table_leave(&place);
	if (!place.entry) {
		log_error("no memory for our own tables, so a graph is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("graph: entered");
	graph_survey_free_needs(old);
	survey->needs = NULL;
	return CUDA_SUCCESS;
}

/* False while calls are under way for which it gives no work to one of them. */
static bool try_widen(CUgraphExec exec, uint64_t devices)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	if (!place.entry || !(devices & ~place.entry->d))
		return true;
	if (place.entry->b)
		return false;
	place.entry->d |= devices;
	return true;
}

CUresult graphs_widen(CUgraphExec exec, uint64_t devices)
{
	struct patience patience = patience_begin(MAKINGS_WAIT_NS);

	for (unsigned i = 0; !try_widen(exec, devices); i++) {
		if (patience_is_over(&patience))
			return CUDA_ERROR_NOT_READY;
		lock_rest(i);
	}
	return CUDA_SUCCESS;
}

/* From now on no call for it begins; false while one is under way, or another thread destroys it. True where it is not known, too. */
static bool begin_destroy(CUgraphExec exec)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	if (place.entry && place.entry->b)
		return false;
	if (place.entry)
		place.entry->b = BEING_DESTROYED;
	return true;
}

static void end_destroy(CUgraphExec exec, bool is_gone)
{
	struct table_place place = table_enter(&execs, (uintptr_t)exec, false);
	struct need *needs = NULL;

	if (place.entry && is_gone) {
		needs = (struct need *)(uintptr_t)place.entry->a;
		table_remove(&place);
	} else if (place.entry) {
		place.entry->b = 0;
	}
	table_leave(&place);
	graph_survey_free_needs(needs);
}

static CUresult destroy(CUgraphExec exec)
{
	struct patience patience = patience_begin(MAKINGS_WAIT_NS);
	CUresult r;

	for (unsigned i = 0; !begin_destroy(exec); i++) {
		if (patience_is_over(&patience))
			return CUDA_ERROR_NOT_READY;
		lock_rest(i);
	}
	FAULT("graph: is being destroyed");
	r = cuda.cuGraphExecDestroy(exec);
	end_destroy(exec, r == CUDA_SUCCESS);
	return r;
}

CUresult graphs_destroy(CUgraphExec exec)
{
	CUresult r;

	if (!exec || state_enter() == STATE_ASIDE)
		return cuda.cuGraphExecDestroy(exec);
	if (!makings_stranger_begin())
		return CUDA_ERROR_NOT_READY;
	r = destroy(exec);
	makings_stranger_end();
	return r;
}

/* A number that no other stream has; 0 where that cannot be told. */
static uint64_t id_of(CUstream stream)
{
	unsigned long long id = 0;

	if (cuda.cuStreamGetId && cuda.cuStreamGetId(stream, &id) != CUDA_SUCCESS)
		return 0;
	/* The legacy stream's may be 0; older drivers have handles alone. */
	return cuda.cuStreamGetId ? id + 1 : (uint64_t)(uintptr_t)stream;
}

/* One device's part of a call. */
struct device_call {
	struct need *need;
	struct pool *pool;
	uint64_t stream_id;
	bool is_upload;
	uint64_t held_bytes; /* before the call */
	bool is_in_place, is_calm;
	bool is_still;
	struct charge charge;
};

static void begin_epoch(struct calm *calm)
{
	calm->epoch++;
	calm->is_shared = false;
}

/* How the pool has changed since the last launch. */
static void read_pool(struct device_call *c, struct calm *calm)
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

/* Bytes that the call takes at most. */
static uint64_t growth_bytes(struct device_call *c)
{
	struct calm *calm = &calms[c->need->device->ordinal];
	const struct need *need = c->need;

	c->is_in_place = c->is_calm = false;
	if (!c->is_still)
		return need->bytes;
	read_pool(c, calm);
	c->is_in_place = !c->is_upload && need->epoch == calm->epoch &&
			 (!calm->is_shared || need->stream_id == c->stream_id);
	c->is_calm = calm->is_calm && need->is_balanced && c->stream_id != 0 &&
		     (calm->stream_id == 0 || calm->stream_id == c->stream_id);
	if (c->is_in_place)
		return 0;
	if (c->is_calm)
		return need->bytes - (need->bytes < c->held_bytes ? need->bytes : c->held_bytes);
	return need->bytes;
}

/* Reserves; the pool is still from here to end(), as far as that could be had. */
static CUresult begin(struct device_call *c, CUstream stream)
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
static void learn(const struct device_call *c, uint64_t held_bytes, uint64_t losses, bool is_done)
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

static void end(struct device_call *c, bool is_done)
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

static CUresult call_on_each(struct need *need, const struct graph_call *call, uint64_t stream_id,
	struct capture_call *capture)
{
	struct device_call own = {.need = need,
		.stream_id = stream_id,
		.is_upload = call->is_upload,
		.charge = CHARGE_NULL};
	CUresult r;

	if (!need) {
		r = call->run(call->exec, call->stream);
		capture_leave(capture);
		return r;
	}
	r = begin(&own, call->stream);
	if (r != CUDA_SUCCESS)
		return r;
	r = call_on_each(need->next, call, stream_id, capture);
	end(&own, r == CUDA_SUCCESS && capture->has_run);
	return r;
}

/* What is known of one when a call for it begins. */
struct pinned {
	uint64_t number; /* 0: nothing is */
	uint64_t devices;
	struct need *needs;
};

/* One more call for it, where it is known. False while it is being destroyed, and none begins. */
static bool pin(CUgraphExec exec, struct pinned *ret_pinned)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	*ret_pinned = (struct pinned){.devices = GRAPH_ANYWHERE};
	if (UNLIKELY(!place.entry))
		return true;
	if (UNLIKELY(place.entry->b == BEING_DESTROYED))
		return false;
	place.entry->b++;
	*ret_pinned = (struct pinned){.number = place.entry->c,
		.devices = place.entry->d,
		.needs = (struct need *)(uintptr_t)place.entry->a};
	return true;
}

static void unpin(CUgraphExec exec, uint64_t number)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	if (place.entry && place.entry->c == number)
		place.entry->b--;
}

static CUresult call_needing(const struct graph_call *call, struct need *needs)
{
	struct capture_call capture;

	if (LIKELY(!needs))
		return call->run(call->exec, call->stream);
	capture_enter(call->stream, &capture);
	/* What is captured needs nothing. */
	if (capture.is_captured)
		return call_on_each(NULL, call, 0, &capture);
	if (state_enter() == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return call_on_each(needs, call, id_of(call->stream), &capture);
}

static uint64_t named(uint64_t devices)
{
	return devices == GRAPH_ANYWHERE ? contexts_devices() : devices;
}

/* Asked when no other thread can change it any more, nor give its handle to another one. */
static uint64_t missing(const struct graph_call *call, uint64_t devices)
{
	if (LIKELY(call->is_of_one && !contexts_are_on_several()))
		return 0;
	return LIKELY(!(devices & ~call->passed)) ? 0 : named(devices) & ~call->passed;
}

uint64_t graphs_devices(CUgraphExec exec)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	return named(place.entry ? place.entry->d : GRAPH_ANYWHERE);
}

static CUresult call_pinned(
	const struct graph_call *call, const struct pinned *pinned, uint64_t *ret_missing)
{
	CUresult r = CUDA_ERROR_NOT_READY;

	*ret_missing = missing(call, pinned->devices);
	if (LIKELY(!*ret_missing))
		r = call_needing(call, pinned->needs);
	if (LIKELY(pinned->number))
		unpin(call->exec, pinned->number);
	return r;
}

/* One that is just being made is known afterwards. */
static CUresult call_for_stranger(const struct graph_call *call, uint64_t *ret_missing)
{
	CUresult r = CUDA_ERROR_NOT_READY;
	struct pinned pinned;

	if (!makings_stranger_begin())
		return r;
	if (pin(call->exec, &pinned))
		r = call_pinned(call, &pinned, ret_missing);
	makings_stranger_end();
	return r;
}

CUresult graphs_call(const struct graph_call *call, uint64_t *ret_missing)
{
	struct pinned pinned;

	*ret_missing = 0;
	if (!call->exec || state_enter() == STATE_ASIDE)
		return call->run(call->exec, call->stream);
	if (UNLIKELY(!pin(call->exec, &pinned)))
		return CUDA_ERROR_NOT_READY;
	return LIKELY(pinned.number) ? call_pinned(call, &pinned, ret_missing)
				     : call_for_stranger(call, ret_missing);
}

CUresult graphs_trim(CUdevice ordinal)
{
	struct device *device;
	struct pool *pool;
	uint64_t losses;
	CUresult r;

	if (state_enter() != STATE_OPEN || state_meet_device(ordinal, &device) != 0)
		return cuda.cuDeviceGraphMemTrim(ordinal);
	pool = pool_list_of_graphs(device);
	if (!pool)
		return cuda.cuDeviceGraphMemTrim(ordinal);
	/* A launch that reserved nothing, as its memory is there, would take that again. A trim is a hint. */
	if (!pools_hold_still(pool))
		return CUDA_SUCCESS;
	r = cuda.cuDeviceGraphMemTrim(ordinal);
	FAULT("graph: trimmed");
	pools_read(pool, &losses);
	pools_let_move(pool);
	return r;
}

void graphs_reset_after_fork(void)
{
	table_forget(&execs);
	for (int i = 0; i < STATE_ORDINALS; i++)
		calms[i] = (struct calm){.epoch = 0};
}
