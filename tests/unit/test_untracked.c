/* SPDX-License-Identifier: Apache-2.0 */
/* What of a slice's elapsed time counts, by traces of the driver's samples. */
#include "policy/untracked.h"

#include "base/bits.h"

#include "tests/unit/cmocka_ready.h"

#define SECOND_NS UINT64_C(1000000000)
#define WINDOW	  UNTRACKED_SAMPLES /* in seconds, with one sample in each */

/* A slice and its device, second by second. */
struct trace {
	struct untracked untracked;
	struct untracked_reading reading;
	uint32_t permille;
	uint64_t random;
};

static struct trace begin(void)
{
	return (struct trace){.reading = {.now_ns = 1000 * SECOND_NS}, .random = 1};
}

static uint32_t next_random(struct trace *t)
{
	t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(t->random >> 33);
}

/* One second in which so much elapsed for the slice, and the driver says so; in percent. */
static uint32_t pass(struct trace *t, uint32_t elapsed, uint32_t slice, uint32_t device)
{
	t->reading.now_ns += SECOND_NS;
	t->reading.elapsed_ns += elapsed * SECOND_NS / 100;
	t->reading.samples = slice > 0;
	t->reading.slice_percent = slice;
	t->reading.device_percent = device;
	t->permille = untracked_note(&t->untracked, &t->reading);
	return t->permille;
}

static uint32_t pass_many(
	struct trace *t, unsigned seconds, uint32_t elapsed, uint32_t slice, uint32_t device)
{
	for (unsigned i = 0; i < seconds; i++)
		pass(t, elapsed, slice, device);
	return t->permille;
}

/* What an H200 says of a process that has half of the busy device: sixths, as they come. */
static uint32_t half_in_sixths(struct trace *t)
{
	static const uint32_t seen[] = {33, 50, 66, 33, 66, 50, 99, 0};

	return seen[next_random(t) % 8];
}

static void alone_everything_counts(void **state)
{
	struct trace t = begin();

	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(pass(&t, 30, 29 + next_random(&t) % 2, 30), 1000);
}

static void half_of_what_elapsed_counts_beside_one_that_takes_half(void **state)
{
	struct trace t = begin();

	/* to its limit by the events, which is half of it */
	assert_int_equal(pass_many(&t, 2 * WINDOW, 40, 20, 100), 1000);
	assert_int_equal(pass(&t, 40, 20, 100), 750);
	assert_int_equal(pass_many(&t, WINDOW, 53, 27, 100), 503);
	for (unsigned i = 0; i < 200; i++)
		assert_in_range(pass(&t, 80, 40, 100), 490, 510);
}

static void sixths_are_as_good_in_the_mean(void **state)
{
	struct trace t = begin();
	uint64_t sum = 0, strays = 0;

	for (unsigned i = 0; i < 100; i++)
		pass(&t, 100, half_in_sixths(&t), 100);
	for (unsigned i = 0; i < 10000; i++) {
		sum += pass(&t, 100, half_in_sixths(&t), 100);
		strays += t.permille < 400 || t.permille > 700;
	}
	assert_in_range(sum / 10000, 470, 570);
	assert_in_range(strays, 0, 500);
}

static void more_samples_make_a_window_shorter_but_not_than_its_time(void **state)
{
	struct trace t = begin();

	for (unsigned i = 0; i <= 20; i++) {
		assert_int_equal(t.untracked.permille ? t.untracked.permille : 1000, 1000);
		t.reading.now_ns += SECOND_NS;
		t.reading.elapsed_ns += SECOND_NS;
		t.reading.samples = 5;
		t.reading.slice_percent = 50;
		t.reading.device_percent = 100;
		untracked_note(&t.untracked, &t.reading);
	}
	assert_int_equal(t.untracked.permille, 750);
}

/* Six looks in a second whom the device works for, of which so many in 100 fall into the slice's work. */
static uint32_t six_looks(struct trace *t, uint32_t percent)
{
	uint32_t seen = 0;

	for (unsigned i = 0; i < 6; i++)
		seen += next_random(t) % 100 < percent;
	return seen * 100 / 6;
}

static uint32_t pass_looked_at(struct trace *t, uint32_t elapsed, uint32_t own)
{
	uint32_t slice = six_looks(t, own);

	t->reading.others_percent = 95 > slice ? 95 - slice : 0;
	return pass(t, elapsed, slice, 95);
}

