/* SPDX-License-Identifier: Apache-2.0 */
/* A budget of time, over whole traces with a clock of the test's own. */
#include "policy/budget.h"

#include <stdbool.h>

#include "base/bits.h"
#include "tests/stress/random.h"
#include "tests/unit/cmocka_ready.h"

#define STEP_NS	      64 /* of the balance */
#define MOMENT_NS     1024
#define DEEP_NS	      262144 /* steps and moments of a debt of more than 2.1 s */
#define US	      UINT64_C(1000)
#define MS	      UINT64_C(1000000)
#define SECOND	      UINT64_C(1000000000)
#define HOUR	      (3600 * SECOND)
#define BEGIN	      (5 * SECOND + 123456789)
#define BURST	      (10 * MS)
#define ROUND_NS      (UINT64_C(1) << 42) /* 73 minutes: the moments repeat */
#define SAVED_NS      137438953472ll	  /* the most that is saved up */
#define DEBT_NS	      281474976710656ll	  /* the most that is owed: 78 hours */
#define DEEP_ROUND_NS (UINT64_C(1) << 50) /* 13 days: the moments of such a debt repeat */

static const uint32_t rates[] = {1, 2, 7, 10, 99, 100, 300, 333, 500, 667, 901, 999, 1000};

/* A slice that wants more than it may have, and what it was given. */
struct trace {
	struct budget_rate rate;
	uint64_t word, now_ns;
	uint64_t begun_ns, given_ns, spends;
};

static struct trace trace_begin(uint32_t permille, uint64_t at_ns)
{
	struct trace t = {.rate = {.permille = permille, .burst_ns = BURST},
		.now_ns = at_ns,
		.begun_ns = at_ns};

	/* Nothing saved up, and the clock begins. */
	t.word = budget_spend(BUDGET_NONE, &t.rate, t.now_ns, 0);
	return t;
}

/* The next piece of work as soon as nothing is owed; the device works while the time passes. */
static void trace_give(struct trace *t, uint64_t cost_ns)
{
	t->now_ns += budget_wait_ns(t->word, &t->rate, t->now_ns);
	assert_true(budget_balance_ns(t->word, &t->rate, t->now_ns) >= 0);
	t->word = budget_spend(t->word, &t->rate, t->now_ns, (int64_t)cost_ns);
	t->given_ns += cost_ns;
	t->spends++;
	t->now_ns += cost_ns;
}

/* What was given is rate times time to a thousandth, but for the burst and the last piece. */
static void trace_check(const struct trace *t, uint64_t last_ns)
{
	uint64_t passed_ns = t->now_ns - t->begun_ns;
	double due = (double)passed_ns * t->rate.permille / 1000;
	double most = due * 1.001 + (double)(BURST + last_ns);
	double least = due * 0.999 - (double)(last_ns + 2 * MOMENT_NS);

	if ((double)t->given_ns > most || (double)t->given_ns < least)
		print_message("%u permille: %llu ns given in %llu ns, due are %.0f\n",
			t->rate.permille, (unsigned long long)t->given_ns,
			(unsigned long long)passed_ns, due);
	assert_true((double)t->given_ns <= most);
	assert_true((double)t->given_ns >= least);
}

static void a_day_of_long_work_gets_its_rate(void **state)
{
	struct random r = random_stream(1, 0);

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct trace t = trace_begin(rates[i], BEGIN);

		while (t.now_ns < BEGIN + 24 * HOUR)
			trace_give(&t, STEP_NS * (1 + random_below(&r, 10000000)));
		trace_check(&t, STEP_NS * UINT64_C(10000000));
	}
}

static void seconds_of_short_work_get_their_rate(void **state)
{
	static const unsigned most_steps[] = {1, 16, 100, 1000, 20000};
	struct random r = random_stream(2, 0);

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		for (size_t k = 0; k < ARRAY_SIZE(most_steps); k++) {
			struct trace t = trace_begin(rates[i], BEGIN);
			uint64_t end_ns = BEGIN + (most_steps[k] < 100 ? SECOND : 30 * SECOND);

			while (t.now_ns < end_ns && t.spends < 300000)
				trace_give(&t, STEP_NS * (1 + random_below(&r, most_steps[k])));
			trace_check(&t, STEP_NS * most_steps[k]);
		}
}

