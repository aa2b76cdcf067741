/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate under threads, linked in instead of preloaded (as stress_tenant.c), so that sanitizers can look at it.
 *
 * Two slices of a device, a process each, take turns. Threads of both give work of every form and wait for it
 * by every way, while the parent changes their limits, suspends them and stops them. No call fails, none
 * waits for ever, and what was served is in the books when all is done.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tenant/slice/state.h"
#include "tests/stress/random.h"
#include "tests/unit/cmocka_ready.h"

#define SLICES	       2
#define THREADS	       4
#define NODES	       5
#define COPY_BYTES     (size_t)(1 << 20)
#define DEADLINE_S     60    /* after its time; a call that waits for ever is found out so */
#define IDLE_US	       15000 /* so that another stream may take its place */
#define CHANGE_US      20000
#define LEAST_LAUNCHES 100
#define STOP_US	       60000 /* longer than a turn is announced */

extern cuInit_fn cuInit;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuCtxSynchronize_fn cuCtxSynchronize;
extern cuModuleLoadData_fn cuModuleLoadData;
extern cuModuleGetFunction_fn cuModuleGetFunction;
extern cuLaunchKernel_fn cuLaunchKernel;
extern cuGraphLaunch_fn cuGraphLaunch;
extern cuGraphInstantiateWithFlags_fn cuGraphInstantiateWithFlags;
extern cuGraphExecDestroy_fn cuGraphExecDestroy;
extern cuStreamBeginCapture_v2_fn cuStreamBeginCapture_v2;
extern cuStreamEndCapture_fn cuStreamEndCapture;
extern cuStreamCreate_fn cuStreamCreate;
extern cuStreamDestroy_v2_fn cuStreamDestroy_v2;
extern cuStreamSynchronize_fn cuStreamSynchronize;
extern cuStreamQuery_fn cuStreamQuery;
extern cuEventCreate_fn cuEventCreate;
extern cuEventRecord_fn cuEventRecord;
extern cuEventSynchronize_fn cuEventSynchronize;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemsetD8Async_fn cuMemsetD8Async;
extern cuMemcpyDtoDAsync_v2_fn cuMemcpyDtoDAsync_v2;

static const char text[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			   ".visible .entry busy(\n\t.param .u64 duration_ns\n)\n{ ret; }\n";
static char folder[256];
static CUcontext context;
static CUfunction function;

struct worker {
	pthread_t thread;
	struct random random;
	uint64_t until_ns;
	CUstream stream;
	CUevent event;
	CUdeviceptr from, to; /* of COPY_BYTES each */
	unsigned depth;	      /* pieces since the last wait */
	const char *fault;
};

static void check(struct worker *w, CUresult r, const char *what)
{
	if (r != CUDA_SUCCESS && !w->fault)
		w->fault = what;
}

static void launch(struct worker *w, CUstream stream)
{
	uint64_t duration_ns = 5000u << random_below(&w->random, 6);
	void *params[] = {&duration_ns};
	unsigned grid = 1 + random_below(&w->random, 3);

	check(w, cuLaunchKernel(function, grid, 1, 1, 1, 1, 1, 0, stream, params, NULL), "launch");
}

static void wait_for_all(struct worker *w)
{
	w->depth = 0;
	switch (random_below(&w->random, 4)) {
	case 0:
		check(w, cuCtxSynchronize(), "cuCtxSynchronize");
		break;
	case 1:
		check(w, cuEventRecord(w->event, w->stream), "cuEventRecord");
		check(w, cuEventSynchronize(w->event), "cuEventSynchronize");
		break;
	case 2:
		while (cuStreamQuery(w->stream) == CUDA_ERROR_NOT_READY)
			usleep(50);
		break;
	default:
		check(w, cuStreamSynchronize(w->stream), "cuStreamSynchronize");
	}
}

/* A stream that ends with its work under way. */
static void change_stream(struct worker *w)
{
	check(w, cuStreamDestroy_v2(w->stream), "cuStreamDestroy");
	check(w, cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void graph(struct worker *w)
{
	CUgraphExec exec;
	CUgraph made;

	check(w, cuStreamBeginCapture_v2(w->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
		"capture");
	for (unsigned i = 0; i < NODES; i++)
		launch(w, w->stream);
	check(w, cuStreamEndCapture(w->stream, &made), "cuStreamEndCapture");
	if (w->fault)
		return;
	check(w, cuGraphInstantiateWithFlags(&exec, made, 0), "cuGraphInstantiate");
	for (unsigned i = 0; i < 3 && !w->fault; i++)
		check(w, cuGraphLaunch(exec, w->stream), "cuGraphLaunch");
	check(w, cuStreamSynchronize(w->stream), "cuStreamSynchronize");
	check(w, cuGraphExecDestroy(exec), "cuGraphExecDestroy");
}

static void give(struct worker *w)
{
	switch (random_below(&w->random, 16)) {
	case 0:
		launch(w, NULL);
		break;
	case 1:
		check(w, cuMemsetD8Async(w->from, 7, COPY_BYTES, w->stream), "cuMemsetD8Async");
		break;
	case 2:
		check(w, cuMemcpyDtoDAsync_v2(w->to, w->from, COPY_BYTES, w->stream),
			"cuMemcpyDtoDAsync");
		break;
	case 3:
		graph(w);
		break;
	case 4:
		change_stream(w);
		break;
	case 5:
		usleep(random_below(&w->random, 8) ? 200 : IDLE_US);
		break;
	default:
		launch(w, w->stream);
	}
	if (++w->depth >= 64 || random_below(&w->random, 12) == 0)
		wait_for_all(w);
}

/* On a busy machine; it goes on for at most so long. */
static bool has_done_little(const struct worker *w)
{
	return atomic_load(&state.region.file->own.compute[0].launches) < LEAST_LAUNCHES &&
	       clock_now_ns() < w->until_ns + DEADLINE_S / 2 * UINT64_C(1000000000);
}

static void *work(void *argument)
{
	struct worker *w = argument;

	check(w, cuCtxSetCurrent(context), "cuCtxSetCurrent");
	check(w, cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	check(w, cuEventCreate(&w->event, CU_EVENT_DEFAULT), "cuEventCreate");
	check(w, cuMemAlloc_v2(&w->from, COPY_BYTES), "cuMemAlloc");
	check(w, cuMemAlloc_v2(&w->to, COPY_BYTES), "cuMemAlloc");
	while (!w->fault && (clock_now_ns() < w->until_ns || has_done_little(w)))
		give(w);
	check(w, cuStreamSynchronize(w->stream), "cuStreamSynchronize");
	return NULL;
}

/* A slice's process, for so long from when it tells READY that the library takes signals; its exit status says whether
 * a call failed. */
static int live(unsigned slice, uint64_t seed, unsigned duration_s, int ready)
{
	static struct worker workers[THREADS];
	const struct region_compute *books;
	CUmodule module;
	uint64_t until_ns;
	int failed = 0;

	alarm(duration_s + DEADLINE_S);
	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
		cuModuleLoadData(&module, text) || cuModuleGetFunction(&function, module, "busy"))
		return 2;
	until_ns = clock_now_ns() + duration_s * UINT64_C(1000000000);
	if (write(ready, "", 1) != 1)
		return 2;
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].random = random_stream(seed, slice * THREADS + i);
		workers[i].until_ns = until_ns;
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			return 2;
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		if (workers[i].fault)
			fprintf(stderr, "slice %u: %s failed\n", slice, workers[i].fault);
		failed |= workers[i].fault != NULL;
	}
	if (cuCtxSynchronize() != CUDA_SUCCESS)
		return 2;
	books = &state.region.file->own.compute[0];
	printf("slice %u: %llu launches, %llu ms\n", slice,
		(unsigned long long)atomic_load(&books->launches),
		(unsigned long long)atomic_load(&books->busy_ns) / 1000000);
	fflush(stdout);
	if (atomic_load(&books->launches) < LEAST_LAUNCHES ||
		atomic_load(&books->busy_ns) < 1000000)
		return 3;
	return failed;
}

static void write_share(unsigned slice, const char *lines, unsigned cores, unsigned cap)
{
	char path[300], next[310];
	FILE *file;

	snprintf(path, sizeof(path), "%s/share%u", folder, slice);
	snprintf(next, sizeof(next), "%s.next", path);
	file = fopen(next, "w");
	assert_non_null(file);
	fprintf(file, "vgpu-share 1\nslice s%u\nregion %s/region%u\nturns %s/turns\n%s", slice,
		folder, slice, folder, lines);
	fprintf(file, "device * memory 4g cores %u cap %u\nend\n", cores, cap);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(next, path), 0);
}

/* Comes back when the process is ready, or has ended. */
static pid_t start(unsigned slice, uint64_t seed, unsigned duration_s)
{
	char path[300];
	int ready[2];
	pid_t pid;

	write_share(slice, "", 30, 60);
	snprintf(path, sizeof(path), "%s/share%u", folder, slice);
	assert_int_equal(pipe(ready), 0);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setenv("VGPU_SHARE", path, 1);
		_exit(live(slice, seed, duration_s, ready[1]));
	}
	close(ready[1]);
	assert_true(read(ready[0], path, 1) >= 0);
	close(ready[0]);
	return pid;
}

