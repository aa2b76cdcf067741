/* SPDX-License-Identifier: Apache-2.0 */
/* The client's word for work: as much as the driver takes, in every form, for a time. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/tenant/client.h"

#define STREAMS_MOST 8
#define THREADS_MOST 8
#define GRAPH_NODES  10
#define FORK_EACH    32 /* pieces of work */
#define HIDE_EACH    70
#define HOST_EACH    15	  /* pieces, and then the host is busy for a while */
#define HIDDEN_TIMES 1000 /* as long as the others */

struct job {
	struct client *c;
	const char *form;
	uint64_t duration_ns, size_bytes; /* of a piece: a kernel's, a copy's */
	uint64_t until_ns, count, each, ahead, host_us;
	unsigned stream_count, thread_count;
	bool does_synchronize, does_poll, does_poll_event, does_fork, is_idle_between, does_hide,
		does_leave;
	CUcontext context;
	CUfunction function;
	CUstream streams[STREAMS_MOST];
	CUgraphExec graph;
	CUdeviceptr from, to;
	CUevent ahead_events[2];
};

/* Functions that are not in the doors' table are found once. */
#define FUNCTION(name)       \
	static name##_fn *f; \
	if (!f)              \
	f = (name##_fn *)client_find(#name)

static CUresult load(struct client *c, CUfunction *ret_function)
{
	static const char text[] =
		".version 7.0\n.target sm_70\n.address_size 64\n"
		".visible .entry busy(\n\t.param .u64 duration_ns\n)\n{ ret; }\n";
	CUmodule module;
	CUresult r = c->cu.cuModuleLoadData(&module, text);

	return r == CUDA_SUCCESS ? c->cu.cuModuleGetFunction(ret_function, module, "busy") : r;
}

static CUresult launch(struct job *j, CUstream stream)
{
	void *params[] = {&j->duration_ns};

	return j->c->cu.cuLaunchKernel(j->function, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

/* Each of the first eighty by another size of the grid, and so of another kind. */
static CUresult launch_kinds(struct job *j, CUstream stream)
{
	static unsigned count;
	unsigned i = count++ % 80;
	void *params[] = {&j->duration_ns};

	return j->c->cu.cuLaunchKernel(
		j->function, (4 + i % 4) << i / 4, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

static CUresult launch_ex(struct job *j, CUstream stream)
{
	CUlaunchConfig config = {.gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream};
	void *params[] = {&j->duration_ns};
	FUNCTION(cuLaunchKernelEx);

	return f(&config, j->function, params, NULL);
}

static CUresult launch_cooperative(struct job *j, CUstream stream)
{
	void *params[] = {&j->duration_ns};
	FUNCTION(cuLaunchCooperativeKernel);

	return f(j->function, 1, 1, 1, 1, 1, 1, 0, stream, params);
}

static CUresult launch_old(struct job *j, CUstream stream)
{
	static bool is_prepared;
	FUNCTION(cuLaunchGridAsync);

	if (!is_prepared) {
		((cuFuncSetBlockShape_fn *)client_find("cuFuncSetBlockShape"))(
			j->function, 1, 1, 1);
		((cuParamSetSize_fn *)client_find("cuParamSetSize"))(j->function, 8);
		((cuParamSetv_fn *)client_find("cuParamSetv"))(j->function, 0, &j->duration_ns, 8);
		is_prepared = true;
	}
	return f(j->function, 1, 1, stream);
}

static CUresult launch_graph(struct job *j, CUstream stream)
{
	return j->c->cu.cuGraphLaunch(j->graph, stream);
}

static CUresult fill(struct job *j, CUstream stream)
{
	FUNCTION(cuMemsetD8Async);

	return f(j->to, 7, j->size_bytes, stream);
}

static CUresult copy(struct job *j, CUstream stream)
{
	FUNCTION(cuMemcpyDtoDAsync_v2);

	return f(j->to, j->from, j->size_bytes, stream);
}

/* A stream of its own, which is destroyed with its work under way. */
static CUresult launch_and_destroy(struct job *j, CUstream stream)
{
	CUstream own;
	CUresult r = j->c->cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING);

	for (unsigned i = 0; i < 3 && r == CUDA_SUCCESS; i++)
		r = launch(j, own);
	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuStreamDestroy_v2(own);
	return r;
}

/* A context of its own, with work in it that is done before it is destroyed. */
static CUresult launch_in_context(struct job *j, CUstream stream)
{
	struct job own = *j;
	CUresult r = j->c->cu.cuCtxCreate_v2(&own.context, 0, j->c->device);

	if (r != CUDA_SUCCESS)
		return r;
	r = load(j->c, &own.function);
	for (unsigned i = 0; i < 20 && r == CUDA_SUCCESS; i++)
		r = launch(&own, NULL);
	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuCtxSynchronize();
	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuCtxDestroy_v2(own.context);
	j->c->cu.cuCtxSetCurrent(j->context);
	return r;
}

static const struct form {
	const char *name;
	CUresult (*give)(struct job *j, CUstream stream);
} forms[] = {
	{"launch", launch},
	{"kinds", launch_kinds},
	{"ex", launch_ex},
	{"coop", launch_cooperative},
	{"old", launch_old},
	{"graph", launch_graph},
	{"far", launch_graph},
	{"fill", fill},
	{"copy", copy},
	{"destroy", launch_and_destroy},
	{"context", launch_in_context},
};

static CUresult prepare_graph(struct job *j)
{
	CUgraph graph;
	CUstream stream;
	CUresult r = j->c->cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);

	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
	for (unsigned i = 0; i < GRAPH_NODES && r == CUDA_SUCCESS; i++)
		r = launch(j, stream);
	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuStreamEndCapture(stream, &graph);
	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuGraphInstantiateWithFlags(&j->graph, graph, 0);
	return r;
}

/* Graphs in streams of the other device, which fill memory of this one. */
static CUresult prepare_far(struct job *j)
{
	CUDA_MEMSET_NODE_PARAMS_v1 params = {
		.dst = j->to, .elementSize = 1, .width = j->size_bytes, .height = 1};
	CUcontext own = j->context;
	CUgraphNode node;
	CUgraph graph;
	CUresult r = j->c->cu.cuCtxCreate_v2(&j->context, 0, 1 - j->c->device);
	FUNCTION(cuGraphAddMemsetNode);

	for (unsigned i = 0; i < j->stream_count && r == CUDA_SUCCESS; i++)
		r = j->c->cu.cuStreamCreate(&j->streams[i], CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS)
		r = j->c->cu.cuGraphCreate(&graph, 0);
	if (r == CUDA_SUCCESS)
		r = f(&node, graph, NULL, 0, &params, own);
	return r == CUDA_SUCCESS ? j->c->cu.cuGraphInstantiateWithFlags(&j->graph, graph, 0) : r;
}

static CUresult prepare(struct job *j)
{
	CUresult r = j->c->cu.cuCtxGetCurrent(&j->context);

	if (r == CUDA_SUCCESS)
		r = load(j->c, &j->function);
	for (unsigned i = 0; i < j->stream_count && r == CUDA_SUCCESS; i++)
		r = j->c->cu.cuStreamCreate(&j->streams[i], CU_STREAM_NON_BLOCKING);
	if (r == CUDA_SUCCESS && j->size_bytes)
		r = j->c->cu.cuMemAlloc_v2(&j->from, j->size_bytes);
	if (r == CUDA_SUCCESS && j->size_bytes)
		r = j->c->cu.cuMemAlloc_v2(&j->to, j->size_bytes);
	if (r == CUDA_SUCCESS && strcmp(j->form, "graph") == 0)
		r = prepare_graph(j);
	if (r == CUDA_SUCCESS && strcmp(j->form, "far") == 0)
		r = prepare_far(j);
	return r;
}

static CUresult poll_stream(CUstream stream)
{
	CUresult r;
	FUNCTION(cuStreamQuery);

	while ((r = f(stream)) == CUDA_ERROR_NOT_READY)
		usleep(20);
	return r;
}

static CUresult poll_event(CUstream stream)
{
	static CUevent event;
	CUresult r = CUDA_SUCCESS;
	FUNCTION(cuEventQuery);

	if (!event)
		r = ((cuEventCreate_fn *)client_find("cuEventCreate"))(&event, CU_EVENT_DEFAULT);
	if (r == CUDA_SUCCESS)
		r = ((cuEventRecord_fn *)client_find("cuEventRecord"))(event, stream);
	if (r != CUDA_SUCCESS)
		return r;
	while ((r = f(event)) == CUDA_ERROR_NOT_READY)
		usleep(20);
	return r;
}

/* So many pieces are under way, and up to as many more behind them: a program that never lets the device idle. */
static CUresult keep_ahead(struct job *j, CUstream stream, uint64_t i)
{
	CUevent *next = &j->ahead_events[i / j->ahead % 2];
	CUevent *last = &j->ahead_events[(i / j->ahead + 1) % 2];
	CUresult r = CUDA_SUCCESS;
	FUNCTION(cuEventRecord);

	if (!*next)
		r = ((cuEventCreate_fn *)client_find("cuEventCreate"))(next, CU_EVENT_DEFAULT);
	if (r == CUDA_SUCCESS)
		r = f(*next, stream);
	if (r == CUDA_SUCCESS && *last)
		r = ((cuEventSynchronize_fn *)client_find("cuEventSynchronize"))(*last);
	return r;
}

/* As a child may begin: whatever is answered, it must be answered. */
static void live_as_child(struct job *j, uint64_t number)
{
	alarm(60);
	if (number % 3 == 0)
		launch(j, NULL);
	else if (number % 3 == 1)
		j->c->cu.cuStreamSynchronize(j->streams[0]);
	else
		j->c->cu.cuStreamDestroy_v2(j->streams[0]);
	launch(j, NULL);
	_exit(0);
}

static CUresult fork_once(struct job *j, uint64_t number)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0)
		live_as_child(j, number);
	if (child < 0 || waitpid(child, &status, 0) != child || status == 0)
		return child < 0 ? (CUresult)CLIENT_FAILED : CUDA_SUCCESS;
	client_say(j->c, " child=%d", status);
	return (CUresult)CLIENT_FAILED;
}

/* The last piece before a pause is much longer, and nobody is asked when it ends. */
static CUresult hide(struct job *j, const struct form *form, CUstream stream)
{
	struct job hidden = *j;
	CUresult r;

	hidden.duration_ns *= HIDDEN_TIMES;
	r = form->give(&hidden, stream);
	usleep((useconds_t)(hidden.duration_ns / 1000 + 1000));
	return r;
}

static CUresult rest_after(struct job *j, CUstream stream, uint64_t i)
{
	CUresult r = CUDA_SUCCESS;

	if (j->does_synchronize || (j->each && i % j->each == j->each - 1))
		r = j->c->cu.cuStreamSynchronize(stream);
	if (j->ahead && i % j->ahead == j->ahead - 1)
		r = keep_ahead(j, stream, i);
	if (j->does_poll)
		r = poll_stream(stream);
	if (j->does_poll_event)
		r = poll_event(stream);
	if (j->does_fork && i % FORK_EACH == FORK_EACH - 1)
		r = fork_once(j, i / FORK_EACH);
	if (j->host_us && i % HOST_EACH == HOST_EACH - 1)
		usleep((useconds_t)j->host_us);
	if (j->is_idle_between)
		usleep((useconds_t)(j->duration_ns * 2 / 1000));
	return r;
}

static CUresult work(struct job *j)
{
	const struct form *form = forms;
	CUresult r = CUDA_SUCCESS;

	while (strcmp(form->name, j->form) != 0)
		form++;
	for (uint64_t i = 0; r == CUDA_SUCCESS && i < j->count && clock_now_ns() < j->until_ns;
		i++) {
		CUstream stream = j->stream_count ? j->streams[i % j->stream_count] : NULL;

		r = form->give(j, stream);
		if (r == CUDA_SUCCESS)
			r = rest_after(j, stream, i);
		if (r == CUDA_SUCCESS && j->does_hide && i % HIDE_EACH == HIDE_EACH - 1)
			r = hide(j, form, stream);
	}
	return r;
}

static void *work_as_thread(void *argument)
{
	struct job *j = argument;

	j->c->cu.cuCtxSetCurrent(j->context);
	return (void *)(uintptr_t)work(j);
}

/* Each with a stream of its own. */
static CUresult work_in_threads(struct job *j)
{
	struct job jobs[THREADS_MOST];
	pthread_t threads[THREADS_MOST];
	uintptr_t r = CUDA_SUCCESS;
	void *result;

	for (unsigned i = 0; i < j->thread_count; i++) {
		jobs[i] = *j;
		if (j->stream_count) {
			jobs[i].streams[0] = j->streams[i % j->stream_count];
			jobs[i].stream_count = 1;
		}
		if (pthread_create(&threads[i], NULL, work_as_thread, &jobs[i]))
			exit(71);
	}
	for (unsigned i = 0; i < j->thread_count; i++) {
		pthread_join(threads[i], &result);
		r = r ? r : (uintptr_t)result;
	}
	return (CUresult)r;
}

static bool read_word(struct job *j, const char *word)
{
	if (strcmp(word, "sync") == 0)
		j->does_synchronize = true;
	else if (strcmp(word, "poll") == 0)
		j->does_poll = true;
	else if (strcmp(word, "event") == 0)
		j->does_poll_event = true;
	else if (strcmp(word, "fork") == 0)
		j->does_fork = true;
	else if (strcmp(word, "idle") == 0)
		j->is_idle_between = true;
	else if (strcmp(word, "hide") == 0)
		j->does_hide = true;
	else if (strcmp(word, "leave") == 0)
		j->does_leave = true;
	else if (strncmp(word, "streams=", 8) == 0)
		j->stream_count = (unsigned)client_size(word + 8);
	else if (strncmp(word, "threads=", 8) == 0)
		j->thread_count = (unsigned)client_size(word + 8);
	else if (strncmp(word, "count=", 6) == 0)
		j->count = client_size(word + 6);
	else if (strncmp(word, "each=", 5) == 0)
		j->each = client_size(word + 5);
	else if (strncmp(word, "ahead=", 6) == 0)
		j->ahead = client_size(word + 6);
	else if (strncmp(word, "host=", 5) == 0)
		j->host_us = client_size(word + 5);
	else if (strncmp(word, "ms=", 3) == 0)
		j->until_ns = clock_now_ns() + client_size(word + 3) * 1000000;
	else if (strncmp(word, "bytes=", 6) == 0)
		j->size_bytes = client_size(word + 6);
	else
		return false;
	return j->stream_count <= STREAMS_MOST && j->thread_count <= THREADS_MOST;
}

/*
 * compute FORM MICROSECONDS [OPTION]...: gives pieces of work that take so long, for a minute or as the
 * options say, and waits for the last of them, unless it is to leave them.
 */
static int run_compute(struct client *c, char **word, unsigned count)
{
	struct job j = {.c = c,
		.form = word[1],
		.duration_ns = client_size(word[2]) * 1000,
		.count = UINT64_MAX,
		.until_ns = clock_now_ns() + UINT64_C(60000000000)};
	unsigned known = 0;
	CUresult r;

	for (unsigned i = 3; i < count; i++)
		if (!read_word(&j, word[i]))
			return CLIENT_BAD_COMMAND;
	for (unsigned i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		known += strcmp(forms[i].name, j.form) == 0;
	if (!known)
		return CLIENT_BAD_COMMAND;
	r = prepare(&j);
	if (r == CUDA_SUCCESS)
		r = j.thread_count ? work_in_threads(&j) : work(&j);
	return (int)(r == CUDA_SUCCESS && !j.does_leave ? c->cu.cuCtxSynchronize() : r);
}

const struct client_command client_compute_commands[] = {
	{"compute", 2, run_compute,
		"FORM MICROSECONDS [sync|poll|event|fork|idle|leave] [each=N] [ahead=N] "
		"[streams=N] "
		"[threads=N] "
		"[count=N] "
		"[ms=N] [bytes=SIZE]"},
	{0},
};
