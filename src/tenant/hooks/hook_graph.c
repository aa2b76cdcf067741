/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: graphs, which take memory when they are instantiated, uploaded, launched, or changed. */
#define LOG_TOPIC LOG_MEMORY
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"
#include "tenant/compute/streams_find.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_events.h"
#include "tenant/memory/code_pins.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/graph_frames.h"
#include "tenant/memory/graphs.h"
#include "tenant/memory/guard.h"
#include "tenant/memory/libraries.h"
#include "tenant/memory/local.h"
#include "tenant/memory/makings.h"
#include "tenant/memory/marks.h"
#include "tenant/memory/runtime.h"

/*
 * What the driver keeps for each node of an executable graph: 2.6 KiB. An update takes none, as both have the same nodes (both H200,
 * driver 580).
 */
#define NODE_BYTES	UINT64_C(4096)
#define NODE_STEP_BYTES UINT64_C(0x200000)

/* What a call takes in one of the contexts that the graph's kernels run in. */
struct making_place {
	CUcontext context;
	uint64_t heap_bytes;
	struct charge local, heap;
	struct guard guard;
};

/* A call that makes an executable graph or puts something else into one. */
struct making {
	struct graph_survey survey;
	struct making_place one; /* nearly every graph's kernels run in one context */
	struct making_place *places;
	unsigned place_count;
	unsigned
		found_count; /* of these so many are of what is put in, the first ones; the others of what is there already */
	bool is_change;	     /* the heap may come when the graph is launched */
	bool is_under_way;   /* of a whole graph (makings.h) */
	CUfunction function; /* of a single kernel, or NULL */
	struct code_pin pin; /* of that */
	uint32_t generation;
	uint64_t current; /* current_since(), with function */
};

#define MAKING(is_it_change)                                                             \
	{                                                                                \
		.survey = GRAPH_SURVEY_NULL, .places = NULL, .is_change = (is_it_change) \
	}

/* In the place's context. */
static CUresult begin_place(
	struct making *m, struct making_place *p, const struct graph_place *found, uint64_t bytes)
{
	CUresult r = CUDA_SUCCESS;

	if (found->has_new)
		r = runtime_heap_begin(&p->heap_bytes);
	if (r == CUDA_SUCCESS && m->is_change && p->heap_bytes)
		r = charge_reserve_current(p->heap_bytes, CHARGE_MODULE, &p->heap);
	else if (r == CUDA_SUCCESS)
		bytes += p->heap_bytes;
	if (r == CUDA_SUCCESS && (bytes || found->has_new))
		r = guard_begin_current(bytes, &p->guard);
	if (r == CUDA_SUCCESS && !graph_frames_come(found->frame_bytes))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	return r == CUDA_SUCCESS ? local_begin(found->frame_bytes, &p->local) : r;
}

/* False without memory. */
static bool make_places(struct making *m)
{
	m->places = &m->one;
	if (m->survey.place_count > 1)
		m->places = FAULT_OUT_OF_MEMORY()
				    ? NULL
				    : calloc(m->survey.place_count, sizeof(*m->places));
	return m->places;
}

static void free_places(struct making *m)
{
	if (m->places != &m->one)
		free(m->places);
}

/* Reserves what the survey found, and bytes in the current context. After any answer making_end() is called. */
static CUresult making_reserve(struct making *m, uint64_t bytes)
{
	CUcontext current = NULL;
	CUresult r = CUDA_SUCCESS;
	bool is_entered;

	cuda.cuCtxGetCurrent(&current);
	if (bytes && !graph_survey_place(&m->survey, current))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!make_places(m))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned i = 0; i < m->survey.place_count && r == CUDA_SUCCESS; i++) {
		const struct graph_place *found = &m->survey.places[i];
		struct making_place *p = &m->places[m->place_count++];

		*p = (struct making_place){
			.context = found->context, .local = CHARGE_NULL, .heap = CHARGE_NULL};
		is_entered = current_enter(p->context);
		r = begin_place(m, p, found, found->context == current ? bytes : 0);
		current_leave(is_entered);
	}
	return r;
}

/* The same with what its other kernels may need once more, as a change makes all of an executable graph ready. */
static CUresult making_reserve_in(CUgraphExec exec, struct making *m)
{
	CUresult r;

	m->found_count = m->survey.place_count;
	graph_frames_raise(exec, &m->survey);
	r = graph_frames_add(exec, &m->survey);
	return r == CUDA_SUCCESS ? making_reserve(m, 0) : r;
}

/*
 * Before a call by which all of a graph comes into an executable graph, which is there (NULL: it is being made). Until the end no other thread changes the
 * graph, or unloads the code that it has.
 */
