/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the arithmetic of compute time alone delivers: slices of several streams work on a clock of the test's own,
 * by the budget and the union of busy time, without a driver.
 *
 * A stream gives its next piece when the slice owes nothing: what it is expected to take is spent, and when it
 * is done the difference to what it newly kept the device busy. Estimates are as wrong as a test says.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "policy/budget.h"
#include "region/busy.h"
#include "tests/stress/random.h"
#include "tests/unit/cmocka_ready.h"

#define US	    UINT64_C(1000)
#define MS	    UINT64_C(1000000)
#define SECOND	    UINT64_C(1000000000)
#define BEGIN_NS    (1234 * SECOND)
#define BURST	    (10 * MS)
#define STREAMS_MAX 8

struct stream {
	uint64_t
		free_ns; /* when it may give the next piece: its last one is done, and its pause over */
	uint64_t start_ns, end_ns; /* of the piece under way */
	int64_t reserved_ns;
	bool is_busy;
};

struct slice {
	struct budget_rate rate;
	uint64_t word, charged_ns, begun_ns;
	struct region_compute *ring;
	unsigned stream_count;
	struct stream streams[STREAMS_MAX];
	uint64_t least_ns, most_ns; /* of a piece of work */
	unsigned pause_us;	    /* after each piece, at most */
	unsigned estimate_percent;  /* of what a piece takes is expected; 0: at random, 0 to 200 */
	struct random random;
	int64_t deepest_ns; /* the most that was owed */
};

static uint64_t piece_ns(struct slice *s)
{
	return s->least_ns + random_below(&s->random, (unsigned)(s->most_ns - s->least_ns + 1));
}

static void spend(struct slice *s, uint64_t now_ns, int64_t ns)
{
	int64_t balance;

	s->word = budget_spend(s->word, &s->rate, now_ns, ns);
	balance = budget_balance_ns(s->word, &s->rate, now_ns);
	assert_true(balance <= (int64_t)s->rate.burst_ns);
	if (balance < s->deepest_ns)
		s->deepest_ns = balance;
}

static void finish(struct slice *s, struct stream *t)
{
	uint64_t fresh = busy_mark(s->ring, t->start_ns, t->end_ns);

	spend(s, t->end_ns, (int64_t)fresh - t->reserved_ns);
	s->charged_ns += fresh;
	t->is_busy = false;
	t->free_ns = t->end_ns;
	if (s->pause_us)
		t->free_ns += random_below(&s->random, s->pause_us * 1000);
}

static void start(struct slice *s, struct stream *t, uint64_t now_ns)
{
	uint64_t ns = piece_ns(s);
	unsigned percent =
		s->estimate_percent ? s->estimate_percent : random_below(&s->random, 201);

	t->is_busy = true;
	t->start_ns = now_ns;
	t->end_ns = now_ns + ns;
	/* What overlaps costs nothing twice, so only the first of them reserves. */
	t->reserved_ns = (int64_t)(ns * percent / 100 / s->stream_count);
	spend(s, now_ns, t->reserved_ns);
}

/* When something happens next to the stream. */
static uint64_t next_of(const struct slice *s, const struct stream *t, uint64_t now_ns)
{
	uint64_t ready_ns;

	if (t->is_busy)
		return t->end_ns;
	ready_ns = now_ns + budget_wait_ns(s->word, &s->rate, now_ns);
	return t->free_ns > ready_ns ? t->free_ns : ready_ns;
}

static void slice_begin(struct slice *s, uint64_t now_ns)
{
	s->ring = calloc(1, sizeof(*s->ring));
	assert_non_null(s->ring);
	s->word = budget_spend(BUDGET_NONE, &s->rate, now_ns, 0);
	s->begun_ns = now_ns;
	for (unsigned i = 0; i < s->stream_count; i++)
		s->streams[i].free_ns = now_ns;
}

