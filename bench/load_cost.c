/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a kernel turns, and what a launch costs. */
#include "bench/load_cost.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "bench/direct.h"
#include "bench/load_device.h"
#include "bench/load_options.h"

extern cuCtxSynchronize_fn cuCtxSynchronize;
extern cuLaunchKernel_fn cuLaunchKernel;
extern cuStreamSynchronize_fn cuStreamSynchronize;

#define NS_PER_US	1000u
#define NS_PER_SECOND	1000000000u
#define CALIBRATE_LOOPS 2000000u /* some ms */
#define COST_LAUNCHES	500	 /* fewer than a stream queues before a launch waits for room */

void load_calibrate(void)
{
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t i = 0; i < LOAD_TRIES; i++) {
		struct load_record record;

		load_launch(load_stream[0], 1, CALIBRATE_LOOPS, (unsigned)load_option.blocks);
		load_need(cuStreamSynchronize(load_stream[0]), "cuStreamSynchronize");
		if (load_count_records() == 0)
			break;
		record = load_read_record(i);
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
		load_need(function(load_nothing, 1, 1, 1, 1, 1, 1, 0, load_stream[0], NULL, NULL),
			"cuLaunchKernel");
	took_ns = clock_now_ns() - start_ns;
	load_need(cuCtxSynchronize(), "cuCtxSynchronize");
	return (double)took_ns / COST_LAUNCHES;
}

void load_cost(void)
{
	cuLaunchKernel_fn *direct =
		(cuLaunchKernel_fn *)direct_find("libcuda.so", "cuLaunchKernel");
	uint64_t end_ns = clock_now_ns() + (uint64_t)(load_option.seconds * NS_PER_SECOND);
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