static CUresult making_begin(CUgraphExec into, CUgraph graph, struct making *m)
{
	CUresult r;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	m->is_under_way = makings_begin();
	if (!m->is_under_way)
		return into ? CUDA_ERROR_NOT_READY : CUDA_ERROR_OUT_OF_MEMORY;
	r = graph_survey_graph(graph, &m->survey);
	/* First, as it may wait: nothing is reserved meanwhile. */
	if (r == CUDA_SUCCESS && into)
		r = graphs_widen(into, m->survey.devices);
	if (r != CUDA_SUCCESS)
		return r;
	return into ? making_reserve_in(into, m)
		    : making_reserve(
			      m, round_up_u64(m->survey.node_count * NODE_BYTES, NODE_STEP_BYTES));
}

/*
 * Before one kernel comes into an executable graph, which some programs exchange at every step: where it was launched before, there is no
 * question to the driver that takes microseconds.
 */
static CUresult making_begin_kernel(
	CUgraphExec into, const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct making *m)
{
	CUDA_KERNEL_NODE_PARAMS_v2 wanted = *params;
	CUcontext own;
	bool is_entered;
	CUresult r;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	m->current = current_since();
	m->generation = marks_generation();
	m->function = graph_survey_function(params);
	/* A kernel comes into the context that is named, and a function into its own. */
	is_entered = current_enter(params->ctx);
	r = code_pins_function(m->function, &m->pin);
	current_leave(is_entered);
	/* The driver does not heed what the program says of a function's context. */
	own = marks_are_by_context() ? code_pins_context(&m->pin) : NULL;
	if (own)
		wanted.ctx = own;
	if (r == CUDA_SUCCESS)
		r = graph_survey_kernel(&wanted, &m->survey);
	if (r == CUDA_SUCCESS)
		r = graphs_widen(into, m->survey.devices);
	return r == CUDA_SUCCESS ? making_reserve_in(into, m) : r;
}

static void end_place(const struct making *m, struct making_place *p, CUresult r)
{
	if (p->local.device)
		local_end(&p->local);
	if (r == CUDA_SUCCESS)
		runtime_heap_keep(&p->heap);
	charge_undo(&p->heap);
	/* Undoing the call would not give the memory back: nodes stay with the context. */
	guard_end(&p->guard);
	runtime_heap_end(p->heap_bytes, p->guard.current);
	if (r == CUDA_SUCCESS && m->function && p < m->places + m->found_count &&
		current_is_same(m->current))
		marks_put((uintptr_t)m->function, m->generation);
}

static CUresult making_end(struct making *m, CUresult r)
{
	if (m->is_under_way) {
		makings_end();
		libraries_unload_put_off();
	}
	while (m->place_count > 0) {
		struct making_place *p = &m->places[--m->place_count];
		bool is_entered = current_enter(p->context);

		end_place(m, p, r);
		current_leave(is_entered);
	}
	free_places(m);
	graph_survey_end(&m->survey);
	code_pins_end(&m->pin);
	return r;
}

/*
 * An executable graph was made. Another thread may have given the graph more since it was looked through; nodes that
 * allocate cannot be taken out of a graph again.
 */
static CUresult keep(struct making *m, CUresult r, CUgraph graph, CUgraphExec made)
{
	if (r != CUDA_SUCCESS || state_enter() == STATE_ASIDE)
		return making_end(m, r);
	graph_frames_keep(made, &m->survey);
	r = graph_survey_again(graph, &m->survey);
	if (r == CUDA_SUCCESS)
		r = graphs_keep(made, &m->survey);
	if (r != CUDA_SUCCESS) {
		graph_frames_forget(made);
		cuda.cuGraphExecDestroy(made);
	}
	return making_end(m, r);
}

HOOK_FORMS(cuGraphInstantiate, _v2, CUgraphExec *, exec, CUgraph, graph, CUgraphNode *, error_node,
	char *, log, size_t, log_bytes)
{
	struct making m = MAKING(false);
	CUgraphExec made = NULL;
	CUresult r;

	if (!exec || !graph)
		return real(exec, graph, error_node, log, log_bytes);
	r = making_begin(NULL, graph, &m);
	if (r == CUDA_SUCCESS)
		r = real(&made, graph, error_node, log, log_bytes);
	r = keep(&m, r, graph, made);
	return HOOK_GIVE(r, exec, made);
}

