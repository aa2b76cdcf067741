/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler counts of its own work. */
#include "scheduler/measure.h"

#include "base/clock.h"

const uint64_t measure_bounds_us[MEASURE_BOUNDS] = {100, 250, 500, 1000, 2500, 5000, 10000, 25000,
	50000, 100000, 250000, 1000000, 5000000, 30000000};

void measure_add(
	struct measure *measure, enum measure_verb verb, uint64_t began_ns, bool has_failed)
{
	struct measure_histogram *took = &measure->took[verb];
	uint64_t us = (clock_now_ns() - began_ns) / 1000;
	unsigned i = 0;

	while (i < MEASURE_BOUNDS && us > measure_bounds_us[i])
		i++;
	took->counts[i]++;
	took->sum_us += us;
	took->count++;
	measure->failed[verb] += has_failed;
}
