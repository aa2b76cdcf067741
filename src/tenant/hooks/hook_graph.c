/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks: graphs, which take memory when they are instantiated, uploaded, launched, or changed. */
#define LOG_TOPIC LOG_MEMORY
#include <stdlib.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/hooks/hook.h"
#include "tenant/compute/gate.h"
#include "tenant/driver/current.h"
#include "tenant/driver/own_events.h"
#include "tenant/memory/code.h"
#include "tenant/memory/graphs.h"
#include "tenant/memory/guard.h"
#include "tenant/memory/local.h"
#include "tenant/memory/runtime.h"

/* What the driver keeps for each node of an executable graph: 2.6 KiB (H200, driver 580). */
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
	bool is_change;	     /* the heap may come when the graph is launched */
	bool is_made;	     /* until the end: an executable graph is being made (graphs.h) */
	CUfunction function; /* of a single kernel, or NULL */
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
	if (bytes)
		graph_survey_place(&m->survey, current);
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

/* Before a call by which all of a graph comes in. */
static CUresult making_begin(CUgraph graph, struct making *m)
{
	CUresult r;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	r = graph_survey_graph(graph, &m->survey);
	return r == CUDA_SUCCESS ? making_reserve(m, round_up_u64(m->survey.node_count * NODE_BYTES,
							     NODE_STEP_BYTES))
				 : r;
}

/* The same before an executable graph is made. */
static CUresult instantiation_begin(CUgraph graph, struct making *m)
{
	CUresult r = making_begin(graph, m);

	if (r != CUDA_SUCCESS)
		return r;
	m->is_made = graphs_make_begin();
	return m->is_made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/*
 * The same for one kernel, which some programs exchange at every step: where it was launched before, there is no
 * question to the driver that takes microseconds.
 */
static CUresult making_begin_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct making *m)
{
	CUresult r;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	m->current = current_since();
	m->generation = code_generation();
	m->function = graph_survey_function(params);
	r = graph_survey_kernel(params, &m->survey);
	return r == CUDA_SUCCESS ? making_reserve(m, 0) : r;
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
	runtime_heap_end(p->heap_bytes, guard_grown_bytes(&p->guard), p->guard.current);
	if (r == CUDA_SUCCESS && m->function && current_is_same(m->current))
		code_note_launched(m->function, m->generation);
}

static CUresult making_end(struct making *m, CUresult r)
{
	if (m->is_made)
		graphs_make_end();
	while (m->place_count > 0) {
		struct making_place *p = &m->places[--m->place_count];
		bool is_entered = current_enter(p->context);

		end_place(m, p, r);
		current_leave(is_entered);
	}
	free_places(m);
	graph_survey_end(&m->survey);
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
	r = graph_survey_again(graph, &m->survey);
	if (r == CUDA_SUCCESS)
		r = graphs_keep(made, &m->survey);
	if (r != CUDA_SUCCESS)
		cuda.cuGraphExecDestroy(made);
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
	r = instantiation_begin(graph, &m);
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
	r = instantiation_begin(graph, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphInstantiateWithFlags(&made, graph, flags);
	r = keep(&m, r, graph, made);
	return HOOK_GIVE(r, exec, made);
}

static CUresult run_upload(cuGraphUpload_fn *function, CUgraphExec exec, CUstream stream)
{
	return graphs_call(&(struct graph_call){
		.run = function, .exec = exec, .stream = stream, .is_upload = true});
}

static CUresult run_launch(cuGraphLaunch_fn *function, CUgraphExec exec, CUstream stream)
{
	return graphs_call(&(struct graph_call){.run = function, .exec = exec, .stream = stream});
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
	r = instantiation_begin(graph, &m);
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
	struct gate_pass pass;
	CUresult r;

	gate_enter(stream, gate_key(exec, 0), &pass);
	r = run_launch(real, exec, stream);
	gate_leave(&pass, r);
	return r;
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
	r = making_begin(graph, &m);
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
	r = making_begin(graph, &m);
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
	r = making_begin(child, &m);
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
	r = making_begin_kernel(&(CUDA_KERNEL_NODE_PARAMS_v2){.func = params->func}, &m);
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
	r = making_begin_kernel(params, &m);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecKernelNodeSetParams_v2(exec, node, params);
	return making_end(&m, r);
}

/* Before a graph may record it. */
static CUresult prepare_event(const CUDA_EVENT_NODE_PARAMS *params)
{
	return own_events_bind(params->event) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
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
		r = making_begin_kernel(&params->kernel, &m);
	else if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		r = making_begin(params->graph.graph, &m);
	else if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		r = prepare_event(&params->eventRecord);
	if (r == CUDA_SUCCESS)
		r = cuda.cuGraphExecNodeSetParams(exec, node, params);
	return making_end(&m, r);
}

/* Nothing tells a conditional node's bodies later, and their kernels count, too. */
static void added(CUgraphNode made, const CUgraphNodeParams *params, CUgraphNodeParams *ret_params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL && state_enter() == STATE_OPEN)
		graph_survey_keep_bodies(made, &params->conditional);
	/* The driver answers in the parameters, too. */
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
		params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		*ret_params = *params;
}

