/* SPDX-License-Identifier: Apache-2.0 */
/* The union of the time that streams and processes kept a device busy, against a map of single cells. */
#include "region/busy.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "policy/budget.h"
#include "tests/stress/random.h"
#include "tests/unit/cmocka_ready.h"

#define CELL_NS	 UINT64_C(4096) /* REGION_BUSY_CELL_NS */
#define WORD_NS	 (CELL_NS * REGION_BUSY_WORD_CELLS)
#define LAP_NS	 (WORD_NS * REGION_BUSY_WORDS)
#define MS	 UINT64_C(1000000)
#define SECOND	 (1000 * MS)
#define BEGIN_NS (1000 * LAP_NS + 77 * WORD_NS)

_Static_assert(REGION_BUSY_CELL_NS == CELL_NS, "spans here are told in cells");

static struct region_compute ring;

static int begin(void **state)
{
	memset(&ring, 0, sizeof(ring));
	return 0;
}

static uint64_t mark_cells(uint64_t first, uint64_t count)
{
	return busy_mark(&ring, BEGIN_NS + first * CELL_NS, BEGIN_NS + (first + count) * CELL_NS);
}

/* The same, a cell at a time. */
#define MAP_CELLS 140000 /* less than a span may be long */
static bool map[MAP_CELLS];

static uint64_t map_cells(uint64_t first, uint64_t count)
{
	uint64_t fresh = 0;

	for (uint64_t i = first; i < first + count; i++) {
		fresh += !map[i];
		map[i] = true;
	}
	return fresh * CELL_NS;
}

static void spans_of_whole_cells_are_exact_in_any_order(void **state)
{
	static const unsigned lengths[] = {1, 3, 47, 48, 49, 300, 5000, 100000};

	for (unsigned round = 0; round < 200; round++) {
		struct random r = random_stream(1, round);
		unsigned longest = lengths[round % ARRAY_SIZE(lengths)];
		uint64_t lap = round * 2u * LAP_NS / CELL_NS;

		memset(map, 0, sizeof(map));
		for (unsigned i = 0; i < 500; i++) {
			uint64_t count = 1 + random_below(&r, longest);
			uint64_t first = random_below(&r, (unsigned)(MAP_CELLS - count));

			assert_int_equal(mark_cells(lap + first, count), map_cells(first, count));
		}
	}
}

/* Streams report their batches in order, each its own, with pauses and without. */
#define STREAMS 8
static void what_streams_overlap_counts_once(void **state)
{
	for (unsigned round = 0; round < 20; round++) {
		struct random r = random_stream(2, round);
		uint64_t ends[STREAMS] = {0}, sum = 0, want = 0, taken = 0;
		unsigned streams = 1 + round % STREAMS;
		bool *busy = calloc(400000, sizeof(*busy)); /* of microseconds */

		assert_non_null(busy);
		begin(state);
		for (;;) {
			unsigned s = random_below(&r, streams);
			uint64_t start = ends[s] + random_below(&r, 2) * random_below(&r, 4000);
			uint64_t end = start + 200 + random_below(&r, 3000);

			if (end >= 400000)
				break;
			ends[s] = end;
			taken += end - start;
			sum += busy_mark(&ring, BEGIN_NS + start * 1000, BEGIN_NS + end * 1000);
			for (uint64_t us = start; us < end; us++) {
				want += !busy[us];
				busy[us] = true;
			}
		}
		free(busy);
		want *= 1000;
		/* Ends are rounded to cells, without a bias: to a cell for each of some spans. */
		if (sum > want + want / 500 + 40 * CELL_NS ||
			sum + want / 500 + 40 * CELL_NS < want)
			print_message("%u streams: %llu ns, %llu are right, of %llu us\n", streams,
				(unsigned long long)sum, (unsigned long long)want,
				(unsigned long long)taken);
		assert_true(sum <= want + want / 500 + 40 * CELL_NS);
		assert_true(sum + want / 500 + 40 * CELL_NS >= want);
	}
}