/* Two windows that show too little by chance charged a slice of 30 % too little in six of 28 runs of two minutes, and too much in one. */
static void looks_that_miss_a_slice_by_chance_change_nothing(void **state)
{
	static const uint32_t parts[] = {5, 10, 20, 30, 40, 60};

	for (unsigned run = 0; run < 600; run++) {
		struct trace t = begin();
		uint32_t part = parts[run % 6];

		t.random = run * 7919 + 1;
		for (unsigned s = 0; s < 120; s++)
			assert_int_equal(pass_looked_at(&t, part, part), 1000);
	}
}

/* In the mean of runs; and then what is charged stays near it. */
static void looks_show_what_is_anothers_within_some_windows(void **state)
{
	static const struct {
		uint32_t elapsed, own, within_s;
	} cases[] = {{60, 30, 35}, {30, 15, 45}, {30, 10, 35}, {60, 40, 40}, {40, 30, 135}};

	for (unsigned c = 0; c < ARRAY_SIZE(cases); c++) {
		unsigned sum_s = 0;

		for (unsigned run = 0; run < 100; run++) {
			struct trace t = begin();
			unsigned s = 1;

			t.random = run * 7919 + 1;
			while (pass_looked_at(&t, cases[c].elapsed, cases[c].own) == 1000)
				s++;
			sum_s += s;
		}
		print_message(
			"%u of %u %%: after %u s\n", cases[c].own, cases[c].elapsed, sum_s / 100);
		assert_in_range(sum_s / 100, 2 * WINDOW, cases[c].within_s);
	}
}

/* The same the other way round. */
static void looks_that_hit_a_slice_too_often_are_charged(void **state)
{
	unsigned sum_s = 0;

	for (unsigned run = 0; run < 100; run++) {
		struct trace t = begin();

		t.random = run * 7919 + 1;
		while (pass_looked_at(&t, 15, 30) == 1000)
			sum_s++;
		assert_in_range(t.permille, 1250, 3500);
	}
	print_message("after %u s\n", sum_s / 100);
	assert_in_range(sum_s / 100, 2 * WINDOW - 1, 45);
}

static void once_is_not_believed(void **state)
{
	struct trace t = begin();

	pass(&t, 40, 40, 40);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(pass_many(&t, WINDOW, 40, 20, 100), 1000);
		assert_int_equal(pass_many(&t, WINDOW, 40, 40, 100), 1000);
	}
}

static void a_little_less_is_noise(void **state)
{
	struct trace t = begin();

	assert_int_equal(pass_many(&t, 500, 40, 35, 100), 1000);
}

static void a_process_that_goes_is_forgotten_after_some_readings(void **state)
{
	struct trace t = begin();

	pass_many(&t, 5 * WINDOW + 1, 80, 40, 100);
	assert_int_equal(t.permille, 500);
	assert_int_equal(pass_many(&t, 4, 73, 73, 73), 500);
	assert_int_equal(pass(&t, 73, 73, 73), 1000);
	/* and one that comes again is to be learned again */
	assert_int_equal(pass_many(&t, 2 * WINDOW - 1, 40, 20, 100), 1000);
	assert_int_equal(pass_many(&t, 2, 40, 20, 100), 750);
}

static void and_one_that_takes_less_charges_more_at_once(void **state)
{
	struct trace t = begin();

	pass_many(&t, 5 * WINDOW + 1, 80, 40, 100);
	assert_int_equal(pass_many(&t, WINDOW, 50, 40, 100), 800);
}

static void nobody_is_charged_less_than_a_quarter(void **state)
{
	struct trace t = begin();

	assert_int_equal(pass_many(&t, 1000, 100, 1, 100), UNTRACKED_LEAST_PERMILLE);
}

static void gaps_between_kernels_are_nobodys(void **state)
{
	struct trace t = begin();

	/* kernels of some us with gaps as long, which the meter takes for work */
	assert_int_equal(pass_many(&t, 500, 100, 50, 52), 1000);
	/* and beside a process of 30 % no more than these 30 % are taken off */
	assert_in_range(pass_many(&t, 500, 100, 40, 70), 690, 710);
}

static void what_the_driver_does_not_show_is_charged(void **state)
{
	struct trace t = begin();

	pass_many(&t, 5 * WINDOW + 1, 80, 40, 100);
	assert_int_equal(t.permille, 500);
	assert_int_equal(pass_many(&t, WINDOW, 80, 0, 100), 1000);
	assert_int_equal(pass_many(&t, 500, 80, 0, 100), 1000);
}

static void hardly_any_work_tells_nothing(void **state)
{
	struct trace t = begin();

	assert_int_equal(pass_many(&t, 500, 2, 1, 100), 1000);
}

