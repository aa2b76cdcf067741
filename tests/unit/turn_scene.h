/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three slices of one device, "a", "b" and "c", and a time that only the test moves on. A program includes
 * it once.
 */
#pragma once

#include <stdio.h>

#include "region/turn.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define UUID "GPU-5a1b"
#define US   UINT64_C(1000)
#define MS   UINT64_C(1000000)

static struct turn a, b, c;
static uint64_t now;
static uint64_t late_ns; /* what the process loses before its next look at the clock but one */
static unsigned looks_until_late;

static inline uint64_t test_clock(void)
{
	if (late_ns && looks_until_late-- == 0) {
		now += late_ns;
		late_ns = 0;
	}
	return now;
}

static inline int setup(void **state)
{
	now = 1000000 * MS;
	late_ns = 0;
	return scratch_setup(state);
}

static inline int teardown(void **state)
{
	turn_close(&a);
	turn_close(&b);
	turn_close(&c);
	return scratch_teardown(state);
}

#define TURN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static inline const char *folder_of(const struct scratch *s)
{
	return s->file;
}

static inline const char *path_of(const struct scratch *s, const char *slice)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s/%s", s->file, UUID, slice);
	return path;
}

static inline void open_one(
	struct turn *t, const struct scratch *s, const char *slice, unsigned process)
{
	*t = (struct turn)TURN_NULL;
	t->clock_ns = test_clock;
	assert_int_equal(turn_open(t, folder_of(s), UUID, slice, process, now), 0);
}

/* Everybody knows everybody. */
static inline void get_known(void)
{
	now += 61 * MS;
	turn_count_peers(&a, now);
	turn_count_peers(&b, now);
	turn_count_peers(&c, now);
}

static inline void open_two(const struct scratch *s)
{
	open_one(&a, s, "a", 0);
	open_one(&b, s, "b", 0);
	get_known();
}

static inline int hold_for(struct turn *t, unsigned rank, uint64_t work_ns)
{
	uint64_t look = 0;
	int r = turn_hold(t, rank, now, now + work_ns, &look);

	if (r != TURN_HELD)
		assert_true(look > now && look <= now + 2 * MS);
	return r;
}

static inline int hold(struct turn *t)
{
	return hold_for(t, 1, MS);
}

/* Goes on in steps as a waiter would, until it has the turn; when that was. */
static inline uint64_t wait_turn(struct turn *t, uint64_t most_ns)
{
	uint64_t start = now, look;

	while (turn_hold(t, 1, now, now + MS, &look) != TURN_HELD) {
		assert_true(look > now);
		now = look;
		if (now - start > most_ns)
			return UINT64_MAX;
	}
	return now - start;
}
