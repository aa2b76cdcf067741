/* SPDX-License-Identifier: Apache-2.0 */
/* Why work has to wait: each reason at its edge, and their order over all combinations of what can be known. */
#include "policy/throttle.h"

#include "base/bits.h"
#include "tests/unit/cmocka_ready.h"

#define NOW UINT64_C(1000000000)
#define US  UINT64_C(1000)
#define MS  UINT64_C(1000000)

static void expect_work(struct throttle_work w, enum throttle why, uint64_t wake_ns)
{
	uint64_t at = 0;

	w.now_ns = NOW;
	assert_int_equal(throttle_work(&w, &at), why);
	if (why != THROTTLE_NONE)
		assert_int_equal(at, wake_ns);
}

static void nothing_holds_work_back_that_has_budget_and_an_empty_stream(void **state)
{
	expect_work((struct throttle_work){.has_work = false}, THROTTLE_NONE, 0);
	/* nor what other streams have to do, an end that is past, or peers */
	expect_work((struct throttle_work){.busy_until_ns = NOW + 50 * MS,
			    .drained_ns = NOW - MS,
			    .has_peers = true,
			    .is_yielding = true},
		THROTTLE_NONE, 0);
	/* a stream without work may say any end */
	expect_work((struct throttle_work){.drained_ns = UINT64_MAX}, THROTTLE_NONE, 0);
}

static void a_suspended_slice_asks_again_after_the_longest_sleep(void **state)
{
	expect_work(
		(struct throttle_work){.is_suspended = true}, THROTTLE_SUSPENDED, NOW + 20 * MS);
	expect_work((struct throttle_work){.is_suspended = true, .credit_ready_ns = NOW + 1},
		THROTTLE_SUSPENDED, NOW + 20 * MS);
}

static void without_budget_work_waits_for_it_or_for_what_may_come_back(void **state)
{
	struct throttle_work w = {.credit_ready_ns = NOW + 9 * MS};

	expect_work(w, THROTTLE_NO_BUDGET, NOW + 9 * MS);
	w.busy_until_ns = NOW;
	expect_work(w, THROTTLE_NO_BUDGET, NOW + 9 * MS);
	w.busy_until_ns = NOW + 1;
	expect_work(w, THROTTLE_NO_BUDGET, NOW + 1);
	w.busy_until_ns = NOW + 9 * MS - 1;
	expect_work(w, THROTTLE_NO_BUDGET, NOW + 9 * MS - 1);
	w.busy_until_ns = NOW + 10 * MS;
	expect_work(w, THROTTLE_NO_BUDGET, NOW + 9 * MS);
	w.credit_ready_ns = UINT64_MAX; /* a limit of nothing */
	w.busy_until_ns = 0;
	expect_work(w, THROTTLE_NO_BUDGET, UINT64_MAX);
}

/* The host is ahead by 4 ms, 2 ms with peers, 0.1 ms where one of them goes first. */
static void the_host_is_ahead_by_so_much(void **state)
{
	static const struct {
		bool has_peers, is_yielding;
		uint64_t ahead_ns;
	} cases[] = {{false, false, 4 * MS}, {true, false, 2 * MS}, {true, true, 100 * US},
		{false, true, 100 * US}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct throttle_work w = {.has_work = true,
			.has_peers = cases[i].has_peers,
			.is_yielding = cases[i].is_yielding,
			.drained_ns = NOW + cases[i].ahead_ns};

		expect_work(w, THROTTLE_NONE, 0);
		w.drained_ns++;
		expect_work(w, THROTTLE_TOO_FAR, NOW + 1);
		w.drained_ns += 70 * MS;
		expect_work(w, THROTTLE_TOO_FAR, NOW + 70 * MS + 1);
	}
}

/* The slice's other processes, too: what they have given is before what one gives. Without others nobody waits for all of it. */
static void the_slice_is_ahead_by_no_more(void **state)
{
	struct throttle_work w = {.has_peers = true, .queued_until_ns = NOW + 2 * MS};

	expect_work(w, THROTTLE_NONE, 0);
	w.queued_until_ns++;
	expect_work(w, THROTTLE_QUEUED, NOW + 1);
	w.queued_until_ns += 70 * MS;
	expect_work(w, THROTTLE_QUEUED, NOW + 70 * MS + 1);
	w.has_peers = false;
	expect_work(w, THROTTLE_NONE, 0);
	w.has_peers = w.has_work = true;
	w.drained_ns = NOW + 5 * MS;
	expect_work(w, THROTTLE_TOO_FAR, NOW + 3 * MS);
}

