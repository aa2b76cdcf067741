/* SPDX-License-Identifier: Apache-2.0 */
/* A training as bench/compute_load.c makes one. */
#include "bench/load_train.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "base/clock.h"
#include "bench/load_device.h"
#include "bench/load_options.h"

extern cuEventCreate_fn cuEventCreate;
extern cuEventRecord_fn cuEventRecord;
extern cuEventSynchronize_fn cuEventSynchronize;
extern cuMemAlloc_v2_fn cuMemAlloc_v2;
extern cuMemHostAlloc_fn cuMemHostAlloc;
extern cuMemcpyHtoDAsync_v2_fn cuMemcpyHtoDAsync_v2;
extern cuStreamSynchronize_fn cuStreamSynchronize;

#define NS_PER_US 1000u
#define BRIEF_NS  10000u

/* Launches that lie before the device at most: 1,024, as NVIDIA's driver has it. */
#define GROUPS 8u
#define GROUP  128u

/*
 * Kernels of 20 to 200 us, most of them short. One in five, of an optimizer's, is shorter than its launch, and before these
 * the host gives none for a while.
 */
#define KINDS		12u
#define SHORTEST_NS	20000u
#define LONGEST_NS	200000u
#define OPTIMIZER_NS	5000u
#define OPTIMIZER_KINDS 2u
#define OPTIMIZER_ONE	5u

#define BYTES_PER_KIB	1024u

/* What each step is given first, from memory that the device reads itself. */
struct input {
	CUdeviceptr device;
	void *host;
	size_t bytes;
};

struct group {
	CUevent event;
	uint64_t given_ns;
	unsigned kernels; /* 0: nothing to wait for */
};

/* The grid tells kinds apart, as the kernels of a framework differ in it. */
static unsigned blocks_of(unsigned kind)
{
	unsigned step = kind % 4, power = kind / 4;

	return (4 + step) << power;
}

static uint64_t kernel_ns(unsigned kind)
{
	uint64_t part = 1000 * kind / (KINDS - 1), ns = OPTIMIZER_NS;

	if (kind < KINDS)
		ns = SHORTEST_NS +
		     (LONGEST_NS - SHORTEST_NS) * part / 1000 * part / 1000 * part / 1000;
	return ns;
}

/* Not two runs of a kernel are quite as long. */
static uint64_t vary(uint64_t ns, uint64_t number)
{
	uint64_t permille = hash_u64(number) % (20 * load_option.jitter + 1);

	return ns * (1000 - 10 * load_option.jitter + permille) / 1000;
}

/* A brief sleep is exact on a virtual clock, and nowhere else. */
static void take_time(uint64_t ns)
{
	uint64_t until_ns = clock_now_ns() + ns, now_ns;

	while ((now_ns = clock_now_ns()) < until_ns) {
		uint64_t left_ns = until_ns - now_ns;
		struct timespec rest = {.tv_nsec = (long)(left_ns < BRIEF_NS ? left_ns : BRIEF_NS)};

		if (getenv("TEST_CLOCK"))
			nanosleep(&rest, NULL);
	}
}

static void give_one(unsigned number, struct load_times *waits)
{
	bool is_optimizer =
		number % load_option.burst >= load_option.burst - load_option.burst / OPTIMIZER_ONE;
	unsigned kind = is_optimizer ? KINDS + number % OPTIMIZER_KINDS
				     : (unsigned)(hash_u64(number % load_option.burst) % KINDS);
	uint64_t before_ns;

	if (number % load_option.burst == load_option.burst - load_option.burst / OPTIMIZER_ONE)
		take_time(load_option.pause_us * NS_PER_US);
	before_ns = clock_now_ns();
	load_launch(load_stream[0], vary(kernel_ns(kind), number), 0, blocks_of(kind));
	load_times_add(waits, clock_now_ns() - before_ns);
	take_time(load_option.host_us * NS_PER_US);
}

static void finish(struct group *g, uint64_t *seen_ns, struct load_spans *spans)
{
	uint64_t now_ns;

	if (!g->kernels)
		return;
	load_need(cuEventSynchronize(g->event), "cuEventSynchronize");
	now_ns = clock_now_ns();
	if (*seen_ns < g->given_ns)
		*seen_ns = g->given_ns;
	load_spans_add(spans, *seen_ns, now_ns, g->kernels);
	*seen_ns = now_ns;
	g->kernels = 0;
}

static struct input make_input(void)
{
	struct input input = {.bytes = load_option.copy_kib * BYTES_PER_KIB};

	if (!input.bytes)
		return input;
	load_need(cuMemAlloc_v2(&input.device, input.bytes), "cuMemAlloc");
	load_need(cuMemHostAlloc(&input.host, input.bytes, 0), "cuMemHostAlloc");
	return input;
}

static void copy(const struct input *input)
{
	if (input->bytes)
		load_need(cuMemcpyHtoDAsync_v2(
				  input->device, input->host, input->bytes, load_stream[0]),
			"cuMemcpyHtoDAsync");
}

uint64_t load_train(uint64_t end_ns, struct load_spans *spans, struct load_times *waits)
{
	struct group groups[GROUPS] = {{.kernels = 0}};
	struct input input = make_input();
	uint64_t seen_ns = 0;
	unsigned number = 0;

	for (unsigned i = 0; i < GROUPS; i++)
		load_need(cuEventCreate(&groups[i].event,
				  CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING),
			"cuEventCreate");
	while (clock_now_ns() < end_ns) {
		struct group *g = &groups[number / GROUP % GROUPS];

		if (number % GROUP == 0) {
			finish(g, &seen_ns, spans);
			g->given_ns = clock_now_ns();
		}
		if (number % load_option.burst == 0)
			copy(&input);
		give_one(number++, waits);
		g->kernels++;
		if (number % GROUP == 0)
			load_need(cuEventRecord(g->event, load_stream[0]), "cuEventRecord");
		if (load_option.each && number % (load_option.burst * load_option.each) == 0)
			load_need(cuStreamSynchronize(load_stream[0]), "cuStreamSynchronize");
	}
	/* That of the last group was not recorded. */
	groups[number / GROUP % GROUPS].kernels *= number % GROUP == 0;
	for (unsigned i = 0; i < GROUPS; i++)
		finish(&groups[(number / GROUP + i) % GROUPS], &seen_ns, spans);
	return number;
}
