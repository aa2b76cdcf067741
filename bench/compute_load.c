/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process that keeps a device busy with kernels of a known duration, and says what it got of it,
 * as one line of JSON. Run by bench/compute.py, on a real card and on the simulated node.
 *
 *	compute-load [OPTION=VALUE]...
 *	shape=stream		stream, streams4, graph, coop, sync, periodic, calibrate, cost
 *	duration_us=200		of a kernel
 *	blocks=0		of a kernel; 0: one for each multiprocessor
 *	rate=0			kernels count this many turns a µs (of calibrate) instead of looking at the
 *				time; so what a kernel does stays the same where the device leaves it
 *	graph=20		kernels in a graph
 *	burst=20 period_us=5000	of shape=periodic: kernels, and time from burst to burst
 *	ahead_us=20000		how much work is given to the device beforehand
 *	seconds=3		how long
 *	bin_us=1000		how fine the line tells when kernels ran
 *	wait=FILE		says "ready", then waits until the file is there; it holds the time of
 *				CLOCK_MONOTONIC to begin at, in ns
 *
 * On a card each kernel notes when it ran. On the simulated node no code runs: there it is as long as
 * the kernel takes, before the process saw it done.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/direct.h"
#include "bench/load_kernel.h"
#include "bench/load_report.h"
#include "gpu/abi/cuda.h"

extern cuInit_fn cuInit;
extern cuDeviceGetAttribute_fn cuDeviceGetAttribute;
extern cuDevicePrimaryCtxRetain_fn cuDevicePrimaryCtxRetain;
extern cuCtxSetCurrent_fn cuCtxSetCurrent;
extern cuCtxSynchronize_fn cuCtxSynchronize;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemcpyHtoD_v2_fn cuMemcpyHtoD_v2;
extern cuMemcpyDtoH_v2_fn cuMemcpyDtoH_v2;
extern cuModuleLoadData_fn cuModuleLoadData;
extern cuModuleGetFunction_fn cuModuleGetFunction;
extern cuLaunchKernel_fn cuLaunchKernel;
extern cuLaunchCooperativeKernel_fn cuLaunchCooperativeKernel;
extern cuStreamCreate_fn cuStreamCreate;
extern cuStreamSynchronize_fn cuStreamSynchronize;
extern cuStreamBeginCapture_v2_fn cuStreamBeginCapture_v2;
extern cuStreamEndCapture_fn cuStreamEndCapture;
extern cuGraphInstantiateWithFlags_fn cuGraphInstantiateWithFlags;
extern cuGraphLaunch_fn cuGraphLaunch;
extern cuEventCreate_fn cuEventCreate;
extern cuEventRecord_fn cuEventRecord;
extern cuEventSynchronize_fn cuEventSynchronize;

#define NS_PER_US	1000u
#define NS_PER_SECOND	1000000000u
#define STREAMS		4
#define RECORDS		(1u << 21) /* 10 s of four streams with kernels of 20 µs */
#define GROUPS_MOST	8	   /* events that are waited for, at most */
#define GROUP_MOST	64	   /* launches between two events, at most */
#define TRIES		20	   /* to tell the device's clock from ours */
#define CALIBRATE_LOOPS 2000000u   /* some ms */
#define COST_LAUNCHES	500	   /* fewer than a stream queues before a launch waits for room */
#define POLL_NS		200000
#define WAIT_S		120 /* until the file to wait for must be there */

enum shape { STREAM, STREAMS4, GRAPH, COOP, SYNC, PERIODIC, CALIBRATE, COST };

static const char *const shape_names[] = {
	"stream", "streams4", "graph", "coop", "sync", "periodic", "calibrate", "cost"};

static struct {
	enum shape shape;
	uint64_t duration_us, blocks, graph, burst, period_us, ahead_us, bin_us;
	double rate, seconds;
	const char *wait;
} option = {.duration_us = 200,
	.graph = 20,
	.burst = 20,
	.period_us = 5000,
	.ahead_us = 20000,
	.bin_us = 1000,
	.seconds = 3};