static void work_that_is_late_or_fills_the_stream_is_polled(void **state)
{
	struct throttle_work w = {.has_work = true, .due_ns = NOW - THROTTLE_LATE_NS};

	expect_work(w, THROTTLE_NONE, 0);
	w.due_ns--;
	expect_work(w, THROTTLE_TOO_FAR, NOW + 50 * US);
	/* by others' time slices, where there are any */
	w.is_shared = true;
	w.due_ns = NOW - THROTTLE_LATE_NS - 2300 * US;
	expect_work(w, THROTTLE_NONE, 0);
	w.due_ns--;
	expect_work(w, THROTTLE_TOO_FAR, NOW + 50 * US);
	expect_work((struct throttle_work){.has_work = true, .is_full = true}, THROTTLE_TOO_FAR,
		NOW + 50 * US);
}

static void unknown_work_goes_one_by_one(void **state)
{
	struct throttle_work w = {.has_work = true, .is_unknown = true};

	expect_work(w, THROTTLE_NONE, 0);
	w.unknown_since_ns = NOW - 200 * US + 1;
	expect_work(w, THROTTLE_DRAINING, NOW + 50 * US);
	w.unknown_since_ns--;
	expect_work(w, THROTTLE_TOO_FAR, NOW + 50 * US);
	w.is_unknown = false; /* known work goes on behind it */
	expect_work(w, THROTTLE_NONE, 0);
}

/* All that can be known, each as it stands in the way (1) or not (0); the reason is the first in this order. */
static void the_reasons_have_an_order(void **state)
{
	for (unsigned bits = 0; bits < 64; bits++) {
		struct throttle_work w = {.is_suspended = bits & 1,
			.credit_ready_ns = bits & 2 ? NOW + 7 * MS : 0,
			.has_work = true,
			.drained_ns = bits & 4 ? NOW + 5 * MS : NOW,
			.is_full = bits & 8,
			.due_ns = bits & 16 ? NOW - MS : 0,
			.is_unknown = bits & 32,
			.unknown_since_ns = bits & 32 ? NOW : 0};

		if (bits & 1)
			expect_work(w, THROTTLE_SUSPENDED, NOW + 20 * MS);
		else if (bits & 2)
			expect_work(w, THROTTLE_NO_BUDGET, NOW + 7 * MS);
		else if (bits & 4)
			expect_work(w, THROTTLE_TOO_FAR, NOW + MS);
		else if (bits & (8 | 16))
			expect_work(w, THROTTLE_TOO_FAR, NOW + 50 * US);
		else
			expect_work(
				w, bits & 32 ? THROTTLE_DRAINING : THROTTLE_NONE, NOW + 50 * US);
	}
}

static void a_turn_is_kept_until_another_slice_wants_or_expects_it(void **state)
{
	for (unsigned bits = 0; bits < 8; bits++) {
		bool is_wanted = bits & 1, is_idle = bits & 4;
		struct throttle_turn t = {.now_ns = NOW,
			.busy_until_ns = NOW + MS,
			.is_wanted = is_wanted,
			.next_ns = bits & 2 ? NOW + 300 * US : 0,
			.is_idle = is_idle};
		enum throttle why = THROTTLE_NONE;
		uint64_t at = 0;
		enum throttle_step step = throttle_turn(&t, &why, &at);

		if (!is_wanted && !t.next_ns) {
			assert_int_equal(step, THROTTLE_KEEP);
		} else if (!is_idle) {
			assert_int_equal(step, THROTTLE_DRAIN);
			assert_int_equal(why, THROTTLE_DRAINING);
			assert_int_equal(at, NOW + MS);
		} else if (!t.next_ns) {
			assert_int_equal(step, THROTTLE_RELEASE);
		} else {
			assert_int_equal(step, THROTTLE_LEAVE);
			assert_int_equal(why, THROTTLE_YIELDING);
			assert_int_equal(at, NOW + 500 * US);
		}
		if (step == THROTTLE_KEEP || step == THROTTLE_RELEASE)
			assert_int_equal(at, 0);
	}
}

static void draining_is_exact_only_while_the_end_is_near(void **state)
{
	struct throttle_turn t = {
		.now_ns = NOW, .busy_until_ns = NOW - 200 * US + 1, .is_wanted = true};
	enum throttle why;
	uint64_t at;

	assert_int_equal(throttle_turn(&t, &why, &at), THROTTLE_DRAIN);
	assert_int_equal(why, THROTTLE_DRAINING);
	t.busy_until_ns--;
	assert_int_equal(throttle_turn(&t, &why, &at), THROTTLE_DRAIN);
	assert_int_equal(why, THROTTLE_TOO_FAR);
	assert_int_equal(at, t.busy_until_ns);
}