static void work_of_one_stream_counts_whole_however_short(void **state)
{
	struct random r = random_stream(3, 0);
	uint64_t at = BEGIN_NS, sum = 0, want = 0;

	/* Each is its own, no cell's middle in some of them, and two never share one. */
	for (unsigned i = 0; i < 100000; i++) {
		uint64_t end = at + 1 + random_below(&r, 20000);

		want += end - at;
		sum += busy_mark(&ring, at, end);
		at = end;
	}
	assert_int_equal(sum, want);
}

static void the_same_span_again_is_not_new(void **state)
{
	static const uint64_t lengths[] = {CELL_NS, 3 * CELL_NS + 5, WORD_NS, 5 * MS, 300 * MS};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t start = BEGIN_NS + i * 2 * LAP_NS + 1234567;

		assert_int_equal(busy_mark(&ring, start, start + lengths[i]), lengths[i]);
		assert_int_equal(busy_mark(&ring, start, start + lengths[i]), 0);
	}
}

static void a_span_without_length_is_nothing(void **state)
{
	assert_int_equal(busy_mark(&ring, BEGIN_NS, BEGIN_NS), 0);
	assert_int_equal(busy_mark(&ring, BEGIN_NS, BEGIN_NS - MS), 0);
	assert_int_equal(busy_mark(&ring, BEGIN_NS, 0), 0);
	for (unsigned i = 0; i < REGION_BUSY_WORDS; i++)
		assert_int_equal(ring.cells[i], 0);
	for (unsigned i = 0; i < REGION_BUSY_LONG_WORDS; i++)
		assert_int_equal(ring.long_cells[i], 0);
}

static void words_and_laps_join_without_a_gap(void **state)
{
	const uint64_t edges[] = {WORD_NS, LAP_NS, 65536 * LAP_NS, BEGIN_NS / LAP_NS * LAP_NS};

	for (size_t i = 0; i < ARRAY_SIZE(edges); i++) {
		uint64_t edge = edges[i];

		begin(state);
		assert_int_equal(busy_mark(&ring, edge - CELL_NS, edge), CELL_NS);
		assert_int_equal(busy_mark(&ring, edge, edge + CELL_NS), CELL_NS);
		assert_int_equal(busy_mark(&ring, edge - CELL_NS, edge + CELL_NS), 0);
		assert_int_equal(busy_mark(&ring, edge - WORD_NS, edge + WORD_NS),
			2 * WORD_NS - 2 * CELL_NS);
	}
}

static void the_clocks_first_lap_counts_as_well(void **state)
{
	assert_int_equal(busy_mark(&ring, 0, 3 * CELL_NS), 3 * CELL_NS);
	assert_int_equal(busy_mark(&ring, CELL_NS, 4 * CELL_NS), CELL_NS);
	assert_int_equal(busy_mark(&ring, 0, LAP_NS / 2), LAP_NS / 2 - 4 * CELL_NS);
}

#define LONG_CELL_NS UINT64_C(262144) /* REGION_BUSY_LONG_CELL_NS */

/* Of a span longer than the rings look back, only the end can have been there before. */
static void a_long_span_counts_whole_and_its_end_once(void **state)
{
	static const uint64_t lengths[] = {BUSY_SPAN_NS, BUSY_SPAN_NS + CELL_NS, LAP_NS,
		LAP_NS + WORD_NS, 5 * LAP_NS, BUSY_LONG_SPAN_NS, 3600 * 1000 * MS};

	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		uint64_t start = BEGIN_NS + 17 * CELL_NS, end = start + lengths[i], again = 0;

		begin(state);
		assert_int_equal(busy_mark(&ring, start, end), lengths[i]);
		if (lengths[i] > BUSY_LONG_SPAN_NS)
			again = lengths[i] - BUSY_LONG_SPAN_NS;
		assert_in_range(busy_mark(&ring, start, end), again, again + 2 * LONG_CELL_NS);
		assert_int_equal(busy_mark(&ring, end - BUSY_SPAN_NS, end), 0);
		assert_int_equal(busy_mark(&ring, end, end + MS), MS);
	}
}