/* Some launches of one stream with an event behind them. */
struct group {
	CUevent event;
	unsigned stream;
	unsigned kernels; /* 0: not in use */
	uint64_t given_ns;
};

static CUfunction spin, nothing;
static CUdeviceptr records;
static CUstream streams[STREAMS];
static CUgraphExec graph;
static uint64_t launches, first_launch_ns;
static uint64_t seen_ns[STREAMS]; /* when the stream's last group was seen done */
static struct load_spans spans;
static struct load_times waits, latencies;

static void need(CUresult r, const char *what)
{
	if (r == CUDA_SUCCESS)
		return;
	fprintf(stderr, "compute-load: %s: error %d\n", what, (int)r);
	exit(1);
}

static void wait_until(uint64_t at_ns)
{
	struct timespec at = {(time_t)(at_ns / NS_PER_SECOND), (long)(at_ns % NS_PER_SECOND)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void launch(CUstream stream, uint64_t duration_ns, uint64_t loops, unsigned blocks)
{
	uint32_t mask = RECORDS - 1;
	void *params[] = {&duration_ns, &loops, &records, &mask};

	if (option.shape == COOP)
		need(cuLaunchCooperativeKernel(spin, blocks, 1, 1, 1, 1, 1, 0, stream, params),
			"cuLaunchCooperativeKernel");
	else
		need(cuLaunchKernel(spin, blocks, 1, 1, 1, 1, 1, 0, stream, params, NULL),
			"cuLaunchKernel");
}

static void launch_one(CUstream stream)
{
	launch(stream, option.duration_us * NS_PER_US,
		(uint64_t)(option.rate * (double)option.duration_us), (unsigned)option.blocks);
}

/* One call as the shape has it, and how long it took. Returns the count of kernels. */
static unsigned launch_shape(CUstream stream)
{
	uint64_t start_ns = clock_now_ns();
	unsigned kernels = 1;

	if (first_launch_ns == 0)
		first_launch_ns = start_ns;
	if (option.shape == GRAPH) {
		need(cuGraphLaunch(graph, stream), "cuGraphLaunch");
		kernels = (unsigned)option.graph;
	} else {
		launch_one(stream);
	}
	load_times_add(&waits, clock_now_ns() - start_ns);
	launches++;
	return kernels;
}

static void prepare_graph(void)
{
	CUgraph captured;

	need(cuStreamBeginCapture_v2(streams[0], CU_STREAM_CAPTURE_MODE_GLOBAL),
		"cuStreamBeginCapture");
	for (uint64_t i = 0; i < option.graph; i++)
		launch_one(streams[0]);
	need(cuStreamEndCapture(streams[0], &captured), "cuStreamEndCapture");
	need(cuGraphInstantiateWithFlags(&graph, captured, 0), "cuGraphInstantiate");
}

static void prepare(void)
{
	static const struct load_head head;
	CUcontext context;
	CUmodule module;
	int blocks;

	need(cuInit(0), "cuInit");
	need(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	need(cuDeviceGetAttribute(&blocks, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
		"cuDeviceGetAttribute");
	if (option.blocks == 0)
		option.blocks = (uint64_t)blocks;
	need(cuModuleLoadData(&module, load_kernel), "cuModuleLoadData");
	need(cuModuleGetFunction(&spin, module, "spin"), "cuModuleGetFunction");
	need(cuModuleGetFunction(&nothing, module, "nothing"), "cuModuleGetFunction");
	need(cuMemAlloc_v2(
		     &records, sizeof(struct load_head) + RECORDS * sizeof(struct load_record)),
		"cuMemAlloc");
	need(cuMemcpyHtoD_v2(records, &head, sizeof(head)), "cuMemcpyHtoD");
	for (unsigned i = 0; i < STREAMS; i++)
		need(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
	if (option.shape == GRAPH)
		prepare_graph();
}

static uint32_t count_records(void)
{
	uint32_t count;

	need(cuMemcpyDtoH_v2(&count, records, sizeof(count)), "cuMemcpyDtoH");
	return count;
}

static struct load_record read_record(uint32_t index)
{
	struct load_record record;

	need(cuMemcpyDtoH_v2(&record, records + sizeof(struct load_head) + index * sizeof(record),
		     sizeof(record)),
		"cuMemcpyDtoH");
	return record;
}

/*
 * What is to be added to the device's time for ours: of the try that the fewest ns lie around. Returns
 * false where no code runs. The kernels do nothing, so whoever limits the process need not slow them.
 */
static bool compare_clocks(int64_t *ret_offset_ns)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t before_ns = clock_now_ns(), around_ns;
		struct load_record record;

		launch(streams[0], 0, 0, 1);
		need(cuStreamSynchronize(streams[0]), "cuStreamSynchronize");
		around_ns = clock_now_ns() - before_ns;
		if (count_records() == 0)
			return false;
		record = read_record(i);
		if (around_ns < least_ns) {
			least_ns = around_ns;
			*ret_offset_ns = (int64_t)(before_ns + around_ns / 2 - record.start_ns);
		}
	}
	return true;
}

static uint64_t wait_to_begin(void)
{
	uint64_t deadline_ns = clock_now_ns() + (uint64_t)WAIT_S * NS_PER_SECOND, start_ns;
	char text[32];
	FILE *file;

	if (option.wait == NULL)
		return clock_now_ns();
	printf("ready\n");
	fflush(stdout);
	while ((file = fopen(option.wait, "r")) == NULL) {
		if (clock_now_ns() > deadline_ns) {
			fprintf(stderr, "compute-load: there is no %s\n", option.wait);
			exit(1);
		}
		wait_until(clock_now_ns() + POLL_NS);
	}
	start_ns = fgets(text, sizeof(text), file) != NULL ? strtoull(text, NULL, 10) : 0;
	fclose(file);
	wait_until(start_ns);
	return start_ns;
}

/* Waits for the group, and takes it that its kernels ran just before. */
static void finish(struct group *group)
{
	uint64_t now_ns, start_ns;

	if (group->kernels == 0)
		return;
	need(cuEventSynchronize(group->event), "cuEventSynchronize");
	now_ns = clock_now_ns();
	start_ns = now_ns - group->kernels * option.duration_us * NS_PER_US;
	if (start_ns < seen_ns[group->stream])
		start_ns = seen_ns[group->stream];
	if (start_ns < group->given_ns)
		start_ns = group->given_ns;
	load_spans_add(&spans, start_ns, now_ns, group->kernels);
	seen_ns[group->stream] = now_ns;
	group->kernels = 0;
}

/* Keeps the device supplied, some groups of launches ahead, until the time has come. */
static void run_ahead(uint64_t end_ns)
{
	struct group groups[GROUPS_MOST] = {{.kernels = 0}};
	uint64_t each_us = option.duration_us * (option.shape == GRAPH ? option.graph : 1);
	uint64_t size = option.ahead_us / (each_us > 0 ? each_us : 1) / GROUPS_MOST;
	unsigned wide = option.shape == STREAMS4 ? STREAMS : 1;
	uint64_t depth;

	size = size < 1 ? 1 : size > GROUP_MOST ? GROUP_MOST : size;
	depth = option.ahead_us / (each_us * size + 1);
	depth = depth < 2 ? 2 : depth > GROUPS_MOST ? GROUPS_MOST : depth;
	if (depth < 2 * wide)
		depth = 2 * wide;
	for (uint64_t i = 0; i < depth; i++)
		need(cuEventCreate(
			     &groups[i].event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
			"cuEventCreate");
	for (uint64_t i = 0; clock_now_ns() < end_ns; i++) {
		struct group *group = &groups[i % depth];

		finish(group);
		group->stream = (unsigned)(i % wide);
		group->given_ns = clock_now_ns();
		for (uint64_t j = 0; j < size && clock_now_ns() < end_ns; j++)
			group->kernels += launch_shape(streams[group->stream]);
		need(cuEventRecord(group->event, streams[group->stream]), "cuEventRecord");
	}
	for (uint64_t i = 0; i < depth; i++)
		finish(&groups[i]);
}

/* Some kernels, then waits for them: at once again, or when the period has passed. */
static void run_bursts(uint64_t start_ns, uint64_t end_ns, uint64_t burst, uint64_t period_ns)
{
	uint64_t next_ns = start_ns;

	while (clock_now_ns() < end_ns) {
		uint64_t begin_ns, done_ns;

		wait_until(next_ns);
		begin_ns = clock_now_ns();
		for (uint64_t i = 0; i < burst; i++)
			launch_shape(streams[0]);
		need(cuStreamSynchronize(streams[0]), "cuStreamSynchronize");
		done_ns = clock_now_ns();
		load_times_add(&latencies, done_ns - begin_ns);
		load_spans_add(&spans, begin_ns, done_ns, (unsigned)burst);
		next_ns += period_ns;
		if (next_ns < done_ns)
			next_ns = done_ns;
	}
}

/* Takes the device's own word for when kernels ran. Returns how many it has forgotten. */
static uint32_t read_spans(int64_t offset_ns)
{
	uint32_t count = count_records(), kept = count < RECORDS ? count : RECORDS;
	size_t bytes = kept * sizeof(struct load_record);
	struct load_record *record = malloc(bytes + 1);

	if (record == NULL)
		exit(1);
	need(cuMemcpyDtoH_v2(record, records + sizeof(struct load_head), bytes), "cuMemcpyDtoH");
	spans.count = 0;
	/* the first are of compare_clocks(), unless others came to lie there */
	for (uint32_t i = count > RECORDS ? 0 : TRIES; i < kept; i++)
		load_spans_add(&spans, record[i].start_ns + (uint64_t)offset_ns,
			record[i].end_ns + (uint64_t)offset_ns, 1);
	free(record);
	return count - kept;
}

static void load(void)
{
	int64_t offset_ns = 0;
	bool has_code = compare_clocks(&offset_ns);
	uint64_t start_ns = wait_to_begin();
	uint64_t end_ns = start_ns + (uint64_t)(option.seconds * NS_PER_SECOND), done_ns;
	uint32_t lost = 0;

	if (option.shape == SYNC)
		run_bursts(start_ns, end_ns, 1, 0);
	else if (option.shape == PERIODIC)
		run_bursts(start_ns, end_ns, option.burst, option.period_us * NS_PER_US);
	else
		run_ahead(end_ns);
	need(cuCtxSynchronize(), "cuCtxSynchronize");
	done_ns = clock_now_ns();
	if (has_code)
		lost = read_spans(offset_ns);
	printf("{\"shape\": \"%s\", \"duration_us\": %llu, \"blocks\": %llu, \"has_code\": %s",
		shape_names[option.shape], (unsigned long long)option.duration_us,
		(unsigned long long)option.blocks, has_code ? "true" : "false");
	printf(", \"launches\": %llu, \"records_lost\": %u, \"start_ns\": %llu, \"end_ns\": %llu",
		(unsigned long long)launches, lost, (unsigned long long)start_ns,
		(unsigned long long)end_ns);
	printf(", \"first_launch_ns\": %llu, \"done_ns\": %llu, \"device_offset_ns\": %lld",
		(unsigned long long)first_launch_ns, (unsigned long long)done_ns,
		(long long)offset_ns);
	load_times_print(stdout, "launch", &waits);
	load_times_print(stdout, "latency", &latencies);
	load_spans_print(stdout, &spans, start_ns, end_ns, option.bin_us * NS_PER_US);
	printf("}\n");
}

/* How many turns a kernel makes in a µs: of the try that took least. 0 where no code runs. */
static void calibrate(void)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < TRIES; i++) {
		struct load_record record;

		launch(streams[0], 1, CALIBRATE_LOOPS, (unsigned)option.blocks);
		need(cuStreamSynchronize(streams[0]), "cuStreamSynchronize");
		if (count_records() == 0)
			break;
		record = read_record(i);
		if (record.end_ns - record.start_ns < least_ns)
			least_ns = record.end_ns - record.start_ns;
	}
	printf("{\"rate\": %.4f}\n",
		least_ns < UINT64_MAX ? (double)CALIBRATE_LOOPS * NS_PER_US / (double)least_ns : 0);
}

static double launch_batch(cuLaunchKernel_fn *function)
{
	uint64_t start_ns = clock_now_ns(), took_ns;

	for (unsigned i = 0; i < COST_LAUNCHES; i++)
		need(function(nothing, 1, 1, 1, 1, 1, 1, 0, streams[0], NULL, NULL),
			"cuLaunchKernel");
	took_ns = clock_now_ns() - start_ns;
	need(cuCtxSynchronize(), "cuCtxSynchronize");
	return (double)took_ns / COST_LAUNCHES;
}

/*
 * What a launch of a kernel that does nothing takes, the mean of each batch: by the name, where the
 * tenant library may be, and by the driver's own function. Side by side, for between two processes lies
 * more than between the two.
 */
static void cost(void)
{
	cuLaunchKernel_fn *direct =
		(cuLaunchKernel_fn *)direct_find("libcuda.so", "cuLaunchKernel");
	uint64_t end_ns = clock_now_ns() + (uint64_t)(option.seconds * NS_PER_SECOND);
	const char *comma = "";

	if (direct == NULL) {
		fprintf(stderr, "compute-load: the driver's own cuLaunchKernel is not found\n");
		exit(1);
	}
	printf("{\"launch_direct_ns\": [");
	for (unsigned i = 0; clock_now_ns() < end_ns; i++) {
		double named_ns = i % 2 == 0 ? launch_batch(cuLaunchKernel) : 0;
		double direct_ns = launch_batch(direct);

		if (i % 2 == 1)
			named_ns = launch_batch(cuLaunchKernel);
		printf("%s[%.1f, %.1f]", comma, named_ns, direct_ns);
		comma = ", ";
	}
	printf("]}\n");
}

static bool read_shape(const char *text)
{
	for (unsigned i = 0; i < sizeof(shape_names) / sizeof(shape_names[0]); i++) {
		if (strcmp(text, shape_names[i]) == 0) {
			option.shape = (enum shape)i;
			return true;
		}
	}
	return false;
}

static bool read_option(const char *text)
{
	const struct {
		const char *name;
		uint64_t *number;
	} numbers[] = {{"duration_us", &option.duration_us}, {"blocks", &option.blocks},
		{"graph", &option.graph}, {"burst", &option.burst},
		{"period_us", &option.period_us}, {"ahead_us", &option.ahead_us},
		{"bin_us", &option.bin_us}};
	const char *value = strchr(text, '=');
	size_t length;

	if (value == NULL)
		return false;
	length = (size_t)(value++ - text);
	if (length == 5 && strncmp(text, "shape", length) == 0)
		return read_shape(value);
	if (length == 4 && strncmp(text, "wait", length) == 0) {
		option.wait = value;
		return true;
	}
	if (length == 4 && strncmp(text, "rate", length) == 0) {
		option.rate = strtod(value, NULL);
		return true;
	}
	if (length == 7 && strncmp(text, "seconds", length) == 0) {
		option.seconds = strtod(value, NULL);
		return true;
	}
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strlen(numbers[i].name) == length &&
			strncmp(text, numbers[i].name, length) == 0) {
			*numbers[i].number = strtoull(value, NULL, 10);
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!read_option(argv[i])) {
			fprintf(stderr, "compute-load: %s is no option\n", argv[i]);
			return 2;
		}
	}
	prepare();
	if (option.shape == CALIBRATE)
		calibrate();
	else if (option.shape == COST)
		cost();
	else
		load();
	return 0;
}
