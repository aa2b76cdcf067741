/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a program of compute work. A step that the driver refuses, or that names what is not there, does nothing: so
 * any part of a program is one.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "tests/hostile/served.h"
#include "tests/hunt/compute_player.h"

#define AHEAD_NS      (100 * MS) /* a real driver takes no more work than some hundred pieces */
#define STILL_NS      20000	 /* in less than that nothing happened but calls */
#define STILL_ROUNDS  16	 /* of that kind, one after the other */
#define POLL_NS	      20000
#define BUFFER_BYTES  (UINT64_C(1) << 20)
#define GRAPH_KERNELS 16
#define DEFAULT	      (COMPUTE_STREAMS - 2)

static void load_functions(struct place *place)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry busy(\n\t.param .u64 duration_ns\n)\n{ ret; }\n"
		".visible .entry other(\n\t.param .u64 duration_ns\n)\n{ ret; }\n";
	CUmodule module;

	if (cuModuleLoadData(&module, text) != CUDA_SUCCESS)
		return;
	cuModuleGetFunction(&place->function[0], module, "busy");
	cuModuleGetFunction(&place->function[1], module, "other");
}

static CUresult make_green(struct place *place)
{
	CUdevResourceDesc description;
	CUdevResource all, some;
	unsigned int count = 1;
	CUresult r = cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM);

	if (r == CUDA_SUCCESS)
		r = cuDevSmResourceSplitByCount(&some, &count, &all, NULL, 0, 8);
	if (r == CUDA_SUCCESS)
		r = cuDevResourceGenerateDesc(&description, &some, 1);
	if (r == CUDA_SUCCESS)
		r = cuGreenCtxCreate(&place->green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
	return r == CUDA_SUCCESS ? cuCtxFromGreenCtx(&place->context, place->green) : r;
}

/* Makes a context of that kind, or takes the one that is there, and makes it current. */
static void enter(struct player *p, const struct compute_step *step)
{
	struct place *place = &p->places[step->context];
	bool is_there = place->context;
	CUresult r = CUDA_SUCCESS;

	if (!is_there && step->op == COMPUTE_context)
		r = cuCtxCreate_v2(&place->context, 0, 0);
	else if (!is_there && step->op == COMPUTE_green)
		r = make_green(place);
	else if (!is_there)
		r = cuDevicePrimaryCtxRetain(&place->context, 0);
	if (r == CUDA_SUCCESS)
		r = cuCtxSetCurrent(place->context);
	if (r != CUDA_SUCCESS) {
		*place = (struct place){.context = NULL};
		return;
	}
	p->ctx = step->context;
	if (is_there)
		return;
	place->is_primary = step->op == COMPUTE_primary;
	load_functions(place);
}

/* The current context; one is made where there is none. */
static struct place *current(struct player *p)
{
	if (!p->places[p->ctx].context)
		enter(p, &(struct compute_step){.op = COMPUTE_primary, .context = p->ctx});
	return &p->places[p->ctx];
}

/* What goes with a context. */
static void forget_context(struct player *p, uint32_t at)
{
	for (unsigned i = 0; i < COMPUTE_STREAMS; i++)
		if (p->streams[i].context == at)
			p->streams[i].handle = NULL;
	for (unsigned i = 0; i < COMPUTE_GRAPHS; i++)
		if (p->graphs[i].exec && p->graphs[i].context == at)
			p->graphs[i].exec = NULL;
	p->places[at] = (struct place){.context = NULL};
}

static void end_context(struct player *p, uint32_t at)
{
	struct place *place = &p->places[at];

	if (!place->context)
		return;
	if (place->is_primary)
		cuDevicePrimaryCtxRelease_v2(0);
	else if (place->green)
		cuGreenCtxDestroy(place->green);
	else
		cuCtxDestroy_v2(place->context);
	forget_context(p, at);
	if (at == p->ctx)
		cuCtxSetCurrent(NULL);
}

static void destroy(struct player *p, const struct compute_step *step)
{
	end_context(p, step->context);
}

static void reset(struct player *p, const struct compute_step *step)
{
	cuDevicePrimaryCtxReset_v2(0);
	for (uint32_t i = 0; i < COMPUTE_CONTEXTS; i++)
		if (p->places[i].is_primary || p->places[i].green)
			end_context(p, i);
}

static CUstream stream_of(struct player *p, uint32_t at, struct place **ret_place)
{
	*ret_place = current(p);
	if (at < DEFAULT && p->streams[at].handle) {
		*ret_place = &p->places[p->streams[at].context];
		return p->streams[at].handle;
	}
	return at == DEFAULT + 1 ? CU_STREAM_PER_THREAD : NULL;
}