/* Each piece is off by half a step at most, and all together come out right. */
static void what_is_no_whole_number_of_steps_comes_out_right_in_all(void **state)
{
	static const unsigned mosts[] = {300, 5000, 100000};
	struct random r = random_stream(3, 0);
	struct trace t;

	for (size_t i = 0; i < ARRAY_SIZE(mosts); i++) {
		t = trace_begin(300, BEGIN);
		while (t.now_ns < BEGIN + 100 * SECOND && t.spends < 1000000)
			trace_give(&t, 1 + random_below(&r, mosts[i]));
		trace_check(&t, mosts[i]);
	}
	t = trace_begin(300, BEGIN);
	t.word = budget_spend(t.word, &t.rate, t.now_ns, STEP_NS / 2 - 1);
	assert_int_equal(budget_balance_ns(t.word, &t.rate, t.now_ns), 0);
	t.word = budget_spend(t.word, &t.rate, t.now_ns, STEP_NS / 2);
	assert_int_equal(budget_balance_ns(t.word, &t.rate, t.now_ns), -STEP_NS);
	t.word = budget_spend(t.word, &t.rate, t.now_ns, -STEP_NS / 2);
	assert_int_equal(budget_balance_ns(t.word, &t.rate, t.now_ns), 0);
}

/* Many look, and few spend: looks that take nothing must not lose what has grown. */
static void looking_often_loses_nothing(void **state)
{
	struct random r = random_stream(4, 0);

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct trace t = trace_begin(rates[i], BEGIN);

		for (unsigned k = 0; k < 100000; k++) {
			t.now_ns += 1 + random_below(&r, 3000);
			t.word = budget_spend(t.word, &t.rate, t.now_ns, 0);
			if (k % 50 == 0 && budget_balance_ns(t.word, &t.rate, t.now_ns) >= 0)
				trace_give(&t, 64 * US);
		}
		/* what is left, too, was given */
		t.given_ns += (uint64_t)budget_balance_ns(t.word, &t.rate, t.now_ns);
		if (rates[i] < 300) /* else there is more than is asked for */
			trace_check(&t, 64 * US);
	}
}

static void what_is_given_back_can_be_had_again(void **state)
{
	struct random r = random_stream(5, 0);
	struct trace t = trace_begin(250, BEGIN);

	while (t.now_ns < BEGIN + 60 * SECOND) {
		uint64_t back_ns = STEP_NS * random_below(&r, 8000);

		trace_give(&t, MS);
		/* Half of it was not needed; the device did not work for it. */
		t.word = budget_spend(t.word, &t.rate, t.now_ns, -(int64_t)back_ns);
		t.given_ns -= back_ns;
	}
	trace_check(&t, MS);
}

static void idle_time_is_saved_up_to_the_burst(void **state)
{
	static const uint64_t bursts[] = {0, BUDGET_MIN_BURST_NS, MS, BURST, SECOND, 200 * SECOND};
	struct random r = random_stream(6, 0);

	for (size_t i = 0; i < ARRAY_SIZE(bursts); i++) {
		struct budget_rate rate = {.permille = 300, .burst_ns = bursts[i]};
		int64_t most = (int64_t)(bursts[i] < BUDGET_MIN_BURST_NS ? BUDGET_MIN_BURST_NS
									 : bursts[i]);
		uint64_t now_ns = BEGIN, word = budget_spend(BUDGET_NONE, &rate, now_ns, 0);

		if (most > (int64_t)SAVED_NS)
			most = (int64_t)SAVED_NS;
		assert_true(budget_balance_ns(word, &rate, now_ns + HOUR) <= most);
		assert_true(budget_balance_ns(word, &rate, now_ns + HOUR) >= most - STEP_NS);
		for (unsigned k = 0; k < 200000; k++) {
			int64_t cost = (int64_t)random_below(&r, 20000000) - 10000000;

			now_ns += random_below(&r, 2) ? random_below(&r, 1000)
						      : random_below(&r, 100000000);
			word = budget_spend(word, &rate, now_ns, cost);
			assert_true(budget_balance_ns(word, &rate, now_ns) <= most);
		}
	}
}