/* Processes with a kernel of 100 ms each, which take 1.6 s beside each other; each is told whole, or as it runs. */
static void long_spans_of_many_processes_count_once(void **state)
{
	static const uint64_t pieces_ns[] = {1600 * MS, 800 * MS, 100 * MS, 20 * MS};
	const uint64_t all_ns = 16000 * MS;

	for (size_t i = 0; i < ARRAY_SIZE(pieces_ns); i++) {
		uint64_t piece_ns = pieces_ns[i], sum = 0;

		begin(state);
		for (uint64_t at = BEGIN_NS; at < BEGIN_NS + all_ns; at += piece_ns)
			for (unsigned process = 0; process < 16; process++)
				if (process % 2) {
					sum += busy_mark(&ring, at, at + piece_ns);
				} else {
					sum += busy_mark(&ring, at, at + piece_ns / 2);
					sum += busy_mark(&ring, at + piece_ns / 2, at + piece_ns);
				}
		assert_in_range(sum, all_ns, all_ns * 102 / 100);
	}
}

/* Short work, once in each long cell, hides nothing of long work beside it. */
static void what_is_short_hides_nothing_of_what_is_long(void **state)
{
	uint64_t sum = 0, end = BEGIN_NS + 8 * SECOND;

	for (uint64_t at = BEGIN_NS; at < end; at += LONG_CELL_NS)
		sum += busy_mark(&ring, at + LONG_CELL_NS / 2 - 4 * CELL_NS,
			at + LONG_CELL_NS / 2 + 4 * CELL_NS);
	assert_true(sum + busy_mark(&ring, BEGIN_NS, end) >= 8 * SECOND);
}

/* What all of them had together is theirs, in whichever order it is told. */
static void what_is_long_is_never_less_than_was_there(void **state)
{
	for (unsigned round = 0; round < 300; round++) {
		struct random r = random_stream(6, round);
		uint64_t sum = 0, first = UINT64_MAX, last = 0;

		begin(state);
		for (unsigned i = 0; i < 40; i++) {
			uint64_t length = random_below(&r, 3000) * MS + 1;
			uint64_t start = BEGIN_NS + (i ? random_below(&r, 3000) * MS : 0);

			/* each touches what is there, so that the whole is one stretch */
			if (start > last && last)
				start = last;
			if (start < first)
				first = start;
			if (start + length > last)
				last = start + length;
			sum += busy_mark(&ring, start, start + length);
		}
		assert_true(sum + 40 * CELL_NS >= last - first);
	}
}

static void what_is_told_a_lap_late_is_new_and_wipes_nothing(void **state)
{
	for (uint64_t late = 1; late <= 4; late++) {
		uint64_t now = BEGIN_NS + late * LAP_NS;

		begin(state);
		assert_int_equal(busy_mark(&ring, now, now + 10 * MS), 10 * MS);
		/* of that lap the ring knows nothing any more */
		assert_int_equal(busy_mark(&ring, BEGIN_NS, BEGIN_NS + 10 * MS), 10 * MS);
		assert_int_equal(busy_mark(&ring, now, now + 10 * MS), 0);
	}
}

/* A process pauses, and settles what it gave before the pause when it comes back: no lap is told from a later. */
static void what_is_told_long_after_is_overtaken_again(void **state)
{
	static const uint64_t late_laps[] = {5, 20, 75, 700, 4000};

	for (size_t i = 0; i < ARRAY_SIZE(late_laps); i++) {
		uint64_t now = BEGIN_NS + late_laps[i] * LAP_NS;

		begin(state);
		assert_int_equal(busy_mark(&ring, now, now + 10 * MS), 10 * MS);
		assert_int_equal(busy_mark(&ring, BEGIN_NS, BEGIN_NS + MS), MS);
		assert_true(busy_mark(&ring, now, now + 10 * MS) <= MS + WORD_NS);
		assert_int_equal(busy_mark(&ring, now, now + 10 * MS), 0);
	}
}