/*
 * Before a kernel comes into a graph: the driver loads its library then, and not only when the graph is instantiated
 * (H100, driver 580).
 */
static CUresult prepare_kernel(const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
	CUfunction function = graph_survey_function(params);
	bool is_entered;
	CUresult r;

	if (state_enter() == STATE_ASIDE)
		return CUDA_SUCCESS;
	is_entered = current_enter(params->ctx);
	r = code_is_launched(function, NULL) ? CUDA_SUCCESS : code_prepare(function);
	current_leave(is_entered);
	return r;
}

static CUresult prepare_node(const CUgraphNodeParams *params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		return prepare_event(&params->eventRecord);
	return params->type == CU_GRAPH_NODE_TYPE_KERNEL ? prepare_kernel(&params->kernel)
							 : CUDA_SUCCESS;
}

/* The rest of a hook that adds a node: the driver's call. */
#define ADD(real, ...)                                          \
	{                                                       \
		CUgraphNodeParams wanted;                       \
		CUgraphNode made;                               \
		CUresult r;                                     \
                                                                \
		if (!node || !params)                           \
			return real(node, __VA_ARGS__, params); \
		wanted = *params;                               \
		r = prepare_node(&wanted);                      \
		if (r == CUDA_SUCCESS)                          \
			r = real(&made, __VA_ARGS__, &wanted);  \
		if (r == CUDA_SUCCESS)                          \
			added(made, &wanted, params);           \
		return HOOK_GIVE(r, node, made);                \
	}

HOOK_BODY(cuGraphAddNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, dependencies,
	size_t, count, CUgraphNodeParams *, params)
ADD(cuda.cuGraphAddNode, graph, dependencies, count)

HOOK_BODY(cuGraphAddNode_v2, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *, dependencies,
	const CUgraphEdgeData *, edges, size_t, count, CUgraphNodeParams *, params)
ADD(cuda.cuGraphAddNode_v2, graph, dependencies, edges, count)

/* The rest of a hook that puts a kernel into a graph: what is wanted, and the driver's call. */
#define PUT_KERNEL(wanted, real, ...)                                     \
	{                                                                 \
		CUresult r;                                               \
                                                                          \
		if (!params)                                              \
			return real(__VA_ARGS__, params);                 \
		HOOK_COPY(params);                                        \
		r = prepare_kernel(wanted);                               \
		return r == CUDA_SUCCESS ? real(__VA_ARGS__, params) : r; \
	}
#define OLD_KERNEL (&(CUDA_KERNEL_NODE_PARAMS_v2){.func = params->func})

HOOK_BODY(cuGraphAddKernelNode, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, const CUDA_KERNEL_NODE_PARAMS_v1 *, params)
PUT_KERNEL(OLD_KERNEL, cuda.cuGraphAddKernelNode, node, graph, dependencies, count)

HOOK_BODY(cuGraphAddKernelNode_v2, CUgraphNode *, node, CUgraph, graph, const CUgraphNode *,
	dependencies, size_t, count, const CUDA_KERNEL_NODE_PARAMS_v2 *, params)
PUT_KERNEL(params, cuda.cuGraphAddKernelNode_v2, node, graph, dependencies, count)

HOOK_BODY(cuGraphKernelNodeSetParams, CUgraphNode, node, const CUDA_KERNEL_NODE_PARAMS_v1 *, params)
PUT_KERNEL(OLD_KERNEL, cuda.cuGraphKernelNodeSetParams, node)

HOOK_BODY(cuGraphKernelNodeSetParams_v2, CUgraphNode, node, const CUDA_KERNEL_NODE_PARAMS_v2 *,
	params)
PUT_KERNEL(params, cuda.cuGraphKernelNodeSetParams_v2, node)

HOOK_BODY(cuGraphNodeSetParams, CUgraphNode, node, CUgraphNodeParams *, params)
{
	CUresult r;

	if (!params)
		return cuda.cuGraphNodeSetParams(node, params);
	HOOK_COPY(params);
	r = prepare_node(params);
	return r == CUDA_SUCCESS ? cuda.cuGraphNodeSetParams(node, params) : r;
}

HOOK_BODY(cuDeviceGraphMemTrim, CUdevice, device)
{
	return graphs_trim(device);
}
