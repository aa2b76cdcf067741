/* SPDX-License-Identifier: Apache-2.0 */
/* Rates between two readings of a slice. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "node/view.h"
#include "policy/device_name.h"

/* A figure that went down is another region's: then nothing is known. */
static bool grew(const struct view_compute *before, const struct view_compute *after)
{
	return after->busy_ns >= before->busy_ns && after->launches >= before->launches &&
	       after->budget_wait_ns >= before->budget_wait_ns &&
	       after->turn_wait_ns >= before->turn_wait_ns;
}

static void compare(
	const struct view_compute *before, struct view_compute *after, uint64_t elapsed_ns)
{
	double elapsed = (double)elapsed_ns;

	if (!after->is_metered || elapsed_ns == 0 || !grew(before, after))
		return;
	after->rates = (struct view_rates){.is_known = true,
		.busy = (double)(after->busy_ns - before->busy_ns) / elapsed,
		.budget_wait = (double)(after->budget_wait_ns - before->budget_wait_ns) / elapsed,
		.turn_wait = (double)(after->turn_wait_ns - before->turn_wait_ns) / elapsed,
		.launches_per_s = 1e9 * (double)(after->launches - before->launches) / elapsed};
}

void view_compare(const struct view *before, struct view *after)
{
	if (after->read_ns <= before->read_ns)
		return;
	for (unsigned i = 0; i < after->device_count; i++)
		for (unsigned k = 0; k < before->device_count; k++)
			if (device_name_is_same(after->devices[i].uuid, before->devices[k].uuid))
				compare(&before->devices[k].compute, &after->devices[i].compute,
					after->read_ns - before->read_ns);
}

static bool is_metered(const struct view *v)
{
	for (unsigned i = 0; i < v->device_count; i++)
		if (v->devices[i].compute.is_metered)
			return true;
	return false;
}

static int read_again(const struct view *v, struct snapshot *s)
{
	_cleanup_fd_ int fd = -1;
	int r = *v->mapped ? mapped_open(v->mapped, &fd) : 0;

	if (r == -EPERM || r == -EACCES || !*v->mapped)
		return snapshot_read(v->region, s);
	return r < 0 ? r : snapshot_read_open(fd, NULL, s);
}

static void measure(struct view *v, struct snapshot *s)
{
	uint64_t elapsed_ns;

	if (!is_metered(v) || read_again(v, s) != 0)
		return;
	elapsed_ns = clock_now_ns() - v->read_ns;
	for (unsigned i = 0; i < v->device_count; i++)
		for (unsigned k = 0; k < s->device_count; k++) {
			struct view_compute *c = &v->devices[i].compute, before = *c;

			if (!device_name_is_same(v->devices[i].uuid, s->devices[k].uuid))
				continue;
			c->busy_ns = s->devices[k].compute.busy_ns;
			c->launches = s->devices[k].compute.launches;
			c->budget_wait_ns = s->devices[k].compute.budget_wait_ns;
			c->turn_wait_ns = s->devices[k].compute.turn_wait_ns;
			c->lent_ns = s->devices[k].compute.lent_ns;
			compare(&before, c, elapsed_ns);
		}
	v->read_ns += elapsed_ns;
}

void view_measure(struct view *views, size_t count, uint64_t interval_ns)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	struct timespec pause = {.tv_sec = (time_t)(interval_ns / 1000000000),
		.tv_nsec = (long)(interval_ns % 1000000000)};
	bool is_needed = false;

	for (size_t i = 0; i < count; i++)
		is_needed |= is_metered(&views[i]);
	if (!s || !is_needed)
		return;
	nanosleep(&pause, NULL);
	for (size_t i = 0; i < count; i++)
		measure(&views[i], s);
}