static void an_older_lap_is_overtaken(void **state)
{
	static const uint64_t laps[] = {1, 2, 5, 100, 32768, 60000, 65531, 65537, 100000};

	for (size_t i = 0; i < ARRAY_SIZE(laps); i++) {
		uint64_t now = BEGIN_NS + laps[i] * LAP_NS;

		begin(state);
		assert_int_equal(busy_mark(&ring, BEGIN_NS, BEGIN_NS + 10 * MS), 10 * MS);
		assert_int_equal(busy_mark(&ring, now, now + 10 * MS), 10 * MS);
		assert_int_equal(busy_mark(&ring, now, now + 10 * MS), 0);
	}
}

static void never_more_is_new_than_was_told(void **state)
{
	struct random r = random_stream(4, 0);
	uint64_t now = BEGIN_NS;

	for (unsigned i = 0; i < 100000; i++) {
		uint64_t length = 1 + random_below(&r, i % 100 ? 3000000 : 2000000000);
		uint64_t back = random_below(&r, 2000000000), fresh;

		now += random_below(&r, 1000000);
		fresh = busy_mark(&ring, now - back, now - back + length);
		assert_true(fresh <= length);
	}
}

/* Threads mark the same 500 ms: each of its cells is new to one of them. */
#define THREADS	     4
#define THREAD_SPANS 4000
static uint64_t new_ns[THREADS];

static struct random spans_of(unsigned thread)
{
	return random_stream(5, thread);
}

static uint64_t next_span(struct random *r, uint64_t *ret_first)
{
	uint64_t count = 1 + random_below(r, 250);

	*ret_first = random_below(r, (unsigned)(MAP_CELLS - count));
	return count;
}

static void *mark_spans(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	struct random r = spans_of(thread);
	uint64_t first, count;

	for (unsigned i = 0; i < THREAD_SPANS; i++) {
		count = next_span(&r, &first);
		new_ns[thread] += mark_cells(first, count);
	}
	return NULL;
}

static void what_threads_mark_at_the_same_time_counts_once(void **state)
{
	pthread_t threads[THREADS];
	uint64_t sum = 0, want = 0, first, count;

	memset(new_ns, 0, sizeof(new_ns));
	memset(map, 0, sizeof(map));
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, mark_spans, (void *)(uintptr_t)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		struct random r = spans_of(i);

		assert_int_equal(pthread_join(threads[i], NULL), 0);
		sum += new_ns[i];
		for (unsigned k = 0; k < THREAD_SPANS; k++) {
			count = next_span(&r, &first);
			want += map_cells(first, count);
		}
	}
	assert_int_equal(sum, want);
}

/* The same of spans that are long and short: none of the time is nobody's, whoever is first in which ring. */
#define LONG_THREADS 4
#define LONG_ROUNDS  3000
static pthread_barrier_t round_begins;

static void *mark_long_spans(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;
	struct random r = random_stream(7, thread);

	for (uint64_t round = 0; round < LONG_ROUNDS; round++) {
		uint64_t start = BEGIN_NS + round * 3 * SECOND;
		uint64_t ms = thread ? 500 + random_below(&r, 1500) : 2000;

		/* all end at the same time, as work does that runs beside each other */
		pthread_barrier_wait(&round_begins);
		new_ns[thread] += busy_mark(&ring, start + (2000 - ms) * MS, start + 2 * SECOND);
	}
	return NULL;
}

