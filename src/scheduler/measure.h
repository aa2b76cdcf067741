/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler counts of its own work. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/fit.h"

enum measure_verb { MEASURE_FILTER, MEASURE_BIND, MEASURE_WEBHOOK, MEASURE_PREEMPT, MEASURE_VERBS };

#define MEASURE_BOUNDS 14

/* In microseconds; the last is for what took longer. */
extern const uint64_t measure_bounds_us[MEASURE_BOUNDS];

struct measure_histogram {
	uint64_t counts[MEASURE_BOUNDS + 1], sum_us, count;
};

struct measure {
	struct measure_histogram took[MEASURE_VERBS];
	uint64_t failed[MEASURE_VERBS]; /* answers with an error, or a denial */
	uint64_t rejections[FIT_REASONS +
			    1]; /* nodes that did not do, by reason; last: not registered */
	uint64_t turned_away;	/* requests of a client that made too many */
};

void measure_add(
	struct measure *measure, enum measure_verb verb, uint64_t began_ns, bool has_failed);