static void a_word_that_was_never_used_is_empty(void **state)
{
	struct budget_rate rate = {.permille = 1000, .burst_ns = BURST};
	uint64_t word;

	assert_int_equal(budget_balance_ns(BUDGET_NONE, &rate, HOUR), 0);
	assert_int_equal(budget_wait_ns(BUDGET_NONE, &rate, HOUR), 0);
	/* also at the moment 0, which would be the same word */
	word = budget_spend(BUDGET_NONE, &rate, 1, 0);
	assert_int_not_equal(word, BUDGET_NONE);
	assert_int_equal(budget_balance_ns(word, &rate, ROUND_NS), 0);
	word = budget_spend(BUDGET_NONE, &rate, ROUND_NS, 0);
	assert_int_not_equal(word, BUDGET_NONE);
	assert_in_range(budget_balance_ns(word, &rate, ROUND_NS + 2 * MS), 1990 * US, 2 * MS);
}

static void work_goes_on_when_the_moments_repeat(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct trace t = trace_begin(rates[i], ROUND_NS - 3 * SECOND);

		while (t.now_ns < ROUND_NS + 3 * SECOND)
			trace_give(&t, 640 * US);
		trace_check(&t, 640 * US);
	}
}

/* Of a pause of any number of rounds at most a burst is left, and a debt is never made larger by it. */
static void a_pause_of_any_length_does_no_harm(void **state)
{
	struct budget_rate rate = {.permille = 500, .burst_ns = BURST};
	struct random r = random_stream(7, 0);

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t begin_ns = BEGIN + (uint64_t)random_below(&r, 1000000000) * US;
		uint64_t pause_ns = (uint64_t)random_below(&r, 4) * ROUND_NS +
				    (uint64_t)random_below(&r, 1000000000) * 4 * US;
		int64_t debt = (int64_t)random_below(&r, 1000000) * 1000;
		uint64_t word = budget_spend(BUDGET_NONE, &rate, begin_ns, debt);
		int64_t after = budget_balance_ns(word, &rate, begin_ns + pause_ns);

		assert_true(after <= (int64_t)BURST);
		assert_true(after >= -debt);
	}
	/* in the last second of a round it has saved nothing; before it is full */
	assert_int_equal(budget_balance_ns(budget_spend(BUDGET_NONE, &rate, BEGIN, 0), &rate,
				 BEGIN + ROUND_NS - SECOND / 2),
		0);
	assert_int_equal(budget_balance_ns(budget_spend(BUDGET_NONE, &rate, BEGIN, 0), &rate,
				 BEGIN + ROUND_NS - 2 * SECOND),
		BURST);
}

/* Work that is longer than what may be saved up, and charged when it is over. */
static void what_grows_while_work_runs_pays_for_it(void **state)
{
	struct budget_rate rate = {.permille = 300, .burst_ns = 1000000};
	uint64_t begun = BEGIN + SECOND, now = begun + SECOND;
	uint64_t word = budget_spend(BUDGET_NONE, &rate, BEGIN, 0), later;

	later = budget_spend_since(word, &rate, begun, now, (int64_t)SECOND);
	assert_in_range(-budget_balance_ns(later, &rate, now), SECOND * 7 / 10 - 1001000,
		SECOND * 7 / 10 - 999000);
	/* Where somebody has written the word since then, it is as if the work had begun there. */
	word = budget_spend(word, &rate, now - SECOND / 2, 0);
	later = budget_spend_since(word, &rate, begun, now, (int64_t)SECOND);
	assert_in_range(-budget_balance_ns(later, &rate, now), SECOND * 17 / 20 - 1001000,
		SECOND * 17 / 20 - 999000);
	/* And a first word begins with the work. */
	later = budget_spend_since(BUDGET_NONE, &rate, begun, now, (int64_t)SECOND);
	assert_in_range(-budget_balance_ns(later, &rate, now), SECOND * 7 / 10 - 1000,
		SECOND * 7 / 10 + 1000);
	/* Work of the future begins now. */
	later = budget_spend_since(word, &rate, now + SECOND, now, (int64_t)SECOND);
	assert_int_equal(later, budget_spend(word, &rate, now, (int64_t)SECOND));
}

