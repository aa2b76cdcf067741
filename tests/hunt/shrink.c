/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Delta debugging: parts of half the list are left out, one after the other, then of a quarter, and so
 * on to single steps, until no single one can be left out. What fails without a part goes on without it.
 */
#include "tests/hunt/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"

struct search {
	unsigned *steps, *without;
	unsigned count;
	shrink_fails_fn *fails;
	void *argument;
	uint64_t deadline_ns;
};

/* Leaves out `part` steps from `at` on, if the rest fails. */
static bool leave_out(struct search *s, unsigned at, unsigned part)
{
	unsigned end = at + part < s->count ? at + part : s->count;
	unsigned rest = s->count - (end - at);

	memcpy(s->without, s->steps, at * sizeof(*s->steps));
	memcpy(s->without + at, s->steps + end, (s->count - end) * sizeof(*s->steps));
	if (!s->fails(s->without, rest, s->argument))
		return false;
	memcpy(s->steps, s->without, rest * sizeof(*s->steps));
	s->count = rest;
	return true;
}

/* Each part of that size once, from the end: what comes last depends on what came before it. */
static bool leave_out_parts(struct search *s, unsigned part)
{
	unsigned parts = (s->count + part - 1) / part;
	bool is_shorter = false;

	for (unsigned i = parts; i-- > 0 && clock_now_ns() < s->deadline_ns;)
		if (i * part < s->count)
			is_shorter |= leave_out(s, i * part, part);
	return is_shorter;
}

unsigned shrink(unsigned count, shrink_fails_fn *fails, void *argument, uint64_t deadline_ns,
	unsigned *ret_steps)
{
	_cleanup_free_ unsigned *without = calloc(count ? count : 1, sizeof(*without));
	struct search s = {.steps = ret_steps,
		.without = without,
		.count = count,
		.fails = fails,
		.argument = argument,
		.deadline_ns = deadline_ns};

	for (unsigned i = 0; i < count; i++)
		ret_steps[i] = i;
	if (!without)
		return count;
	for (unsigned part = count / 2; part > 1; part /= 2)
		leave_out_parts(&s, part);
	while (s.count > 0 && clock_now_ns() < deadline_ns && leave_out_parts(&s, 1))
		;
	return s.count;
}