/* Lets the time pass until then; the streams that come at the same time do so in turn. */
static uint64_t slice_run(struct slice *s, uint64_t now_ns, uint64_t until_ns)
{
	for (unsigned turn = 0;; turn++) {
		struct stream *next = NULL;
		uint64_t at_ns = UINT64_MAX;

		for (unsigned i = 0; i < s->stream_count; i++) {
			struct stream *t = &s->streams[(i + turn) % s->stream_count];
			uint64_t ns = next_of(s, t, now_ns);

			if (ns < at_ns) {
				at_ns = ns;
				next = t;
			}
		}
		if (at_ns >= until_ns)
			return until_ns;
		now_ns = at_ns > now_ns ? at_ns : now_ns;
		if (next->is_busy)
			finish(s, next);
		else if (budget_balance_ns(s->word, &s->rate, now_ns) >= 0)
			start(s, next, now_ns);
	}
}

/* In hundredths of a percent. */
static uint64_t share_of(const struct slice *s, uint64_t from_ns, uint64_t until_ns)
{
	uint64_t charged_ns = s->charged_ns;

	return charged_ns * 10000 / (until_ns - from_ns);
}

static void check_share(const struct slice *s, uint64_t until_ns, const char *what)
{
	uint64_t share = share_of(s, s->begun_ns, until_ns), want = s->rate.permille * 10u;

	if (share + 20 < want || share > want + 20)
		print_message("%s, %u streams at %u permille: %llu of 10000\n", what,
			s->stream_count, s->rate.permille, (unsigned long long)share);
	assert_in_range(share, want - 20, want + 20);
}

static const struct work {
	const char *what;
	uint64_t least_ns, most_ns;
} works[] = {
	{"20 us", 19 * US, 21 * US},
	{"20 to 300 us", 20 * US, 300 * US},
	{"1 ms", MS, MS},
	{"5 ms", 5 * MS, 5 * MS},
	{"50 ms", 50 * MS, 50 * MS},
	{"20 us to 50 ms", 20 * US, 50 * MS},
};

static const unsigned permilles[] = {10, 125, 300, 500, 900};
static const unsigned estimates[] = {100, 10, 1, 300, 0};

static struct slice make(
	const struct work *w, unsigned permille, unsigned streams, unsigned estimate)
{
	return (struct slice){.rate = {.permille = permille, .burst_ns = BURST},
		.stream_count = streams,
		.least_ns = w->least_ns,
		.most_ns = w->most_ns,
		.estimate_percent = estimate,
		.random = random_stream(permille, streams)};
}

/* So long that the last piece is less than a tenth of a percent. */
static uint64_t long_enough(const struct work *w)
{
	uint64_t ns = w->most_ns * 2000;

	return ns < 10 * SECOND ? 10 * SECOND : ns;
}

static void every_kind_of_work_gets_its_share(void **state)
{
	for (size_t w = 0; w < ARRAY_SIZE(works); w++)
		for (size_t p = 0; p < ARRAY_SIZE(permilles); p++)
			for (unsigned streams = 1; streams <= STREAMS_MAX; streams *= 2) {
				struct slice s = make(&works[w], permilles[p], streams, 100);
				uint64_t until_ns = BEGIN_NS + long_enough(&works[w]);

				slice_begin(&s, BEGIN_NS);
				slice_run(&s, BEGIN_NS, until_ns);
				check_share(&s, until_ns, works[w].what);
				free(s.ring);
			}
}

static void the_share_does_not_depend_on_what_estimates_are_worth(void **state)
{
	for (size_t w = 0; w < ARRAY_SIZE(works); w++)
		for (size_t g = 0; g < ARRAY_SIZE(estimates); g++) {
			struct slice s = make(&works[w], 300, 1, estimates[g]);
			uint64_t until_ns = BEGIN_NS + long_enough(&works[w]);

			slice_begin(&s, BEGIN_NS);
			slice_run(&s, BEGIN_NS, until_ns);
			/* What grows beyond the burst before a piece is charged is lost. */
			if (estimates[g] == 1 && works[w].most_ns * 300 / 1000 > BURST)
				assert_in_range(share_of(&s, BEGIN_NS, until_ns), 2000, 3020);
			else
				check_share(&s, until_ns, works[w].what);
			free(s.ring);
		}
}