/* Processors read the clock, are held up, and come with an old time. */
static void times_that_run_backwards_give_nothing_twice(void **state)
{
	struct random r = random_stream(8, 0);

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		struct trace t = trace_begin(rates[i], BEGIN);

		while (t.now_ns < BEGIN + 20 * SECOND) {
			uint64_t now_ns = t.now_ns;

			trace_give(&t, 64 * US);
			/* others spend and give back the same, each as of a time of its own */
			for (unsigned k = 0; k < 3; k++) {
				uint64_t late_ns = random_below(&r, 20000000);

				t.word = budget_spend(t.word, &t.rate,
					now_ns > BEGIN + late_ns ? now_ns - late_ns : BEGIN,
					k == 0	 ? 6400
					: k == 1 ? -6400
						 : 0);
			}
		}
		trace_check(&t, 64 * US);
	}
}

static void an_old_time_gives_nothing_to_who_has_saved_a_burst(void **state)
{
	struct budget_rate rate = {.permille = 500, .burst_ns = BURST};
	uint64_t word = budget_spend(BUDGET_NONE, &rate, BEGIN, 0), now_ns = BEGIN + SECOND;

	word = budget_spend(word, &rate, now_ns, 0);
	assert_int_equal(budget_balance_ns(word, &rate, now_ns), BURST);
	/* read 8 ms ago; until now nothing new may have grown */
	word = budget_spend(word, &rate, now_ns - 8 * MS, (int64_t)BURST);
	assert_int_equal(budget_balance_ns(word, &rate, now_ns), 0);
}

/* The rate changes every 50 ms to 2 s; who works meanwhile has as much as the rates say. */
static void a_rate_that_changes_holds_from_then_on(void **state)
{
	struct random r = random_stream(9, 0);
	struct trace t = trace_begin(100, BEGIN);
	double due = 0, changes_ns = 0;

	for (unsigned i = 0; i < 300; i++) {
		uint64_t from_ns = t.now_ns;
		uint64_t until_ns = from_ns + (50 + random_below(&r, 1950)) * MS;

		while (t.now_ns < until_ns)
			trace_give(&t, STEP_NS * (1 + random_below(&r, 16000)));
		due += (double)(t.now_ns - from_ns) * t.rate.permille / 1000;
		/*
		 * A piece in debt is paid by the new rate, and what had grown and was not booked is valued by
		 * it: at most a piece of 1 ms, and 65 us, of the old rate's budget.
		 */
		t.rate.permille = 50 + random_below(&r, 951);
		changes_ns += 2.0 * MS;
	}
	assert_true((double)t.given_ns <= due * 1.001 + BURST + changes_ns);
	assert_true((double)t.given_ns >= due * 0.999 - 2.0 * MS - changes_ns);
}

static void a_new_rate_gives_no_more_than_a_burst_for_the_past(void **state)
{
	struct budget_rate slow = {.permille = 1, .burst_ns = BURST};
	struct budget_rate fast = {.permille = 1000, .burst_ns = BURST};
	struct budget_rate none = {.permille = 0, .burst_ns = BURST};
	uint64_t word = budget_spend(BUDGET_NONE, &slow, BEGIN, 0);

	assert_int_equal(budget_balance_ns(word, &fast, BEGIN + HOUR), BURST);
	assert_int_equal(budget_balance_ns(word, &none, BEGIN + HOUR), 0);
	word = budget_spend(BUDGET_NONE, &none, BEGIN, STEP_NS);
	assert_int_equal(budget_balance_ns(word, &none, BEGIN + HOUR), -STEP_NS);
	assert_true(budget_wait_ns(word, &none, BEGIN + HOUR) == UINT64_MAX);
}