static void of_long_spans_at_the_same_time_nothing_is_lost(void **state)
{
	pthread_t threads[LONG_THREADS];
	uint64_t sum = 0;

	memset(new_ns, 0, sizeof(new_ns));
	assert_int_equal(pthread_barrier_init(&round_begins, NULL, LONG_THREADS), 0);
	for (unsigned i = 0; i < LONG_THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, mark_long_spans, (void *)(uintptr_t)i),
			0);
	for (unsigned i = 0; i < LONG_THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], NULL), 0);
		sum += new_ns[i];
	}
	pthread_barrier_destroy(&round_begins);
	assert_in_range(sum, LONG_ROUNDS * 2 * SECOND,
		LONG_ROUNDS * (2 * SECOND + LONG_THREADS * 2 * LONG_CELL_NS));
}

static void what_the_dead_left_is_charged_until_now_and_no_longer_than_ten_seconds(void **state)
{
	const uint64_t now = 100 * SECOND, cap = UINT64_C(300) << 32;
	struct budget_rate rate = {.permille = 300};
	static struct region_compute c;

	memset(&c, 0, sizeof(c));
	atomic_store(&c.limits, UINT64_C(200) << 48 | cap | REGION_COMPUTE_LIMITED);
	busy_charge_left(&c, now - SECOND / 2, 0, 0, now);
	assert_in_range(c.busy_ns, SECOND / 2 - 5000, SECOND / 2);
	assert_int_equal(c.elapsed_ns, c.busy_ns);
	/* Less what has grown meanwhile: 30 % to the ceiling, 20 to the other. */
	assert_in_range(-budget_balance_ns(c.ceiling, &rate, now), SECOND * 35 / 100 - 10000,
		SECOND * 35 / 100 + 1000);
	rate.permille = 200;
	assert_in_range(-budget_balance_ns(c.budget, &rate, now), SECOND * 40 / 100 - 10000,
		SECOND * 40 / 100 + 1000);
	/* The same time again is not new. */
	busy_charge_left(&c, now - SECOND / 2, 0, 0, now);
	assert_in_range(c.busy_ns, SECOND / 2 - 5000, SECOND / 2);
	/* The future, as after a new start of the machine, is nothing. */
	busy_charge_left(&c, now + 1, 0, 0, now);
	busy_charge_left(&c, now, 0, 0, now);
	assert_in_range(c.busy_ns, SECOND / 2 - 5000, SECOND / 2);
	memset(&c, 0, sizeof(c));
	atomic_store(&c.limits, cap);
	busy_charge_left(&c, now - 60 * SECOND, 0, 0, now);
	assert_in_range(c.busy_ns, 10 * SECOND - 10000, 10 * SECOND);
	/* Without a limit nothing is owed to one. */
	assert_int_equal(c.ceiling, 0);
}

static uint64_t charge_until(uint64_t since_ns, uint64_t ended_ns, uint64_t now_ns)
{
	static struct region_compute c;

	memset(&c, 0, sizeof(c));
	busy_charge_left(&c, since_ns, 0, ended_ns, now_ns);
	return c.busy_ns;
}

static void what_the_dead_left_is_charged_until_none_of_the_slice_lived(void **state)
{
	const uint64_t now = 100 * SECOND, since = now - 12 * SECOND, all = 10 * SECOND;

	assert_in_range(
		charge_until(since, since + SECOND / 4, now), SECOND / 4 - 5000, SECOND / 4);
	assert_in_range(
		charge_until(since, since + 11 * SECOND, now), 11 * SECOND - 10000, 11 * SECOND);
	/* An end before it began, or to come, is of another. */
	assert_in_range(charge_until(since, since, now), all - 10000, all);
	assert_in_range(charge_until(since, 1, now), all - 10000, all);
	assert_in_range(charge_until(since, now + 1, now), all - 10000, all);
	assert_in_range(charge_until(since, UINT64_MAX, now), all - 10000, all);
	assert_int_equal(charge_until(0, now - SECOND, now), 0);
	assert_int_equal(charge_until(now + 1, now - SECOND, now), 0);
}

#define STEP_NS (SECOND / 10)

