/* SPDX-License-Identifier: Apache-2.0 */
/* Charges what no call of the program's does. */
#include "tenant/compute/collector.h"

#include "base/clock.h"
#include "tenant/compute/limits.h"
#include "tenant/compute/meters.h"

/* A thread that works gives its own stream more before that. */
#define THREAD_PAUSE_NS UINT64_C(50000000)

static uint64_t seen_batches[REGION_DEVICES]; /* of each meter, at the last look */

/* With the meter's lock. Whether the program gave no work since the last call of this. */
static bool was_silent(const struct meter *m)
{
	uint64_t before = seen_batches[m - meters];

	seen_batches[m - meters] = m->counts.batches;
	return m->counts.batches == before;
}

/* Whether work is under way that is not charged. */
static bool look_at(struct meter *m)
{
	uint64_t now_ns = clock_now_ns();
	bool is_silent;
	LOCK_SCOPE(&m->lock);

	if (!m->since_ns)
		return false;
	is_silent = was_silent(m);
	/* A thread that gives no more work is not seen among others that do. */
	streams_note_silent(m, is_silent ? STREAM_PAUSE_NS : THREAD_PAUSE_NS, now_ns);
	if (is_silent) {
		streams_collect(m, now_ns);
		turns_note_done(m, now_ns);
	}
	return m->since_ns;
}

bool collector_look(void)
{
	bool has_work = false;

	if (!meters_have_region())
		return false;
	limits_poll();
	EACH_METER(m)
	has_work |= look_at(m);
	return has_work;
}
