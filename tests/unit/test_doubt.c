/* SPDX-License-Identifier: Apache-2.0 */
/* Which work is doubted: the pauses, the chance, and what was found to be hidden. */
#include "policy/doubt.h"

#include "tests/unit/cmocka_ready.h"

#define MS    UINT64_C(1000000)
#define S     UINT64_C(1000000000)
#define NOW   (5000 * S)
#define EXACT UINT64_C(256) /* of words */

static void work_is_doubted_by_the_pause_before_it(void **state)
{
	uint64_t word = doubt_note_pause(0, NOW - 20 * MS, NOW);

	assert_in_range(doubt_until_ns(word, NOW), NOW + 320 * MS, NOW + 320 * MS + EXACT);
	assert_int_equal(doubt_until_ns(word, NOW + 321 * MS), 0);
}

static void a_short_pause_ends_no_doubt(void **state)
{
	uint64_t word = doubt_note_pause(0, NOW - S, NOW), until_ns = doubt_until_ns(word, NOW);

	for (unsigned i = 0; i < 10000; i++) {
		word = doubt_note_pause(word, NOW - MS / 10, NOW);
		assert_int_equal(doubt_until_ns(word, NOW), until_ns);
	}
}

/* All that programs can read is when pauses were, and how long. */
static void the_word_tells_of_no_draw(void **state)
{
	uint64_t word = 0;

	for (unsigned i = 1; i < 100; i++) {
		word = doubt_note_pause(word, NOW + i * S - MS, NOW + i * S);
		assert_int_equal(word & (EXACT - 1), 0);
		assert_in_range(doubt_until_ns(word, NOW + i * S), NOW + i * S + 16 * MS,
			NOW + i * S + 16 * MS + EXACT);
	}
}

static void one_of_eight_is_drawn(void **state)
{
	unsigned count = 0;

	for (uint64_t i = 0; i < 8000; i++)
		count += doubt_is_drawn(i);
	assert_int_equal(count, 1000);
}

static void suspicion_lasts_by_what_was_hidden_and_twice_as_long_each_time(void **state)
{
	uint64_t word = 0, now_ns = NOW, ns = 512 * 20 * MS;

	for (unsigned i = 0; i < 5; i++) {
		word = doubt_note_hidden(word, 20 * MS, now_ns);
		assert_true(doubt_is_suspected(word, now_ns + ns - 1));
		assert_false(doubt_is_suspected(word, now_ns + ns + EXACT));
		now_ns += ns + S;
		ns *= 2;
	}
	word = doubt_note_hidden(word, 20 * MS, now_ns);
	word = doubt_note_hidden(word, 20 * MS, now_ns + 400 * S);
	now_ns += 401 * S;
	/* Ten minutes at most; after an hour without it begins anew. */
	assert_in_range(
		doubt_until_ns(word, now_ns), now_ns + 327 * S - S, now_ns + 599 * S + EXACT);
	now_ns += 5000 * S;
	word = doubt_note_hidden(word, 20 * MS, now_ns);
	assert_false(doubt_is_suspected(word, now_ns + 512 * 20 * MS + EXACT));
}

static void less_found_ends_no_suspicion(void **state)
{
	uint64_t word = doubt_note_hidden(0, S, NOW), until_ns = doubt_until_ns(word, NOW);

	assert_in_range(until_ns, NOW + 512 * S, NOW + 512 * S + EXACT);
	for (unsigned i = 0; i < 100; i++)
		word = doubt_note_hidden(word, MS / 5, NOW + i * MS);
	assert_int_equal(doubt_until_ns(word, NOW), until_ns);
	word = doubt_note_hidden(0, UINT64_MAX, NOW);
	assert_in_range(doubt_until_ns(word, NOW), NOW + 600 * S, NOW + 600 * S + EXACT);
}

static void words_that_no_library_wrote_are_kept_in_bounds(void **state)
{
	static const uint64_t words[] = {UINT64_MAX, UINT64_MAX - 255, UINT64_C(1) << 63, 0xff};

	for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++) {
		uint64_t word = doubt_note_hidden(words[i], 20 * MS, NOW);

		assert_true(doubt_is_suspected(word, NOW));
		assert_true(doubt_until_ns(word, NOW) <= NOW + 600 * S + EXACT);
		word = doubt_note_pause(words[i], 0, NOW);
		assert_true(doubt_until_ns(word, NOW));
		assert_true(doubt_until_ns(word, NOW) <= NOW + 86400 * S);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(work_is_doubted_by_the_pause_before_it),
		cmocka_unit_test(a_short_pause_ends_no_doubt),
		cmocka_unit_test(the_word_tells_of_no_draw),
		cmocka_unit_test(one_of_eight_is_drawn),
		cmocka_unit_test(suspicion_lasts_by_what_was_hidden_and_twice_as_long_each_time),
		cmocka_unit_test(less_found_ends_no_suspicion),
		cmocka_unit_test(words_that_no_library_wrote_are_kept_in_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