static void disturb(struct random *random, const pid_t *pids)
{
	static const char *const lines[] = {
		"", "", "", "suspended\n", "priority 0\n", "priority 5\n"};
	unsigned slice = random_below(random, SLICES), cores = 5 + random_below(random, 60);

	switch (random_below(random, 8)) {
	case 0:
		kill(pids[slice], SIGSTOP);
		usleep(random_below(random, STOP_US));
		kill(pids[slice], SIGCONT);
		break;
	case 1:
		kill(pids[slice], random_below(random, 2) ? SIGUSR2 : SIGUSR1);
		break;
	default:
		write_share(slice, lines[random_below(random, ARRAY_SIZE(lines))], cores,
			cores + random_below(random, 101 - cores));
	}
}

static void threads_of_two_slices_work_while_their_limits_change(void **unused)
{
	const char *seconds = getenv("STRESS_SECONDS");
	unsigned duration_s = seconds ? (unsigned)strtoul(seconds, NULL, 10) : 4;
	uint64_t seed = random_seed(), until_ns;
	struct random random = random_stream(seed, 99);
	pid_t pids[SLICES];
	int status[SLICES];

	for (unsigned i = 0; i < SLICES; i++) {
		pids[i] = start(i, seed, duration_s);
		assert_true(pids[i] > 0);
	}
	until_ns = clock_now_ns() + duration_s * UINT64_C(1000000000);
	while (clock_now_ns() < until_ns) {
		usleep(CHANGE_US);
		disturb(&random, pids);
	}
	for (unsigned i = 0; i < SLICES; i++) {
		write_share(i, "", 50, 100);
		kill(pids[i], SIGUSR1);
	}
	for (unsigned i = 0; i < SLICES; i++)
		assert_int_equal(waitpid(pids[i], &status[i], 0), pids[i]);
	for (unsigned i = 0; i < SLICES; i++)
		assert_int_equal(status[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_of_two_slices_work_while_their_limits_change),
	};
	char command[300], path[300];
	const char *parent = getenv("TMPDIR");
	int failed;

	snprintf(folder, sizeof(folder), "%s/stress-gate-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/machine", folder);
	setenv("VGPU_SIM_STATE", path, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) != 0 || failed;
}
