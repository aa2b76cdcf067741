/* SPDX-License-Identifier: Apache-2.0 */
/* How much of the last seconds was work. */
#include "sim/machine/utilization.h"

/*
 * Time is cut into periods. Of the latest ones the work in each is kept; older work is in the total
 * alone.
 */

static uint64_t period_ns(void)
{
	return UINT64_C(1) << LAYOUT_PERIOD_SHIFT;
}

static void add(struct layout_utilization *utilization, uint64_t index, uint64_t work_ns)
{
	struct layout_period *period = &utilization->period[index % LAYOUT_PERIODS];

	if (period->index != index)
		*period = (struct layout_period){.index = index};
	period->work_ns += work_ns;
}

#define LOOK_NS (UINT64_C(1000000000) / 6)

/* The moments of looks within that time. */
static void note_looks(struct layout_utilization *utilization, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t look = from_ns / LOOK_NS, last = to_ns / LOOK_NS;

	if (last > look + LAYOUT_SEEN)
		look = last - LAYOUT_SEEN;
	while (look++ < last)
		utilization->seen[look % LAYOUT_SEEN] = look;
}

unsigned int utilization_seen_percent(const struct layout_utilization *utilization, uint64_t now_ns)
{
	uint64_t now = now_ns / LOOK_NS;
	unsigned int seen = 0;

	for (int i = 0; i < LAYOUT_SEEN; i++)
		seen += now < utilization->seen[i] + LAYOUT_SEEN && utilization->seen[i] <= now;
	return seen * 100 / LAYOUT_SEEN;
}

void utilization_credit(
	struct layout_utilization *utilization, uint64_t from_ns, uint64_t to_ns, uint64_t work_ns)
{
	uint64_t span = to_ns - from_ns, kept = period_ns() * (LAYOUT_PERIODS - 1);

	if (to_ns <= from_ns)
		return;
	utilization->work_ns += work_ns;
	note_looks(utilization, from_ns, to_ns);
	if (span > kept)
		from_ns = to_ns - kept;
	while (from_ns < to_ns) {
		uint64_t index = from_ns >> LAYOUT_PERIOD_SHIFT;
		uint64_t end = (index + 1) << LAYOUT_PERIOD_SHIFT;
		uint64_t part = (end < to_ns ? end : to_ns) - from_ns;

		add(utilization, index,
			work_ns == span
				? part
				: (uint64_t)((double)part * (double)work_ns / (double)span));
		from_ns += part;
	}
}

uint64_t utilization_within(
	const struct layout_utilization *utilization, uint64_t now_ns, uint64_t window_ns)
{
	uint64_t from = now_ns > window_ns ? now_ns - window_ns : 0;
	uint64_t first = from >> LAYOUT_PERIOD_SHIFT, last = now_ns >> LAYOUT_PERIOD_SHIFT;
	uint64_t work = 0;

	for (int i = 0; i < LAYOUT_PERIODS; i++) {
		const struct layout_period *period = &utilization->period[i];
		uint64_t begin = period->index << LAYOUT_PERIOD_SHIFT;
		uint64_t length = period->index == last ? now_ns - begin : period_ns();

		if (period->index < first || period->index > last || length == 0)
			continue;
		/* Of the period in which the window begins, its part of the time. */
		work += period->index > first
				? period->work_ns
				: (uint64_t)((double)period->work_ns *
					     (double)(begin + length - from) / (double)length);
	}
	return work < window_ns ? work : window_ns;
}