static void a_smaller_burst_holds_at_once(void **state)
{
	struct budget_rate wide = {.permille = 1000, .burst_ns = SECOND};
	struct budget_rate narrow = {.permille = 1000, .burst_ns = MS};
	uint64_t word = budget_spend(BUDGET_NONE, &wide, BEGIN, 0);

	word = budget_spend(word, &wide, BEGIN + HOUR / 2, 0);
	assert_int_equal(budget_balance_ns(word, &wide, BEGIN + HOUR / 2), SECOND);
	assert_int_equal(budget_balance_ns(word, &narrow, BEGIN + HOUR / 2), MS);
}

static void a_debt_is_paid_by_the_clock(void **state)
{
	static const uint64_t debts[] = {MS, 50 * MS, SECOND, 2 * SECOND, 3 * SECOND, 130 * SECOND,
		200 * SECOND, HOUR, 20 * HOUR, 77 * HOUR};

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++)
		for (size_t k = 0; k < ARRAY_SIZE(debts); k++) {
			struct trace t = trace_begin(rates[i], BEGIN);
			bool is_deep = debts[k] > 2 * SECOND;
			uint64_t step_ns = is_deep ? DEEP_NS : STEP_NS;
			uint64_t moment_ns = is_deep ? DEEP_NS : MOMENT_NS;
			uint64_t wait_ns, due_ns = debts[k] * 1000 / rates[i];

			t.word = budget_spend(t.word, &t.rate, t.now_ns, (int64_t)debts[k]);
			wait_ns = budget_wait_ns(t.word, &t.rate, t.now_ns);
			/* to the end of a moment, and a step that has not grown is none */
			assert_true(wait_ns + moment_ns > due_ns - step_ns * 1000u / rates[i]);
			assert_true(wait_ns <= due_ns + moment_ns + step_ns * 1000u / rates[i]);
		}
}

/* In one piece, or in many, of any length from where steps are small to where nothing more has room. */
static void a_debt_of_hours_is_held_in_full(void **state)
{
	struct budget_rate rate = {.permille = 1000, .burst_ns = BURST};
	uint64_t pieces_ns[] = {700 * MS, 5 * SECOND, 130 * SECOND, 150 * SECOND, HOUR};

	for (uint64_t debt = SECOND; debt < (uint64_t)DEBT_NS; debt += debt / 7) {
		uint64_t word = budget_spend(BUDGET_NONE, &rate, BEGIN, (int64_t)debt);

		assert_in_range(
			-budget_balance_ns(word, &rate, BEGIN), debt - DEEP_NS / 2, debt + DEEP_NS);
	}
	for (size_t i = 0; i < ARRAY_SIZE(pieces_ns); i++) {
		uint64_t word = budget_spend(BUDGET_NONE, &rate, BEGIN, 0), sum_ns = 0, count = 0;

		for (; sum_ns < 70 * HOUR && count < 200000; count++) {
			word = budget_spend(word, &rate, BEGIN, (int64_t)pieces_ns[i]);
			sum_ns += pieces_ns[i];
		}
		assert_in_range(-budget_balance_ns(word, &rate, BEGIN), sum_ns - count * DEEP_NS,
			sum_ns + count * DEEP_NS);
		/* And given back in as many, it is none. */
		for (uint64_t k = 0; k < count; k++)
			word = budget_spend(word, &rate, BEGIN, -(int64_t)pieces_ns[i]);
		assert_in_range(BURST + budget_balance_ns(word, &rate, BEGIN), BURST - 5 * DEEP_NS,
			BURST + 5 * DEEP_NS);
	}
}