static void make_stream(struct player *p, const struct compute_step *step)
{
	uint32_t at = step->stream, context = step->context;
	struct place *place = &p->places[context];
	CUresult r;

	if (at >= DEFAULT || p->streams[at].handle)
		return;
	if (!place->context) {
		place = current(p);
		context = p->ctx;
	}
	cuCtxSetCurrent(place->context);
	r = place->green ? cuGreenCtxStreamCreate(
				   &p->streams[at].handle, place->green, CU_STREAM_NON_BLOCKING, 0)
			 : cuStreamCreate(&p->streams[at].handle, CU_STREAM_NON_BLOCKING);
	cuCtxSetCurrent(p->places[p->ctx].context);
	if (r != CUDA_SUCCESS)
		p->streams[at].handle = NULL;
	p->streams[at].context = context;
}

static void close_stream(struct player *p, const struct compute_step *step)
{
	uint32_t at = step->stream;

	if (at < DEFAULT && p->streams[at].handle)
		cuStreamDestroy_v2(p->streams[at].handle);
	p->streams[at].handle = NULL;
}

void player_launch(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);
	uint64_t ns = step->us * UINT64_C(1000);
	void *parameters[] = {&ns};

	for (uint32_t i = 0; i < step->times; i++)
		if (cuLaunchKernel(place->function[step->op == COMPUTE_other], 1, 1, 1, 1, 1, 1, 0,
			    stream, parameters, NULL) == CUDA_SUCCESS)
			p->given_ns += ns;
}

static void copy(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);

	if (!place->buffer && cuMemAlloc_v2(&place->buffer, 2 * BUFFER_BYTES) != CUDA_SUCCESS)
		return;
	for (uint32_t i = 0; i < step->times; i++)
		if (cuMemcpyDtoDAsync_v2(place->buffer, place->buffer + BUFFER_BYTES, BUFFER_BYTES,
			    stream) == CUDA_SUCCESS)
			p->given_ns += 2 * MS;
}

static CUDA_KERNEL_NODE_PARAMS_v2 node_of(CUfunction function, void **parameters)
{
	return (CUDA_KERNEL_NODE_PARAMS_v2){.func = function,
		.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.kernelParams = parameters};
}

/* Kernels one after the other. */
static void make_graph(struct player *p, const struct compute_step *step, struct place *place)
{
	uint64_t ns = step->us * UINT64_C(1000);
	void *parameters[] = {&ns};
	CUDA_KERNEL_NODE_PARAMS_v2 node = node_of(place->function[0], parameters);
	CUgraphNode last = NULL;
	CUgraph graph;

	if (cuGraphCreate(&graph, 0) != CUDA_SUCCESS)
		return;
	for (uint32_t i = 0; i < step->times && i < GRAPH_KERNELS; i++) {
		CUgraphNode made;

		if (cuGraphAddKernelNode_v2(
			    &made, graph, last ? &last : NULL, last != NULL, &node) != CUDA_SUCCESS)
			break;
		last = made;
		if (i == 0)
			p->graphs[step->graph].first = made;
	}
	cuCtxSetCurrent(place->context);
	if (cuGraphInstantiateWithFlags(&p->graphs[step->graph].exec, graph, 0) != CUDA_SUCCESS)
		p->graphs[step->graph].exec = NULL;
	cuCtxSetCurrent(p->places[p->ctx].context);
	p->graphs[step->graph].context = (uint32_t)(place - p->places);
	cuGraphDestroy(graph);
}

static void play_graph(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);

	if (!p->graphs[step->graph].exec)
		make_graph(p, step, place);
	if (p->graphs[step->graph].exec &&
		cuGraphLaunch(p->graphs[step->graph].exec, stream) == CUDA_SUCCESS)
		p->given_ns += step->us * UINT64_C(1000) * step->times;
}

static void update_graph(struct player *p, const struct compute_step *step)
{
	uint64_t ns = step->us * UINT64_C(1000);
	void *parameters[] = {&ns};
	CUDA_KERNEL_NODE_PARAMS_v2 node;

	if (!p->graphs[step->graph].exec)
		return;
	node = node_of(p->places[p->graphs[step->graph].context].function[0], parameters);
	cuGraphExecKernelNodeSetParams_v2(
		p->graphs[step->graph].exec, p->graphs[step->graph].first, &node);
}