/* What is owed is no more than what was given at once: a piece of each stream. */
static void a_debt_is_at_most_what_was_under_way(void **state)
{
	for (size_t w = 0; w < ARRAY_SIZE(works); w++)
		for (unsigned streams = 1; streams <= STREAMS_MAX; streams *= 2) {
			struct slice s = make(&works[w], 250, streams, 0);

			slice_begin(&s, BEGIN_NS);
			slice_run(&s, BEGIN_NS, BEGIN_NS + 10 * SECOND);
			assert_true(-s.deepest_ns <=
				    (int64_t)(streams + 1) * 2 * (int64_t)works[w].most_ns);
			free(s.ring);
		}
}

/* In no span of time is a slice given more than its rate, its burst, and what was under way. */
static void bursts_are_bounded_in_every_window(void **state)
{
	static const uint64_t windows_ns[] = {20 * MS, 100 * MS, SECOND};

	for (size_t i = 0; i < ARRAY_SIZE(windows_ns); i++) {
		struct slice s = make(&works[1], 300, 2, 100);
		uint64_t now_ns = BEGIN_NS, before_ns = 0;

		s.pause_us = 30000; /* so that there is something to save up */
		slice_begin(&s, now_ns);
		for (unsigned k = 0; k < 300; k++) {
			now_ns = slice_run(&s, now_ns, now_ns + windows_ns[i]);
			assert_true(s.charged_ns - before_ns <=
				    windows_ns[i] * 300 / 1000 + BURST + 3 * works[1].most_ns);
			before_ns = s.charged_ns;
		}
		free(s.ring);
	}
}

/* Idle for a second, then it works: at most the burst is ahead of the rate. */
static void after_a_pause_the_burst_is_all_that_is_had_at_once(void **state)
{
	struct slice s = make(&works[1], 100, 1, 100);
	uint64_t now_ns = BEGIN_NS + SECOND;

	slice_begin(&s, BEGIN_NS);
	s.streams[0].free_ns = now_ns;
	now_ns = slice_run(&s, now_ns, now_ns + 50 * MS);
	assert_in_range(s.charged_ns, BURST, BURST + 5 * MS + works[1].most_ns);
	free(s.ring);
}

static void who_asks_for_less_than_its_share_gets_all_of_it(void **state)
{
	struct slice s = make(&works[1], 500, 1, 100), free_one;
	uint64_t until_ns = BEGIN_NS + 20 * SECOND;

	s.pause_us = 1000; /* 160 us of work to 500 of pause */
	free_one = s;
	free_one.rate.permille = 1000;
	slice_begin(&s, BEGIN_NS);
	slice_begin(&free_one, BEGIN_NS);
	slice_run(&s, BEGIN_NS, until_ns);
	slice_run(&free_one, BEGIN_NS, until_ns);
	/* In a row of short pauses it may wait for some. */
	assert_in_range(s.charged_ns, free_one.charged_ns * 99 / 100, free_one.charged_ns);
	free(s.ring);
	free(free_one.ring);
}

static void a_new_rate_holds_from_then_on(void **state)
{
	struct slice s = make(&works[1], 300, 2, 100);
	uint64_t now_ns = BEGIN_NS, before_ns;

	slice_begin(&s, now_ns);
	for (unsigned i = 0; i < 20; i++) {
		before_ns = s.charged_ns;
		now_ns = slice_run(&s, now_ns, now_ns + 5 * SECOND);
		assert_in_range((s.charged_ns - before_ns) * 10000 / (5 * SECOND),
			s.rate.permille * 10u - 20, s.rate.permille * 10u + 20);
		s.rate.permille = i % 2 ? 300 : 600;
	}
	free(s.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_work_gets_its_share),
		cmocka_unit_test(the_share_does_not_depend_on_what_estimates_are_worth),
		cmocka_unit_test(a_debt_is_at_most_what_was_under_way),
		cmocka_unit_test(bursts_are_bounded_in_every_window),
		cmocka_unit_test(after_a_pause_the_burst_is_all_that_is_had_at_once),
		cmocka_unit_test(who_asks_for_less_than_its_share_gets_all_of_it),
		cmocka_unit_test(a_new_rate_holds_from_then_on),
	};

	return cmocka_run_group_tests_name("pacing", tests, NULL, NULL);
}