static void a_debt_beyond_what_the_word_holds_is_forgiven(void **state)
{
	struct budget_rate rate = {.permille = 1000, .burst_ns = BURST};
	uint64_t word = budget_spend(BUDGET_NONE, &rate, BEGIN, 2 * DEBT_NS);

	assert_int_equal(budget_balance_ns(word, &rate, BEGIN), -DEBT_NS);
	word = budget_spend(word, &rate, BEGIN, INT64_C(400000000000));
	assert_int_equal(budget_balance_ns(word, &rate, BEGIN), -DEBT_NS);
	word = budget_spend(word, &rate, BEGIN, INT64_MAX / 2);
	assert_int_equal(budget_balance_ns(word, &rate, BEGIN), -DEBT_NS);
	word = budget_spend(word, &rate, BEGIN, -2 * DEBT_NS - STEP_NS);
	assert_true(budget_balance_ns(word, &rate, BEGIN) >= 0);
	word = budget_spend(word, &rate, BEGIN, 0);
	assert_true(budget_balance_ns(word, &rate, BEGIN) <= (int64_t)BURST);
	assert_true(budget_balance_ns(word, &rate, BEGIN) >= 0);
}

/* What a word of 128 bits would hold: the same, at each step of any trace, but for what each rounds. */
static void a_word_says_what_a_wider_one_would(void **state)
{
	struct random r = random_stream(11, 0);

	for (unsigned run = 0; run < 400; run++) {
		struct budget_rate rate = {
			.permille = rates[random_below(&r, ARRAY_SIZE(rates))], .burst_ns = BURST};
		uint64_t now_ns = BEGIN + (uint64_t)random_below(&r, 1000000000) * 5000;
		uint64_t word = budget_spend(BUDGET_NONE, &rate, now_ns, 0);
		double wide_ns = 0, off_ns = 0;

		for (unsigned k = 0; k < 300; k++) {
			uint64_t pause_ns = random_below(&r, 1000000000)
					    << random_below(&r, run % 2 ? 12 : 4);
			int64_t cost_ns = (int64_t)random_below(&r, 1000000000)
					  << random_below(&r, run % 2 ? 14 : 3);
			bool is_deep;

			now_ns += pause_ns;
			wide_ns += (double)pause_ns * rate.permille / 1000;
			wide_ns = (wide_ns > BURST ? BURST : wide_ns);
			if (random_below(&r, 5) == 0)
				cost_ns = -cost_ns / 8;
			wide_ns -= (double)cost_ns;
			wide_ns = (wide_ns > SAVED_NS ? SAVED_NS : wide_ns);
			wide_ns = (wide_ns < -DEBT_NS ? -DEBT_NS : wide_ns);
			word = budget_spend(word, &rate, now_ns, cost_ns);
			is_deep = budget_balance_ns(word, &rate, now_ns) < -(int64_t)SECOND;
			off_ns += is_deep ? 2.5 * DEEP_NS : STEP_NS + MOMENT_NS;
			off_ns += (double)pause_ns * rate.permille / 1000 / 1024;
			/* What is full forgets what it was off by. */
			if (wide_ns >= BURST)
				wide_ns = (double)budget_balance_ns(word, &rate, now_ns);
			assert_true((double)budget_balance_ns(word, &rate, now_ns) >=
				    wide_ns - off_ns - (double)DEEP_NS);
			if (wide_ns < BURST)
				assert_true((double)budget_balance_ns(word, &rate, now_ns) <=
					    wide_ns + off_ns + (double)DEEP_NS);
		}
	}
}

/* Of a debt of hours and a pause of any number of rounds: never larger by it, never paid before its time. */
static void a_long_debt_outlasts_any_pause(void **state)
{
	struct budget_rate rate = {.permille = 100, .burst_ns = BURST};
	struct random r = random_stream(12, 0);

	for (unsigned i = 0; i < 100000; i++) {
		int64_t debt = 3 * (int64_t)SECOND +
			       (int64_t)random_below(&r, 70 * 3600) * (int64_t)SECOND;
		uint64_t begin_ns = BEGIN + (uint64_t)random_below(&r, 1000000000) * 5 * US;
		uint64_t pause_ns = (uint64_t)random_below(&r, 2000000000) * 1500 * US;
		uint64_t word = budget_spend(BUDGET_NONE, &rate, begin_ns, debt);
		int64_t after = budget_balance_ns(word, &rate, begin_ns + pause_ns);
		double paid = (double)pause_ns / 10;

		assert_true(after >= -debt - DEEP_NS);
		assert_true(after <= (int64_t)BURST);
		assert_true((double)after <= -(double)debt + paid + 3.0 * DEEP_NS);
		if (pause_ns < DEEP_ROUND_NS - 2 * SECOND && paid < (double)debt)
			assert_true((double)after >= -(double)debt + paid - 3.0 * DEEP_NS);
	}
}