static void drop_graph(struct player *p, const struct compute_step *step)
{
	uint32_t at = step->graph;

	if (p->graphs[at].exec)
		cuGraphExecDestroy(p->graphs[at].exec);
	p->graphs[at].exec = NULL;
}

static void sleep_in_stream(void *us)
{
	served_sleep((uintptr_t)us * 1000);
}

static void call_host(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);

	cuLaunchHostFunc(stream, sleep_in_stream, (void *)(uintptr_t)step->us);
}

static void record(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);
	CUevent *event = &p->events[step->event];

	cuCtxSetCurrent(place->context);
	if (!*event && cuEventCreate(event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
		*event = NULL;
	cuCtxSetCurrent(p->places[p->ctx].context);
	/* One of another context is made anew the next time. */
	if (*event && cuEventRecord(*event, stream) != CUDA_SUCCESS) {
		cuEventDestroy_v2(*event);
		*event = NULL;
	}
}

static void await_event(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);

	if (p->events[step->event])
		cuStreamWaitEvent(stream, p->events[step->event], 0);
}

static void forget_event(struct player *p, const struct compute_step *step)
{
	uint32_t at = step->event;

	if (p->events[at])
		cuEventDestroy_v2(p->events[at]);
	p->events[at] = NULL;
}

static void synchronize(struct player *p, const struct compute_step *step)
{
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);

	if (step->op == COMPUTE_sync)
		cuStreamSynchronize(stream);
	else if (step->op == COMPUTE_sync_context)
		cuCtxSynchronize();
	else if (p->events[step->event])
		cuEventSynchronize(p->events[step->event]);
}

static void poll(struct player *p, const struct compute_step *step)
{
	uint64_t until_ns = clock_now_ns() + step->us * UINT64_C(1000);
	CUevent event = p->events[step->event];
	struct place *place;
	CUstream stream = stream_of(p, step->stream, &place);

	if (step->op == COMPUTE_poll_event && !event)
		return;
	while (clock_now_ns() < until_ns &&
		(step->op == COMPUTE_poll_event ? cuEventQuery(event) : cuStreamQuery(stream)) ==
			CUDA_ERROR_NOT_READY)
		served_sleep(POLL_NS);
}

static void pause_for(struct player *p, const struct compute_step *step)
{
	served_sleep(step->us * UINT64_C(1000));
}

static void (*const bodies[COMPUTE_OPS])(struct player *p, const struct compute_step *step) = {
#define STEP(name, arguments, weight, habit, body) body,
#include "tests/hunt/compute.def"
#undef STEP
};

static void wait_for_all(struct player *p)
{
	for (unsigned i = 0; i < COMPUTE_CONTEXTS; i++) {
		if (!p->places[i].context)
			continue;
		cuCtxSetCurrent(p->places[i].context);
		cuCtxSynchronize();
	}
	cuCtxSetCurrent(p->places[p->ctx].context);
	p->since_ns = clock_now_ns();
	p->given_ns = 0;
}

static bool is_still(uint64_t since_ns)
{
	return clock_now_ns() < since_ns + STILL_NS;
}

/* A real driver takes so much work and no more, and calls take time. */
static void rest_after_round(struct player *p, uint64_t begun_ns, bool has_given)
{
	if (p->given_ns > clock_now_ns() - p->since_ns + AHEAD_NS)
		wait_for_all(p);
	p->still_rounds = is_still(begun_ns) ? p->still_rounds + 1 : 0;
	if (p->still_rounds == STILL_ROUNDS) {
		p->still_rounds = 0;
		wait_for_all(p);
		has_given = false;
	}
	if (!has_given && is_still(begun_ns))
		served_sleep(MS);
}

void player_play(struct player *p)
{
	p->since_ns = clock_now_ns();
	for (uint32_t i = 0; p->part == 0 || i < p->times; i++) {
		uint64_t begun_ns = clock_now_ns(), given_ns = p->given_ns;

		for (uint32_t k = 0; k < p->program->count; k++)
			if (p->program->steps[k].part == p->part)
				bodies[p->program->steps[k].op](p, &p->program->steps[k]);
		rest_after_round(p, begun_ns, p->given_ns != given_ns);
	}
}

void compute_play(const struct compute_program *p, uint32_t part, uint32_t times)
{
	struct player player = {.program = p, .part = part, .times = times, .is_first = part == 0};

	MUST(cuInit(0));
	player_play(&player);
	exit(0);
}

void compute_play_peer(void)
{
	CUfunction kernel;

	served_begin();
	kernel = served_kernel();
	for (;;)
		served_launch(kernel, NULL, MS);
}