static void what_nobody_looks_after_is_charged_once_and_no_longer_than_the_dead_is(void **state)
{
	const uint64_t looked = 100 * SECOND, begun = looked - SECOND;
	static struct region_compute c;
	_Atomic uint64_t since = begun | REGION_BUSY_AWAITED;

	memset(&c, 0, sizeof(c));
	busy_charge_unattended(&c, &since, looked, looked + SECOND);
	assert_in_range(c.busy_ns, 2 * SECOND - 10000, 2 * SECOND);
	assert_int_equal(since, (looked + SECOND) | REGION_BUSY_AWAITED);
	/* The same time again is nothing, and less than a step waits. */
	busy_charge_unattended(&c, &since, looked, looked + SECOND);
	busy_charge_unattended(&c, &since, looked, looked + SECOND + STEP_NS / 2);
	assert_in_range(c.busy_ns, 2 * SECOND - 10000, 2 * SECOND);
	for (unsigned i = 2; i < 60; i++)
		busy_charge_unattended(&c, &since, looked, looked + i * SECOND);
	assert_in_range(c.busy_ns, 11 * SECOND - 20000, 11 * SECOND + 20000);
	/* That was too little, so the next one is charged for twice as long. */
	since = 200 * SECOND;
	for (unsigned i = 0; i < 60; i++)
		busy_charge_unattended(&c, &since, 200 * SECOND, (200 + i) * SECOND);
	assert_in_range(c.busy_ns, 31 * SECOND - 40000, 31 * SECOND + 40000);
}

static void what_is_looked_after_or_not_there_is_not_charged(void **state)
{
	static struct region_compute c;
	_Atomic uint64_t none = 0, since = 90 * SECOND;

	memset(&c, 0, sizeof(c));
	busy_charge_unattended(&c, &none, 80 * SECOND, 100 * SECOND);
	/* One that has not looked yet, and clocks that began anew. */
	busy_charge_unattended(&c, &since, 0, 100 * SECOND);
	busy_charge_unattended(&c, &since, 101 * SECOND, 100 * SECOND);
	busy_charge_unattended(&c, &since, 80 * SECOND, 85 * SECOND);
	assert_int_equal(c.busy_ns, 0);
	assert_int_equal(c.left, 0);
	assert_int_equal(since, 90 * SECOND);
}

/* A slice that others kept waiting had 90 ms to have back, and a death left 65 us of them. */
static void what_the_slice_saved_up_pays_for_what_the_dead_left(void **state)
{
	const struct budget_rate rate = {.permille = 500, .burst_ns = 100 * MS};
	uint64_t now = 1000 * SECOND;
	struct region_compute c = {
		.limits = UINT64_C(500) << 48 | UINT64_C(500) << 32 | REGION_COMPUTE_LIMITED};

	c.budget = c.ceiling = budget_spend(BUDGET_NONE, &rate, now, -90 * (int64_t)MS);
	busy_charge_left(&c, now - 20 * MS, 0, now, now);
	assert_in_range(budget_balance_ns(c.budget, &rate, now), 69 * MS, 71 * MS);
	assert_in_range(budget_balance_ns(c.ceiling, &rate, now), 69 * MS, 71 * MS);
}

static void who_dies_with_long_work_again_and_again_is_charged_more_of_it(void **state)
{
	static struct region_compute c;
	uint64_t now = 100 * SECOND, charged = 0;

	memset(&c, 0, sizeof(c));
	/* Several that are found at once, and one after the other. */
	for (unsigned i = 0; i < 4; i++)
		busy_charge_left(&c, now - 40 * SECOND - i * 10 * SECOND, 0, 0, now);
	assert_in_range(c.busy_ns, 39 * SECOND, 41 * SECOND);
	for (unsigned i = 0; i < 3; i++) {
		charged = c.busy_ns;
		now += 41 * SECOND;
		busy_charge_left(&c, now - 40 * SECOND, 0, 0, now);
		charged = c.busy_ns - charged;
		assert_in_range(charged, (i ? 40 : 20) * SECOND - 10000, (i ? 40 : 20) * SECOND);
	}
}