static void processors_that_read_another_time_do_not_pay_a_long_debt(void **state)
{
	struct budget_rate rate = {.permille = 1000, .burst_ns = BURST};
	struct random r = random_stream(13, 0);
	uint64_t now_ns = BEGIN, word = budget_spend(BUDGET_NONE, &rate, now_ns, (int64_t)HOUR);

	for (unsigned i = 0; i < 100000; i++) {
		now_ns += 3 * MS;
		word = budget_spend(word, &rate, now_ns - random_below(&r, 900000000),
			i % 3 == 0   ? 0
			: i % 3 == 1 ? (int64_t)MS
				     : -(int64_t)MS);
	}
	assert_in_range(-budget_balance_ns(word, &rate, now_ns), HOUR - 301 * SECOND,
		HOUR - 299 * SECOND + SECOND);
}

static void who_waits_as_told_owes_nothing_then_and_something_before(void **state)
{
	struct random r = random_stream(10, 0);

	for (unsigned i = 0; i < 200000; i++) {
		struct budget_rate rate = {
			.permille = 1 + random_below(&r, 1000), .burst_ns = BURST};
		uint64_t now_ns = BEGIN + (uint64_t)random_below(&r, 1000000) * 977;
		uint64_t word = budget_spend(BUDGET_NONE, &rate, now_ns, 0), wait_ns;

		word = budget_spend(word, &rate, now_ns, 1 + random_below(&r, 3000000));
		now_ns += random_below(&r, 1000000);
		wait_ns = budget_wait_ns(word, &rate, now_ns);
		assert_true(budget_balance_ns(word, &rate, now_ns + wait_ns) >= 0);
		assert_true(
			wait_ns == 0 || budget_balance_ns(word, &rate, now_ns + wait_ns - 1) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_day_of_long_work_gets_its_rate),
		cmocka_unit_test(seconds_of_short_work_get_their_rate),
		cmocka_unit_test(what_is_no_whole_number_of_steps_comes_out_right_in_all),
		cmocka_unit_test(looking_often_loses_nothing),
		cmocka_unit_test(what_is_given_back_can_be_had_again),
		cmocka_unit_test(idle_time_is_saved_up_to_the_burst),
		cmocka_unit_test(a_word_that_was_never_used_is_empty),
		cmocka_unit_test(work_goes_on_when_the_moments_repeat),
		cmocka_unit_test(a_pause_of_any_length_does_no_harm),
		cmocka_unit_test(what_grows_while_work_runs_pays_for_it),
		cmocka_unit_test(times_that_run_backwards_give_nothing_twice),
		cmocka_unit_test(an_old_time_gives_nothing_to_who_has_saved_a_burst),
		cmocka_unit_test(a_rate_that_changes_holds_from_then_on),
		cmocka_unit_test(a_new_rate_gives_no_more_than_a_burst_for_the_past),
		cmocka_unit_test(a_smaller_burst_holds_at_once),
		cmocka_unit_test(a_debt_is_paid_by_the_clock),
		cmocka_unit_test(a_debt_of_hours_is_held_in_full),
		cmocka_unit_test(a_debt_beyond_what_the_word_holds_is_forgiven),
		cmocka_unit_test(a_word_says_what_a_wider_one_would),
		cmocka_unit_test(a_long_debt_outlasts_any_pause),
		cmocka_unit_test(processors_that_read_another_time_do_not_pay_a_long_debt),
		cmocka_unit_test(who_waits_as_told_owes_nothing_then_and_something_before),
	};

	return cmocka_run_group_tests_name("budget", tests, NULL, NULL);
}