static void work_is_within_a_turn_by_its_middle(void **state)
{
	assert_int_equal(throttle_turn_moment(0, 0, 0, 0, NOW), NOW);
	assert_int_equal(throttle_turn_moment(8 * MS, 0, 0, 0, NOW), NOW + 4 * MS);
	assert_int_equal(throttle_turn_moment(8 * MS, 0, 0, NOW + MS, NOW), NOW + 5 * MS);
	assert_int_equal(throttle_turn_moment(8 * MS, 0, 0, NOW - MS, NOW), NOW + 4 * MS);
	/* what was saved makes it earlier, by half of the work and 0.3 ms at most; a debt nothing */
	assert_int_equal(throttle_turn_moment(8 * MS, MS, 0, 0, NOW), NOW + 3 * MS);
	assert_int_equal(throttle_turn_moment(8 * MS, 90 * MS, 0, 0, NOW), NOW - 300 * US);
	assert_int_equal(throttle_turn_moment(8 * MS, -MS, 0, 0, NOW), NOW + 4 * MS);
	/* What is owed makes it longer, and not by more than 24 ms. */
	assert_int_equal(throttle_turn_moment(8 * MS, 0, 3 * MS, 0, NOW), NOW + MS);
	assert_int_equal(throttle_turn_moment(8 * MS, 0, 90 * MS, 0, NOW), NOW - 20 * MS);
	/* whatever is saved */
	assert_int_equal(throttle_turn_moment(8 * MS, -MS, 3 * MS, 0, NOW), NOW + MS);
}

static void work_that_does_not_end_is_waited_for_a_quarter_of_a_second(void **state)
{
	uint64_t since_ns = 0;

	assert_false(throttle_is_stuck(THROTTLE_TOO_FAR, NOW, 0, NOW, &since_ns));
	assert_int_equal(since_ns, NOW);
	assert_false(throttle_is_stuck(THROTTLE_DRAINING, NOW, 0, NOW + 250 * MS, &since_ns));
	assert_true(throttle_is_stuck(THROTTLE_TOO_FAR, NOW, 0, NOW + 250 * MS + 1, &since_ns));
	/* from the beginning where it should not have ended yet, */
	assert_false(
		throttle_is_stuck(THROTTLE_TOO_FAR, NOW + 300 * MS, 0, NOW + 260 * MS, &since_ns));
	assert_int_equal(since_ns, 0);
	/* and where something else is waited for */
	for (int why = THROTTLE_NONE; why <= THROTTLE_UNKNOWN; why++) {
		since_ns = NOW;
		assert_int_equal(throttle_is_stuck(why, NOW, 0, NOW + 300 * MS, &since_ns),
			why == THROTTLE_TOO_FAR || why == THROTTLE_DRAINING);
	}
	/* as long again after something ended that it may wait for */
	since_ns = NOW;
	assert_false(throttle_is_stuck(
		THROTTLE_TOO_FAR, NOW, NOW + 200 * MS, NOW + 450 * MS, &since_ns));
	assert_true(throttle_is_stuck(
		THROTTLE_TOO_FAR, NOW, NOW + 200 * MS, NOW + 450 * MS + 1, &since_ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_holds_work_back_that_has_budget_and_an_empty_stream),
		cmocka_unit_test(a_suspended_slice_asks_again_after_the_longest_sleep),
		cmocka_unit_test(without_budget_work_waits_for_it_or_for_what_may_come_back),
		cmocka_unit_test(the_host_is_ahead_by_so_much),
		cmocka_unit_test(the_slice_is_ahead_by_no_more),
		cmocka_unit_test(work_that_is_late_or_fills_the_stream_is_polled),
		cmocka_unit_test(unknown_work_goes_one_by_one),
		cmocka_unit_test(the_reasons_have_an_order),
		cmocka_unit_test(a_turn_is_kept_until_another_slice_wants_or_expects_it),
		cmocka_unit_test(draining_is_exact_only_while_the_end_is_near),
		cmocka_unit_test(work_is_within_a_turn_by_its_middle),
		cmocka_unit_test(work_that_does_not_end_is_waited_for_a_quarter_of_a_second)};

	return cmocka_run_group_tests_name("throttle", tests, NULL, NULL);
}