static void what_the_dead_took_in_advance_pays_for_their_work(void **state)
{
	const uint64_t now = 100 * SECOND, cap = UINT64_C(300) << 32, ms = 1000000;
	struct budget_rate rate = {.permille = 300};
	static struct region_compute c;

	memset(&c, 0, sizeof(c));
	atomic_store(&c.limits, cap | REGION_COMPUTE_LIMITED);
	atomic_store(
		&c.ceiling, budget_spend(BUDGET_NONE, &rate, now - 50 * ms, (int64_t)(4 * ms)));
	busy_charge_left(&c, now - 50 * ms, (int64_t)(4 * ms), 0, now);
	/* What has grown while it ran is not lost, however little may be saved up. */
	assert_in_range(
		-budget_balance_ns(c.ceiling, &rate, now), 35 * ms - 10000, 35 * ms + 10000);
	/* One without work under way only has something taken. */
	memset(&c, 0, sizeof(c));
	atomic_store(&c.limits, cap | REGION_COMPUTE_LIMITED);
	atomic_store(&c.ceiling, budget_spend(BUDGET_NONE, &rate, now, (int64_t)(4 * ms)));
	busy_charge_left(&c, 0, (int64_t)(4 * ms), 0, now);
	assert_in_range(budget_balance_ns(c.ceiling, &rate, now), 0, 100);
	assert_int_equal(c.elapsed_ns, 0);
	/* Or owes, and no word is believed without a bound. */
	busy_charge_left(&c, 0, -(int64_t)(4 * ms), 0, now);
	assert_in_range(-budget_balance_ns(c.ceiling, &rate, now), 4 * ms - 10000, 4 * ms);
	busy_charge_left(&c, 0, INT64_MIN, 0, now);
	busy_charge_left(&c, 0, INT64_MAX, 0, now);
	assert_in_range(-budget_balance_ns(c.ceiling, &rate, now), 0, 4 * ms);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, begin)
	const struct CMUnitTest tests[] = {
		TEST(spans_of_whole_cells_are_exact_in_any_order),
		TEST(what_streams_overlap_counts_once),
		TEST(work_of_one_stream_counts_whole_however_short),
		TEST(the_same_span_again_is_not_new),
		TEST(a_span_without_length_is_nothing),
		TEST(words_and_laps_join_without_a_gap),
		TEST(the_clocks_first_lap_counts_as_well),
		TEST(a_long_span_counts_whole_and_its_end_once),
		TEST(long_spans_of_many_processes_count_once),
		TEST(what_is_short_hides_nothing_of_what_is_long),
		TEST(what_is_long_is_never_less_than_was_there),
		TEST(what_is_told_a_lap_late_is_new_and_wipes_nothing),
		TEST(what_is_told_long_after_is_overtaken_again),
		TEST(an_older_lap_is_overtaken),
		TEST(never_more_is_new_than_was_told),
		TEST(what_threads_mark_at_the_same_time_counts_once),
		TEST(of_long_spans_at_the_same_time_nothing_is_lost),
		TEST(what_the_dead_left_is_charged_until_now_and_no_longer_than_ten_seconds),
		TEST(what_the_dead_left_is_charged_until_none_of_the_slice_lived),
		TEST(what_the_slice_saved_up_pays_for_what_the_dead_left),
		TEST(who_dies_with_long_work_again_and_again_is_charged_more_of_it),
		TEST(what_nobody_looks_after_is_charged_once_and_no_longer_than_the_dead_is),
		TEST(what_is_looked_after_or_not_there_is_not_charged),
		TEST(what_the_dead_took_in_advance_pays_for_their_work),
	};

	return cmocka_run_group_tests_name("busy", tests, NULL, NULL);
}
