/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs by their handles, and the calls for them.
 *
 * Another thread may know a handle before its graph is entered, as the driver gives out again those of graphs that are destroyed.
 * So each executable graph is entered, also one that needs nothing. A call for one that is known pins it, and it is not destroyed
 * meanwhile; none begins while it is. A call for one that is not known, and each that destroys one, is never beside one that makes one.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/graphs.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/capture.h"
#include "tenant/driver/attach.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/graph_frames.h"
#include "tenant/memory/graph_growth.h"
#include "tenant/memory/makings.h"
#include "tenant/memory/pool_list.h"
#include "tenant/memory/pools.h"
#include "tenant/memory/table.h"

/*
 * key: executable graph; a: its memory (graph_memory.h), or 0; b: calls for it that are under way, or BEING_DESTROYED; c: its number
 * (table_number()), as a graph may go with its context without being destroyed, and its handle is another's then; d: the devices
 * that it gives work to (graph_survey.h).
 */
#define BEING_DESTROYED UINT64_MAX
static struct table execs;

/* key: address; a: the executable graph that allocates there and leaves it allocated; b: its number. */
static struct table lefts;

static struct graph_memory *memory_of(const struct table_entry *entry)
{
	return (struct graph_memory *)(uintptr_t)entry->a;
}

/* It leaves nothing any more. */
static void forget_lefts(const struct graph_memory *memory, uint64_t number)
{
	for (size_t i = 0; memory && i < memory->count; i++) {
		TABLE_SCOPE place = table_enter(&lefts, memory->ranges[i].base, false);

		if (place.entry && place.entry->b == number)
			table_remove(&place);
	}
}

/* False without memory. */
static bool keep_lefts(CUgraphExec exec, const struct graph_memory *memory, uint64_t number)
{
	for (size_t i = 0; memory && i < memory->count; i++)
		if (!memory->ranges[i].is_freed &&
			table_put(&lefts, (struct table_entry){.key = memory->ranges[i].base,
						  .a = (uintptr_t)exec,
						  .b = number}) < 0)
			return false;
	return true;
}

static void end_memory(struct graph_memory *memory, uint64_t number)
{
	forget_lefts(memory, number);
	graph_memory_free(memory);
}

/* In the place of one that went with its context. False without memory. */
static bool enter(CUgraphExec exec, const struct graph_survey *survey, uint64_t number)
{
	struct table_place place = table_enter(&execs, (uintptr_t)exec, true);
	struct table_entry old = {.a = 0};
	bool is_entered = place.entry;

	if (is_entered) {
		/* A call for the one that was there before reads its memory still. */
		if (!place.entry->b || place.entry->b == BEING_DESTROYED)
			old = *place.entry;
		*place.entry = (struct table_entry){.key = (uintptr_t)exec,
			.a = (uintptr_t)survey->memory,
			.c = number,
			.d = survey->devices};
	}
	table_leave(&place);
	end_memory(memory_of(&old), old.c);
	return is_entered;
}