HOOK_BODY(
	cuGraphInstantiateWithFlags, CUgraphExec *, exec, CUgraph, graph, unsigned long long, flags)
{
	struct making m = MAKING(false);
	CUgraphExec made = NULL;
	CUresult r;

	if (!exec || !graph)
		return cuda.cuGraphInstantiateWithFlags(exec, graph, flags);
	r = making_begin(NULL, graph, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphInstantiateWithFlags(&made, graph, flags);
	r = keep(&m, r, graph, made);
	return HOOK_GIVE(r, exec, made);
}

/* With the room that it may make again. */
static __attribute__((noinline, cold)) CUresult call_graph_slowly(
	const struct graph_call *call, uint64_t *ret_missing)
{
	struct making m = MAKING(true);
	CUresult r = making_reserve_in(call->exec, &m);

	*ret_missing = 0;
	if (r == CUDA_SUCCESS)
		r = graphs_call(call, ret_missing);
	return making_end(&m, r);
}

/* An upload or launch. */
static CUresult call_graph(const struct graph_call *call, uint64_t *ret_missing)
{
	if (LIKELY(!graph_frames_are_lowered()) || !call->exec || state_enter() == STATE_ASIDE)
		return graphs_call(call, ret_missing);
	return call_graph_slowly(call, ret_missing);
}

static CUresult run_upload(cuGraphUpload_fn *function, CUgraphExec exec, CUstream stream)
{
	struct graph_call call = {.run = function,
		.exec = exec,
		.stream = stream,
		.is_upload = true,
		.passed = GRAPH_ANYWHERE};
	uint64_t missing;

	return call_graph(&call, &missing);
}

/* Of these devices the first in the order of their UUIDs, which is the same for all programs. */
static int first_of(uint64_t devices)
{
	const struct device *first = NULL;
	int ordinal = __builtin_ctzll(devices);

	for (uint64_t left = devices; left; left &= left - 1) {
		const struct device *d = state_known_device(__builtin_ctzll(left));

		if (d && (!first || strcmp(d->uuid, first->uuid) < 0)) {
			first = d;
			ordinal = d->ordinal;
		}
	}
	return ordinal;
}

/*
 * Passes the gates of these devices and calls the driver. All programs pass them in one order: two that had passed one each, and
 * waited for the other's, would wait for long. own: the ordinal of the stream's device. Where the driver was not called *ret_missing is not 0, and says
 * which devices it may need as well.
 */
static CUresult pass_gates(
	const struct graph_call *call, uint64_t devices, int own, uint64_t *ret_missing)
{
	struct gate_pass pass = {.is_metered = false};
	struct device *device;
	CUresult r = CUDA_ERROR_NOT_READY;
	int ordinal;

	if (!devices)
		return call_graph(call, ret_missing);
	ordinal = first_of(devices);
	device = state_known_device(ordinal);
	/* What the others' parts take is not what all of it takes. A device in no share has no gate. */
	if (ordinal == own)
		gate_enter(call->stream, gate_key(call->exec, 0), &pass);
	else if (device)
		gate_enter_for(
			device, call->stream, gate_key(call->exec, (unsigned)ordinal + 1), &pass);
	/* The handle is a stream's of another device by now. */
	if (ordinal == own && pass.state && gate_ordinal(&pass) != own)
		*ret_missing = UINT64_C(1) << own;
	else
		r = pass_gates(call, devices & ~(UINT64_C(1) << ordinal), own, ret_missing);
	gate_leave(&pass, *ret_missing ? CUDA_ERROR_NOT_READY : r);
	return r;
}

/* Each round finds a device more, or that the stream's handle is one's of another device. */
#define ROUNDS_MOST 128

/*
 * A launch in a process with contexts on several devices. Another thread may put more into the graph until the driver is called, or give the stream's handle
 * to another one.
 */
static CUresult launch_on_several(struct graph_call *call)
{
	uint64_t missing = graphs_devices(call->exec);
	unsigned rounds = 0;
	CUresult r;

	call->is_of_one = false;
	do {
		int own = streams_ordinal(call->stream);

		call->passed |= missing | (own < 0 ? 0 : UINT64_C(1) << own);
		r = pass_gates(call, call->passed, own, &missing);
	} while (missing && ++rounds < ROUNDS_MOST);
	return r;
}

/* The driver's own upload is as much, and comes after the graph was looked through again. */
static CUresult upload(CUgraphExec made, CUstream stream)
{
	CUresult r = run_upload(cuda.cuGraphUpload, made, stream);

	if (r == CUDA_SUCCESS)
		return r;
	(void)graphs_destroy(made);
	return r;
}

HOOK_FORMS(cuGraphInstantiateWithParams, _ptsz, CUgraphExec *, exec, CUgraph, graph,
	CUDA_GRAPH_INSTANTIATE_PARAMS *, params)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS wanted;
	CUgraphExec made = NULL;
	struct making m = MAKING(false);
	cuuint64_t flags;
	CUresult r;

	if (!exec || !graph || !params)
		return real(exec, graph, params);
	wanted = *params;
	flags = wanted.flags;
	wanted.flags &= ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	r = making_begin(NULL, graph, &m);
	if (r == CUDA_SUCCESS)
		r = real(&made, graph, &wanted);
	r = keep(&m, r, graph, made);
	if (r == CUDA_SUCCESS && flags != wanted.flags)
		r = upload(made, hook_meant(wanted.hUploadStream, null_stream));
	/* Which node the driver refused, and why. */
	wanted.flags = flags;
	*params = wanted;
	return HOOK_GIVE(r, exec, made);
}

