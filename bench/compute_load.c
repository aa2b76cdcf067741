/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process that keeps a device busy with kernels of a known duration, and says what it got of it,
 * as one line of JSON. Run by bench/compute.py, on a real card and on the simulated node.
 *
 *	compute-load [OPTION=VALUE]...
 *	shape=stream		stream, streams4, graph, coop, sync, periodic, train, calibrate, cost
 *	duration_us=200		of a kernel
 *	blocks=0		of a kernel; 0: one for each multiprocessor
 *	rate=0			kernels count this many turns a µs (of calibrate) instead of looking at the
 *				time; so what a kernel does stays the same where the device leaves it
 *	graph=20		kernels in a graph
 *	burst=20 period_us=5000	of shape=periodic: kernels, and time from burst to burst
 *	burst=20 host_us=12	of shape=train: kernels in a step, and what the host takes for each launch,
 *	pause_us=400		and what it takes before the last fifth of a step's, of an optimizer
 *	copy_kib=0		also of it: what is copied from the host before each step, in the same stream
 *	each=0 jitter=5		after how many steps it waits for the device (0: never), and by how many
 *				percent the lengths of kernels vary
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
#include <time.h>

#include "base/clock.h"
#include "bench/load_cost.h"
#include "bench/load_device.h"
#include "bench/load_options.h"
#include "bench/load_report.h"
#include "bench/load_train.h"

extern cuCtxSynchronize_fn cuCtxSynchronize;
extern cuStreamSynchronize_fn cuStreamSynchronize;
extern cuEventCreate_fn cuEventCreate;
extern cuEventRecord_fn cuEventRecord;
extern cuEventSynchronize_fn cuEventSynchronize;

#define NS_PER_US     1000u
#define NS_PER_SECOND 1000000000u
#define GROUPS_MOST   8	 /* events that are waited for, at most */
#define GROUP_MOST    64 /* launches between two events, at most */
#define POLL_NS	      200000
#define WAIT_S	      120 /* until the file to wait for must be there */

/* Some launches, by turns to the streams, with an event of each behind them. */
struct group {
	CUevent event[LOAD_STREAMS];
	unsigned kernels[LOAD_STREAMS]; /* 0: nothing to wait for */
	uint64_t given_ns;
};

static uint64_t launches, first_launch_ns;
static uint64_t seen_ns[LOAD_STREAMS]; /* when the stream's last group was seen done */
static struct load_spans spans;
static struct load_times waits, latencies;