CUresult graphs_keep(CUgraphExec exec, struct graph_survey *survey)
{
	uint64_t number = table_number();

	/* What it leaves is known before it can be launched. */
	if (!keep_lefts(exec, survey->memory, number) || !enter(exec, survey, number)) {
		forget_lefts(survey->memory, number);
		log_error("no memory for our own tables, so a graph is refused");
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	FAULT("graph: entered");
	survey->memory = NULL;
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
	struct table_entry old = {.a = 0};

	if (place.entry && is_gone) {
		old = *place.entry;
		table_remove(&place);
	} else if (place.entry) {
		place.entry->b = 0;
	}
	table_leave(&place);
	end_memory(memory_of(&old), old.c);
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
	graph_frames_forget(exec);
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

/* A free, under way, of what a graph left. */
struct left_free {
	CUgraphExec exec; /* NULL: of none that is known */
	uint64_t number;
};

/* False while the graph that left it is being launched. */
static bool try_free(const struct table_entry *left, uint64_t stream_id, struct left_free *ret_free)
{
	TABLE_SCOPE place = table_enter(&execs, left->a, false);
	struct graph_memory *memory;
	uint64_t freed_in;

	if (!place.entry || place.entry->c != left->b)
		return true;
	if (place.entry->b && place.entry->b != BEING_DESTROYED)
		return false;
	memory = memory_of(place.entry);
	freed_in = atomic_load(&memory->freed_in);
	if (!stream_id || (freed_in && freed_in != stream_id))
		stream_id = GRAPH_MEMORY_FREED_ELSEWHERE;
	atomic_store(&memory->freed_in, stream_id);
	atomic_fetch_add(&memory->frees, 1);
	*ret_free = (struct left_free){.exec = (CUgraphExec)(uintptr_t)left->a, .number = left->b};
	return true;
}

/* None begins while the graph is being launched: that has looked for frees already. */
static CUresult begin_free(CUdeviceptr pointer, uint64_t stream_id, struct left_free *ret_free)
{
	struct table_entry left;
	struct patience patience;

	*ret_free = (struct left_free){.exec = NULL};
	if (!pointer || table_get(&lefts, pointer, &left) != 0)
		return CUDA_SUCCESS;
	patience = patience_begin(MAKINGS_WAIT_NS);
	for (unsigned i = 0; !try_free(&left, stream_id, ret_free); i++) {
		if (patience_is_over(&patience))
			return CUDA_ERROR_NOT_READY;
		lock_rest(i);
	}
	return CUDA_SUCCESS;
}

static void end_free(const struct left_free *free)
{
	struct table_place place;

	if (!free->exec)
		return;
	place = table_enter(&execs, (uintptr_t)free->exec, false);
	if (place.entry && place.entry->c == free->number)
		atomic_fetch_sub(&memory_of(place.entry)->frees, 1);
	table_leave(&place);
}

CUresult graphs_free(CUdeviceptr pointer, CUstream stream, cuMemFreeAsync_fn *call)
{
	bool is_held = capture_hold_off_changes();
	struct left_free left;
	CUresult r = begin_free(pointer, is_held ? graph_growth_stream_id(stream) : 0, &left);

	if (r == CUDA_SUCCESS)
		r = call(pointer, stream);
	end_free(&left);
	if (is_held)
		capture_let_changes();
	return r;
}

static CUresult call_on_each(struct need *need, const struct graph_memory *memory,
	const struct graph_call *call, uint64_t stream_id, struct capture_call *capture)
{
	struct graph_growth own = {.memory = memory,
		.need = need,
		.stream_id = stream_id,
		.is_upload = call->is_upload,
		.charge = CHARGE_NULL};
	CUresult r;

	if (!need) {
		r = call->run(call->exec, call->stream);
		capture_leave(capture);
		return r;
	}
	r = graph_growth_begin(&own, call->stream);
	if (r != CUDA_SUCCESS)
		return r;
	r = call_on_each(need->next, memory, call, stream_id, capture);
	graph_growth_end(&own, r == CUDA_SUCCESS && capture->has_run);
	return r;
}

static CUresult call_on_all(const struct graph_call *call, struct graph_memory *memory,
	uint64_t stream_id, struct capture_call *capture)
{
	bool is_any_free_under_way = atomic_load(&memory->frees) > 0;
	CUresult r = call_on_each(memory->needs, memory, call, stream_id, capture);

	/* What it has allocated now is not freed yet: none begins while this call is under way. */
	if (r == CUDA_SUCCESS && capture->has_run && !call->is_upload && !is_any_free_under_way)
		atomic_store(&memory->freed_in, 0);
	return r;
}

/* A launch that frees what other graphs left. */
static CUresult call_freeing(const struct graph_call *call, struct graph_memory *memory,
	uint64_t stream_id, struct capture_call *capture)
{
	_cleanup_free_ struct left_free *frees = NULL;
	CUresult r = CUDA_SUCCESS;
	size_t begun = 0;

	frees = FAULT_OUT_OF_MEMORY() ? NULL : calloc(memory->count, sizeof(*frees));
	if (!frees)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (; begun < memory->count && r == CUDA_SUCCESS; begun++)
		if (memory->ranges[begun].is_freed)
			r = begin_free(memory->ranges[begun].base, stream_id, &frees[begun]);
	if (r == CUDA_SUCCESS)
		r = call_on_all(call, memory, stream_id, capture);
	while (begun > 0)
		end_free(&frees[--begun]);
	return r;
}

/* In a stream whose handle is no other one's meanwhile: what is there for the launch, and what its frees are ahead of, depends on that. */
static CUresult call_in_stream(
	const struct graph_call *call, struct graph_memory *memory, struct capture_call *capture)
{
	bool is_held = capture_hold_off_changes();
	uint64_t stream_id = is_held ? graph_growth_stream_id(call->stream) : 0;
	CUresult r;

	if (LIKELY(call->is_upload || !memory->frees_others))
		r = call_on_all(call, memory, stream_id, capture);
	else
		r = call_freeing(call, memory, stream_id, capture);
	if (is_held)
		capture_let_changes();
	return r;
}

/* What is known of one when a call for it begins. */
struct pinned {
	uint64_t number; /* 0: nothing is */
	uint64_t devices;
	struct graph_memory *memory;
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
		.memory = memory_of(place.entry)};
	return true;
}

static void unpin(CUgraphExec exec, uint64_t number)
{
	TABLE_SCOPE place = table_enter(&execs, (uintptr_t)exec, false);

	if (place.entry && place.entry->c == number)
		place.entry->b--;
}

static CUresult call_needing(const struct graph_call *call, struct graph_memory *memory)
{
	struct capture_call capture;

	if (LIKELY(!memory))
		return call->run(call->exec, call->stream);
	capture_enter(call->stream, &capture);
	/* What is captured needs nothing. */
	if (capture.is_captured)
		return call_on_each(NULL, NULL, call, 0, &capture);
	if (memory->needs && state_enter() == STATE_CLOSED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return call_in_stream(call, memory, &capture);
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
		r = call_needing(call, pinned->memory);
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
	table_forget(&lefts);
	graph_growth_reset_after_fork();
}
