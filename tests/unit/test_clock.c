/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks: the one that a process follows, and what is thought of the processor's count before its rate was measured. */
#include "base/clock.h"

#include "tests/clock/namespace.h"
#include "tests/unit/cmocka_ready.h"

#define REST_MS	 20
#define TIMES	 10 /* so much too high or too low is still of the right order */
#define ATTEMPTS 20 /* a busy machine may take the processor away between two clocks */

#define MS	 INT64_C(1000000)
#define NEAR_NS	 1000000 /* clocks that differ by less are one */
#define AHEAD_MS 7300

static void a_milliseconds_ticks_are_of_the_right_order(void **state)
{
	struct timespec rest = {.tv_nsec = REST_MS * 1000000};
	uint64_t least = clock_ticks_of_ms() / TIMES, most = clock_ticks_of_ms() * TIMES;
	uint64_t rate = 0;

	(void)state;
	for (unsigned i = 0; i < ATTEMPTS && (rate < least || rate > most); i++) {
		uint64_t from_ns = clock_now_ns(), from = clock_ticks(), passed;

		nanosleep(&rest, NULL);
		passed = clock_ticks() - from;
		rate = passed / ((clock_now_ns() - from_ns) / 1000000);
	}
	assert_in_range(rate, least, most);
}

/* A clock that is so far ahead of another, when CLOCK_REALTIME was set by so much, and ticks are so late. */
static struct clock_mark mark_of(int64_t ahead_ns, int64_t set_ns, int64_t late_ns)
{
	return (struct clock_mark){.ticks_ns = -17179569 * MS + ahead_ns + late_ns,
		.wall_ns = INT64_C(1700000000000) * MS - ahead_ns + set_ns};
}

static enum clock_relation relate(
	int64_t ahead_ns, int64_t set_ns, int64_t late_ns, int64_t *ret_ahead_ns)
{
	struct clock_mark mark = mark_of(0, 0, 0), own = mark_of(ahead_ns, set_ns, late_ns);

	return clock_relate(&mark, &own, ret_ahead_ns);
}

static void a_clock_is_known_again(void **state)
{
	int64_t ahead_ns;

	(void)state;
	assert_int_equal(relate(0, 0, 14 * MS, &ahead_ns), CLOCK_SAME);
	assert_int_equal(ahead_ns, 0);
	/* ticks that are very late say nothing against a clock that is the same to the us */
	assert_int_equal(relate(0, 5000, 5000 * MS, &ahead_ns), CLOCK_SAME);
	assert_int_equal(relate(0, 3600000 * MS, 14 * MS, &ahead_ns), CLOCK_WALL_SET);
	assert_int_equal(ahead_ns, 0);
	assert_int_equal(relate(0, -3600000 * MS, 0, &ahead_ns), CLOCK_WALL_SET);
	assert_int_equal(ahead_ns, 0);
}

static void a_shift_is_told_exactly(void **state)
{
	static const int64_t shifts[] = {1 * MS, -1 * MS, 20 * MS, 1000 * MS, -86400000 * MS};
	int64_t ahead_ns;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(shifts); i++) {
		assert_int_equal(relate(shifts[i], 0, 14 * MS, &ahead_ns), CLOCK_SHIFTED);
		assert_int_equal(ahead_ns, shifts[i]);
	}
}

static void another_boot_is_no_shift(void **state)
{
	int64_t ahead_ns;

	(void)state;
	assert_int_equal(relate(-600 * MS, 3600000 * MS, 0, &ahead_ns), CLOCK_OTHER);
	assert_int_equal(ahead_ns, 0);
}

static void without_ticks_the_wall_clock_is_believed(void **state)
{
	struct clock_mark mark = mark_of(0, 0, 0), own = mark_of(1000 * MS, 0, 0);
	int64_t ahead_ns;

	(void)state;
	own.ticks_ns = 0;
	assert_int_equal(clock_relate(&mark, &own, &ahead_ns), CLOCK_SHIFTED);
	assert_int_equal(ahead_ns, 1000 * MS);
}

static void a_mark_that_is_out_of_date_is_mended(void **state)
{
	struct clock_mark own = clock_own_mark(), mark = {0};

	(void)state;
	/* nobody's yet */
	assert_false(clock_follow(&mark));
	assert_in_range(mark.wall_ns, own.wall_ns - NEAR_NS, own.wall_ns + NEAR_NS);
	assert_true(clock_follow(&mark));
	/* CLOCK_REALTIME was set since */
	mark.wall_ns += 3600000 * MS;
	assert_false(clock_follow(&mark));
	assert_in_range(mark.wall_ns, own.wall_ns - NEAR_NS, own.wall_ns + NEAR_NS);
	/* the machine was started anew */
	mark.wall_ns += 3600000 * MS;
	mark.ticks_ns += 600 * MS;
	assert_false(clock_follow(&mark));
	assert_in_range(mark.wall_ns, own.wall_ns - NEAR_NS, own.wall_ns + NEAR_NS);
	assert_int_equal(atomic_load(&clock_lead.ahead_ns), 0);
}

/* How far a clock is ahead of CLOCK_BOOTTIME, which is not shifted here. */
static int64_t ahead_of_boottime(uint64_t (*clock_ns)(void))
{
	uint64_t before_ns, now_ns, after_ns;
	struct timespec t;

	do {
		clock_gettime(CLOCK_BOOTTIME, &t);
		before_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
		now_ns = clock_ns();
		clock_gettime(CLOCK_BOOTTIME, &t);
		after_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	} while (after_ns - before_ns > NEAR_NS / 2);
	return (int64_t)(now_ns - before_ns);
}

static bool is_near(int64_t a, int64_t b)
{
	return a - b < NEAR_NS && b - a < NEAR_NS;
}

/* In a process of its own: the number of the first thing that is not as it should be, or 0. */
static int go_through_namespaces(void)
{
	struct clock_mark mark = clock_own_mark();
	int64_t machine = ahead_of_boottime(clock_now_ns);
	int status = 1;
	pid_t pid;

	if (!namespace_become_free() || !namespace_set_ahead(AHEAD_MS))
		return 1;
	pid = fork();
	if (pid > 0)
		return waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 2;
	if (!is_near(ahead_of_boottime(clock_shown_ns), machine + AHEAD_MS * MS))
		_exit(3);
	if (!clock_follow(&mark) || !is_near(ahead_of_boottime(clock_now_ns), machine))
		_exit(4);
	/* further ahead, behind where it was; and both again */
	for (unsigned i = 0; i < 4; i++) {
		if (!namespace_set_ahead(i % 2 ? AHEAD_MS / 2 : 2 * AHEAD_MS) ||
			!namespace_come_to_children())
			_exit(5);
		if (!is_near(ahead_of_boottime(clock_now_ns), machine))
			_exit(6);
	}
	_exit(0);
}

static void who_follows_a_clock_has_it_in_every_namespace(void **state)
{
	int status = 1;
	pid_t pid;

	(void)state;
	if (namespace_find_missing())
		skip();
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(go_through_namespaces());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_is_known_again),
		cmocka_unit_test(a_shift_is_told_exactly),
		cmocka_unit_test(another_boot_is_no_shift),
		cmocka_unit_test(without_ticks_the_wall_clock_is_believed),
		cmocka_unit_test(a_mark_that_is_out_of_date_is_mended),
		cmocka_unit_test(who_follows_a_clock_has_it_in_every_namespace),
		cmocka_unit_test(a_milliseconds_ticks_are_of_the_right_order),
	};

	return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