static void wait_until(uint64_t at_ns)
{
	struct timespec at = {(time_t)(at_ns / NS_PER_SECOND), (long)(at_ns % NS_PER_SECOND)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

/* One call as the shape has it, and how long it took. Returns the count of kernels. */
static unsigned launch_timed(CUstream stream)
{
	uint64_t start_ns = clock_now_ns();
	unsigned kernels;

	if (first_launch_ns == 0)
		first_launch_ns = start_ns;
	kernels = load_launch_shape(stream);
	load_times_add(&waits, clock_now_ns() - start_ns);
	launches++;
	return kernels;
}

static uint64_t wait_to_begin(void)
{
	uint64_t deadline_ns = clock_now_ns() + (uint64_t)WAIT_S * NS_PER_SECOND, start_ns;
	char text[32];
	FILE *file;

	if (load_option.wait == NULL)
		return clock_now_ns();
	printf("ready\n");
	fflush(stdout);
	while ((file = fopen(load_option.wait, "r")) == NULL) {
		if (clock_now_ns() > deadline_ns) {
			fprintf(stderr, "compute-load: there is no %s\n", load_option.wait);
			exit(1);
		}
		wait_until(clock_now_ns() + POLL_NS);
	}
	start_ns = fgets(text, sizeof(text), file) != NULL ? strtoull(text, NULL, 10) : 0;
	fclose(file);
	wait_until(start_ns);
	return start_ns;
}

/* Waits for the group's work in a stream, and takes it that its kernels ran just before. */
static void finish(struct group *group, unsigned stream)
{
	uint64_t now_ns, start_ns;

	if (group->kernels[stream] == 0)
		return;
	load_need(cuEventSynchronize(group->event[stream]), "cuEventSynchronize");
	now_ns = clock_now_ns();
	start_ns = now_ns - group->kernels[stream] * load_option.duration_us * NS_PER_US;
	if (start_ns < seen_ns[stream])
		start_ns = seen_ns[stream];
	if (start_ns < group->given_ns)
		start_ns = group->given_ns;
	load_spans_add(&spans, start_ns, now_ns, group->kernels[stream]);
	seen_ns[stream] = now_ns;
	group->kernels[stream] = 0;
}

static void finish_all(struct group *group)
{
	for (unsigned i = 0; i < LOAD_STREAMS; i++)
		finish(group, i);
}

static void prepare_group(struct group *group)
{
	for (unsigned i = 0; i < LOAD_STREAMS; i++)
		load_need(cuEventCreate(&group->event[i],
				  CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
			"cuEventCreate");
}

static void give(struct group *group, uint64_t size, unsigned wide, uint64_t end_ns)
{
	group->given_ns = clock_now_ns();
	for (uint64_t i = 0; i < size && clock_now_ns() < end_ns; i++)
		group->kernels[i % wide] += launch_timed(load_stream[i % wide]);
	for (unsigned i = 0; i < wide; i++)
		load_need(cuEventRecord(group->event[i], load_stream[i]), "cuEventRecord");
}

/* Keeps the device supplied, some groups of launches ahead, until the time has come. */
static void run_ahead(uint64_t end_ns)
{
	struct group groups[GROUPS_MOST] = {{.given_ns = 0}};
	uint64_t each_us =
		load_option.duration_us * (load_option.shape == LOAD_GRAPH ? load_option.graph : 1);
	unsigned wide = load_option.shape == LOAD_STREAMS4 ? LOAD_STREAMS : 1;
	uint64_t size = load_option.ahead_us * wide / (each_us > 0 ? each_us : 1) / GROUPS_MOST;
	uint64_t depth;

	size = size < wide ? wide : size > GROUP_MOST ? GROUP_MOST : size;
	depth = load_option.ahead_us * wide / (each_us * size + 1);
	depth = depth < 2 ? 2 : depth > GROUPS_MOST ? GROUPS_MOST : depth;
	for (uint64_t i = 0; i < depth; i++)
		prepare_group(&groups[i]);
	for (uint64_t i = 0; clock_now_ns() < end_ns; i++) {
		finish_all(&groups[i % depth]);
		give(&groups[i % depth], size, wide, end_ns);
	}
	for (uint64_t i = 0; i < depth; i++)
		finish_all(&groups[i]);
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
			launch_timed(load_stream[0]);
		load_need(cuStreamSynchronize(load_stream[0]), "cuStreamSynchronize");
		done_ns = clock_now_ns();
		/* Who comes new is noticed by the others in the first half second. */
		if (begin_ns > start_ns + NS_PER_SECOND / 2 || end_ns < start_ns + NS_PER_SECOND)
			load_times_add(&latencies, done_ns - begin_ns);
		load_spans_add(&spans, begin_ns, done_ns, (unsigned)burst);
		next_ns += period_ns;
		if (next_ns < done_ns)
			next_ns = done_ns;
	}
}

static void load(void)
{
	int64_t offset_ns = 0;
	bool has_code = load_compare_clocks(&offset_ns);
	uint64_t start_ns = wait_to_begin();
	uint64_t end_ns = start_ns + (uint64_t)(load_option.seconds * NS_PER_SECOND), done_ns;
	uint32_t lost = 0;

	if (load_option.shape == LOAD_SYNC)
		run_bursts(start_ns, end_ns, 1, 0);
	else if (load_option.shape == LOAD_PERIODIC)
		run_bursts(start_ns, end_ns, load_option.burst, load_option.period_us * NS_PER_US);
	else if (load_option.shape == LOAD_TRAIN)
		launches = load_train(end_ns, &spans, &waits);
	else
		run_ahead(end_ns);
	load_need(cuCtxSynchronize(), "cuCtxSynchronize");
	done_ns = clock_now_ns();
	if (has_code)
		lost = load_read_spans(offset_ns, &spans);
	printf("{\"shape\": \"%s\", \"duration_us\": %llu, \"blocks\": %llu, \"has_code\": %s",
		load_shape_name(), (unsigned long long)load_option.duration_us,
		(unsigned long long)load_option.blocks, has_code ? "true" : "false");
	printf(", \"launches\": %llu, \"records_lost\": %u, \"start_ns\": %llu, \"end_ns\": %llu",
		(unsigned long long)launches, lost, (unsigned long long)start_ns,
		(unsigned long long)end_ns);
	printf(", \"first_launch_ns\": %llu, \"done_ns\": %llu, \"device_offset_ns\": %lld",
		(unsigned long long)first_launch_ns, (unsigned long long)done_ns,
		(long long)offset_ns);
	load_times_print(stdout, "launch", &waits);
	load_times_print(stdout, "latency", &latencies);
	load_spans_print(stdout, &spans, start_ns, end_ns, load_option.bin_us * NS_PER_US);
	printf("}\n");
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!load_option_read(argv[i])) {
			fprintf(stderr, "compute-load: %s is no option\n", argv[i]);
			return 2;
		}
	}
	load_prepare();
	if (load_option.shape == LOAD_CALIBRATE)
		load_calibrate();
	else if (load_option.shape == LOAD_COST)
		load_cost();
	else
		load();
	return 0;
}