HOOK_FORMS(cuGraphUpload, _ptsz, CUgraphExec, exec, CUstream, stream)
{
	return run_upload(real, exec, stream);
}

HOOK_FORMS(cuGraphLaunch, _ptsz, CUgraphExec, exec, CUstream, stream)
{
	struct graph_call call = {
		.run = real, .exec = exec, .stream = stream, .passed = GRAPH_ANYWHERE};
	struct gate_pass pass;
	uint64_t missing;
	CUresult r;

	if (LIKELY(gate_is_open()))
		return call_graph(&call, &missing);
	call.passed = 0;
	call.is_of_one = !contexts_are_on_several();
	if (UNLIKELY(!call.is_of_one))
		return launch_on_several(&call);
	gate_enter_slowly(stream, gate_key(exec, 0), &pass);
	r = call_graph(&call, &missing);
	gate_leave(&pass, r);
	return LIKELY(!missing) ? r : launch_on_several(&call);
}

HOOK_BODY(cuGraphExecDestroy, CUgraphExec, exec)
{
	return graphs_destroy(exec);
}

/* A graph with memory cannot be updated into another, so what is known of its needs stays. */
HOOK_BODY(cuGraphExecUpdate, CUgraphExec, exec, CUgraph, graph, CUgraphNode *, error_node,
	CUgraphExecUpdateResult *, result)
{
	struct making m = MAKING(true);
	CUresult r;

	if (!exec || !graph)
		return cuda.cuGraphExecUpdate(exec, graph, error_node, result);
	r = making_begin(exec, graph, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecUpdate(exec, graph, error_node, result);
	return making_end(&m, r);
}

HOOK_BODY(cuGraphExecUpdate_v2, CUgraphExec, exec, CUgraph, graph, CUgraphExecUpdateResultInfo *,
	info)
{
	struct making m = MAKING(true);
	CUresult r;

	if (!exec || !graph)
		return cuda.cuGraphExecUpdate_v2(exec, graph, info);
	r = making_begin(exec, graph, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecUpdate_v2(exec, graph, info);
	return making_end(&m, r);
}

HOOK_BODY(cuGraphExecChildGraphNodeSetParams, CUgraphExec, exec, CUgraphNode, node, CUgraph, child)
{
	struct making m = MAKING(true);
	CUresult r;

	if (!exec || !node || !child)
		return cuda.cuGraphExecChildGraphNodeSetParams(exec, node, child);
	r = making_begin(exec, child, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecChildGraphNodeSetParams(exec, node, child);
	return making_end(&m, r);
}

HOOK_BODY(cuGraphExecKernelNodeSetParams, CUgraphExec, exec, CUgraphNode, node,
	const CUDA_KERNEL_NODE_PARAMS_v1 *, params)
{
	struct making m = MAKING(true);
	CUresult r;

	if (!exec || !node || !params)
		return cuda.cuGraphExecKernelNodeSetParams(exec, node, params);
	HOOK_COPY(params);
	r = making_begin_kernel(exec, &(CUDA_KERNEL_NODE_PARAMS_v2){.func = params->func}, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecKernelNodeSetParams(exec, node, params);
	return making_end(&m, r);
}

HOOK_BODY(cuGraphExecKernelNodeSetParams_v2, CUgraphExec, exec, CUgraphNode, node,
	const CUDA_KERNEL_NODE_PARAMS_v2 *, params)
{
	struct making m = MAKING(true);
	CUresult r;

	if (!exec || !node || !params)
		return cuda.cuGraphExecKernelNodeSetParams_v2(exec, node, params);
	HOOK_COPY(params);
	r = making_begin_kernel(exec, params, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecKernelNodeSetParams_v2(exec, node, params);
	return making_end(&m, r);
}

HOOK_BODY(
	cuGraphExecNodeSetParams, CUgraphExec, exec, CUgraphNode, node, CUgraphNodeParams *, params)
{
	struct making m = MAKING(true);
	CUresult r = CUDA_SUCCESS;

	if (!exec || !node || !params)
		return cuda.cuGraphExecNodeSetParams(exec, node, params);
	HOOK_COPY(params);
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		r = making_begin_kernel(exec, &params->kernel, &m);
	else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		r = making_begin(exec, params->graph.graph, &m);
	else if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		r = own_events_prepare(params->eventRecord.event);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecNodeSetParams(exec, node, params);
	return making_end(&m, r);
}

HOOK_BODY(cuDeviceGraphMemTrim, CUdevice, device)
{
	return graphs_trim(device);
}