static void what_turns_explain_is_charged(void **state)
{
	struct trace t = begin();

	t.reading.has_turns = true;
	assert_int_equal(pass_many(&t, 500, 50, 25, 100), 1000);
	t.reading.has_turns = false;
	assert_int_equal(pass_many(&t, 5 * WINDOW + 1, 50, 25, 100), 500);
	t.reading.has_turns = true;
	assert_int_equal(pass_many(&t, WINDOW, 50, 25, 100), 1000);
}

static void who_pauses_begins_anew(void **state)
{
	struct trace t = begin();

	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(pass_many(&t, WINDOW - 3, 40, 20, 100), 1000);
		t.reading.now_ns += 3 * SECOND_NS;
	}
}

static void others_are_seen_from_the_first_reading_and_for_three_more(void **state)
{
	struct trace t = begin();

	pass(&t, 40, 40, 40);
	assert_int_equal(untracked_contended_percent(&t.untracked), 0);
	t.reading.others_percent = 67;
	pass(&t, 40, 33, 100);
	/* They have what the slice leaves them, whatever the sixths say. */
	assert_in_range(untracked_contended_percent(&t.untracked), 70, 100);
	pass(&t, 40, 33, 100);
	assert_in_range(untracked_contended_percent(&t.untracked), 90, 100);
	t.reading.others_percent = 33;
	pass_many(&t, 3, 40, 33, 66);
	assert_in_range(untracked_contended_percent(&t.untracked), 45, 60);
	t.reading.others_percent = 0;
	pass_many(&t, 3, 40, 40, 40);
	assert_int_equal(untracked_contended_percent(&t.untracked), 0);
}

/* What was taken for interrupted, and was not: the driver says that the slice works more than it is charged. */
static void more_than_was_charged_is_charged_beside_others(void **state)
{
	struct trace t = begin();

	pass_many(&t, 3 * WINDOW, 25, 50, 50);
	assert_int_equal(t.permille, 1000);
	t.reading.others_percent = 50;
	assert_int_equal(pass_many(&t, WINDOW, 25, 50, 100), 1000);
	assert_int_equal(pass_many(&t, WINDOW, 25, 50, 100), 2000);
	assert_int_equal(pass_many(&t, WINDOW, 25, 99, 100), 2043);
	assert_int_equal(pass_many(&t, 2 * WINDOW, 50, 55, 100), 1000);
	assert_int_equal(pass_many(&t, 3 * WINDOW, 4, 99, 100), UNTRACKED_MOST_PERMILLE);
}

static void clocks_and_counts_that_go_back_harm_nothing(void **state)
{
	struct trace t = begin();

	for (unsigned i = 0; i < 100; i++) {
		pass_many(&t, 10, 40, 20, 100);
		t.reading.now_ns -= 5 * SECOND_NS;
		assert_int_equal(pass(&t, 40, 20, 100), 1000);
		t.reading.elapsed_ns = 0;
		assert_int_equal(pass(&t, 40, 20, 100), 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(alone_everything_counts),
		cmocka_unit_test(half_of_what_elapsed_counts_beside_one_that_takes_half),
		cmocka_unit_test(sixths_are_as_good_in_the_mean),
		cmocka_unit_test(more_samples_make_a_window_shorter_but_not_than_its_time),
		cmocka_unit_test(looks_that_miss_a_slice_by_chance_change_nothing),
		cmocka_unit_test(looks_show_what_is_anothers_within_some_windows),
		cmocka_unit_test(looks_that_hit_a_slice_too_often_are_charged),
		cmocka_unit_test(once_is_not_believed),
		cmocka_unit_test(a_little_less_is_noise),
		cmocka_unit_test(a_process_that_goes_is_forgotten_after_some_readings),
		cmocka_unit_test(and_one_that_takes_less_charges_more_at_once),
		cmocka_unit_test(nobody_is_charged_less_than_a_quarter),
		cmocka_unit_test(gaps_between_kernels_are_nobodys),
		cmocka_unit_test(what_the_driver_does_not_show_is_charged),
		cmocka_unit_test(hardly_any_work_tells_nothing),
		cmocka_unit_test(what_turns_explain_is_charged),
		cmocka_unit_test(who_pauses_begins_anew),
		cmocka_unit_test(others_are_seen_from_the_first_reading_and_for_three_more),
		cmocka_unit_test(more_than_was_charged_is_charged_beside_others),
		cmocka_unit_test(clocks_and_counts_that_go_back_harm_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
