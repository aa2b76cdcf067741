/* SPDX-License-Identifier: Apache-2.0 */
/* How estimates are learned from batches of work. */
#include "tenant/compute/estimate.h"

#include "base/bits.h"
#include "tests/stress/random.h"
#include "tests/unit/cmocka_ready.h"

#define US    1000u
#define KINDS 1000

/* The place of a key that no other test uses, and so of nothing measured. */
static uint32_t fresh_estimate(void)
{
	static uint64_t key = 1;

	return estimate_find(key += 2);
}

/* Nothing here takes as long as what is not known is expected to. */
static uint64_t known_ns(uint32_t estimate)
{
	uint64_t ns = estimate_ns(estimate);

	assert_int_not_equal(ns, ESTIMATE_UNKNOWN_NS);
	return ns;
}

/* A batch of so many of each kind, which took what they really take. */
struct kind {
	uint32_t estimate;
	uint64_t ns;
};

static void learn_batch(const struct kind *kinds, size_t kind_count, const unsigned *times)
{
	struct estimate_mix mix = {.kind_count = 0};
	uint64_t took_ns = 0;

	for (size_t i = 0; i < kind_count; i++)
		for (unsigned k = 0; k < times[i]; k++) {
			estimate_mix_add(&mix, kinds[i].estimate);
			took_ns += kinds[i].ns;
		}
	estimate_learn(&mix, took_ns, false);
}

static void learn_one(const struct kind *kind, unsigned times)
{
	learn_batch(kind, 1, &times);
}

static void what_was_never_measured_is_not_known(void **state)
{
	assert_int_equal(estimate_ns(fresh_estimate()), ESTIMATE_UNKNOWN_NS);
}

static void what_takes_just_as_long_as_the_unknown_is_known(void **state)
{
	struct kind kind = {.estimate = fresh_estimate(), .ns = ESTIMATE_UNKNOWN_NS};

	learn_one(&kind, 1);
	assert_in_range(known_ns(kind.estimate), ESTIMATE_UNKNOWN_NS - 1, ESTIMATE_UNKNOWN_NS + 1);
	for (unsigned i = 0; i < 100; i++)
		learn_one(&kind, 1);
	assert_in_range(known_ns(kind.estimate), ESTIMATE_UNKNOWN_NS - 1, ESTIMATE_UNKNOWN_NS + 1);
}

static void the_first_batch_tells_it(void **state)
{
	static const uint64_t took_ns[] = {500, 20 * US, 5000 * US, 50000 * US, 4000000 * US};

	for (size_t i = 0; i < ARRAY_SIZE(took_ns); i++) {
		struct kind k = {fresh_estimate(), took_ns[i]};

		learn_one(&k, 1);
		assert_int_equal(known_ns(k.estimate), took_ns[i]);
	}
}

static void several_of_a_kind_share_what_they_took(void **state)
{
	struct kind k = {fresh_estimate(), 20 * US};

	learn_one(&k, 50);
	assert_int_equal(known_ns(k.estimate), 20 * US);
}

static void what_is_known_is_taken_off_for_what_is_not(void **state)
{
	struct kind kinds[] = {{fresh_estimate(), 20 * US}, {fresh_estimate(), 700 * US}};
	unsigned times[] = {30, 1};

	learn_one(&kinds[0], 1);
	learn_batch(kinds, 2, times);
	assert_int_equal(known_ns(kinds[0].estimate), 20 * US);
	assert_int_equal(known_ns(kinds[1].estimate), 700 * US);
}

static void nothing_takes_no_time(void **state)
{
	struct kind none = {fresh_estimate(), 0}, less = {fresh_estimate(), 30 * US};
	struct kind kinds[] = {less, {fresh_estimate(), 0}};
	unsigned times[] = {1, 1};
	struct estimate_mix empty = {.kind_count = 0};

	learn_one(&none, 1);
	assert_in_range(known_ns(none.estimate), 1, 1000);
	learn_one(&less, 1);
	learn_batch(kinds, 2, times);
	assert_in_range(known_ns(kinds[1].estimate), 1, 1000);
	estimate_learn(&empty, 1000 * US, false);
}

static void an_estimate_goes_after_what_it_is_told(void **state)
{
	struct kind k = {fresh_estimate(), 100 * US};

	learn_one(&k, 10);
	k.ns = 150 * US;
	for (unsigned i = 0; i < 20; i++)
		learn_one(&k, 10);
	assert_in_range(known_ns(k.estimate), 149 * US, 150 * US);
	k.ns = 10 * US;
	for (unsigned i = 0; i < 30; i++)
		learn_one(&k, 10);
	assert_in_range(known_ns(k.estimate), 10 * US, 11 * US);
}

/* Too little expected lets too much through, so that is believed at once; and that it takes less, with time. */
static void longer_is_believed_at_once_and_shorter_is_not(void **state)
{
	struct kind k = {fresh_estimate(), 10 * US};

	learn_one(&k, 100);
	k.ns = 10000 * US;
	learn_one(&k, 1);
	assert_int_equal(known_ns(k.estimate), 10000 * US);
	k.ns = 0;
	learn_one(&k, 1);
	assert_in_range(known_ns(k.estimate), 5000 * US, 9000 * US);
}

/* More than the work was measured: what is known stays, unless it is far too low, or too high. */
static void a_rough_measurement_teaches_what_is_not_known_or_far_off(void **state)
{
	struct estimate_mix mix = {.kind_count = 0};
	uint32_t estimate = fresh_estimate();

	estimate_mix_add(&mix, estimate);
	estimate_learn(&mix, 100 * US, true);
	assert_int_equal(known_ns(estimate), 100 * US);
	estimate_learn(&mix, 190 * US, true);
	assert_int_equal(known_ns(estimate), 100 * US);
	estimate_learn(&mix, 10 * US, true);
	assert_int_equal(known_ns(estimate), 73 * US);
	estimate_learn(&mix, 500 * US, true);
	assert_int_equal(known_ns(estimate), 500 * US);
}

/* Nothing for a thousand times, and then 5 ms: seen after a few batches, each of which is charged. */
static void a_kind_that_turns_long_is_known_after_some_batches(void **state)
{
	struct kind k = {fresh_estimate(), 0};
	unsigned batches = 0;

	for (unsigned i = 0; i < 1000; i++)
		learn_one(&k, 100);
	for (k.ns = 5000 * US; known_ns(k.estimate) < 2500 * US; batches++)
		learn_one(&k, 1);
	assert_in_range(batches, 1, 20);
}

/* Mixes as they come: kinds part from each other as long as their shares vary. */
static void kinds_in_different_mixes_part_from_each_other(void **state)
{
	struct random r = random_stream(1, 0);
	struct kind kinds[4] = {{0, 5 * US}, {0, 40 * US}, {0, 300 * US}, {0, 20 * US}};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		kinds[i].estimate = fresh_estimate();
	for (unsigned i = 0; i < 3000; i++) {
		unsigned times[4];

		for (size_t k = 0; k < ARRAY_SIZE(times); k++)
			times[k] = random_below(&r, 10) * random_below(&r, 2);
		learn_batch(kinds, ARRAY_SIZE(kinds), times);
	}
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_true(known_ns(kinds[i].estimate) >= kinds[i].ns / 2);
		assert_true(known_ns(kinds[i].estimate) <= kinds[i].ns * 2);
	}
}

/* Work is estimated for batches, and what a batch of it takes in all must come out right, mixed as it is. */
static void a_batch_of_many_kinds_is_estimated_as_it_was(void **state)
{
	static const size_t counts[] = {2, 5, ESTIMATE_KINDS};

	for (size_t n = 0; n < ARRAY_SIZE(counts); n++) {
		struct kind kinds[ESTIMATE_KINDS];
		unsigned times[ESTIMATE_KINDS];
		uint64_t took_ns = 0, estimated_ns = 0;

		for (size_t i = 0; i < counts[n]; i++) {
			kinds[i] = (struct kind){fresh_estimate(), (i + 1) * 3 * US};
			times[i] = 1 + i % 3;
			learn_one(&kinds[i], 1);
			kinds[i].ns *= 2;
			took_ns += kinds[i].ns * times[i];
		}
		for (unsigned i = 0; i < 50; i++)
			learn_batch(kinds, counts[n], times);
		for (size_t i = 0; i < counts[n]; i++)
			estimated_ns += known_ns(kinds[i].estimate) * times[i];
		assert_in_range(estimated_ns, took_ns * 98 / 100, took_ns * 102 / 100);
	}
}

/* A step of a model has dozens of kinds; none of them may be taken for all. */
static void more_kinds_than_a_batch_remembers_are_not_estimated_too_long(void **state)
{
	struct kind kinds[3 * ESTIMATE_KINDS];
	unsigned times[ARRAY_SIZE(kinds)];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		kinds[i] = (struct kind){fresh_estimate(), 25 * US};
		times[i] = 1;
		learn_one(&kinds[i], 1);
	}
	for (unsigned i = 0; i < 50; i++)
		learn_batch(kinds, ARRAY_SIZE(kinds), times);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_in_range(known_ns(kinds[i].estimate), 20 * US, 30 * US);
}

static void what_nobody_knows_is_learned_in_however_full_a_batch(void **state)
{
	struct kind kinds[2 * ESTIMATE_KINDS];
	unsigned times[ARRAY_SIZE(kinds)];

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		kinds[i] = (struct kind){fresh_estimate(), (i + 5) * US};
		times[i] = 1;
		if (i + 1 < ARRAY_SIZE(kinds))
			learn_one(&kinds[i], 1);
	}
	learn_batch(kinds, ARRAY_SIZE(kinds), times);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		assert_int_equal(known_ns(kinds[i].estimate), kinds[i].ns);
}

static void a_mix_counts_more_than_it_has_room_for(void **state)
{
	struct estimate_mix mix = {.kind_count = 0};
	uint32_t estimate = fresh_estimate();

	for (unsigned i = 0; i < 100000; i++)
		estimate_mix_add(&mix, estimate);
	assert_int_equal(mix.kind_count, 1);
	assert_int_equal(mix.kind[0].times, UINT16_MAX);
	estimate_learn(&mix, 65535 * US, false);
	assert_int_equal(known_ns(estimate), US);
}

static bool is_told(const struct kind *kind, uint64_t took_ns, bool is_rough)
{
	struct estimate_mix mix = {.kind_count = 0};

	estimate_mix_add(&mix, kind->estimate);
	return estimate_learn(&mix, took_ns, is_rough);
}

static void what_took_far_longer_than_estimated_is_told(void **state)
{
	struct kind unknown = {fresh_estimate(), 0}, shorter = {fresh_estimate(), 20 * US},
		    longer = {fresh_estimate(), 1000 * US};

	assert_false(is_told(&unknown, 50000 * US, false));
	learn_one(&shorter, 1);
	learn_one(&longer, 1);
	assert_false(is_told(&shorter, 100 * US, false));
	assert_false(is_told(&longer, 1900 * US, false));
	assert_true(is_told(&longer, 50000 * US, false));
	assert_true(is_told(&shorter, 20000 * US, false));
	assert_false(is_told(&shorter, 50000 * US, true));
}

static void as_many_kinds_as_programs_have_are_known_together(void **state)
{
	for (unsigned i = 0; i < KINDS; i++) {
		struct kind kind = {estimate_find(hash_u64(i + 1) | 1), (1 + i % 500) * US};

		learn_one(&kind, 1);
	}
	for (unsigned i = 0; i < KINDS; i++)
		assert_int_equal(known_ns(estimate_find(hash_u64(i + 1) | 1)), (1 + i % 500) * US);
}

static void a_key_has_its_place_until_another_comes_there(void **state)
{
	struct kind first = {estimate_find(1000001), 50 * US};
	uint64_t other;

	learn_one(&first, 1);
	assert_int_equal(estimate_find(1000001), first.estimate);
	assert_int_equal(known_ns(first.estimate), 50 * US);
	for (other = 1000003; estimate_find(other) != first.estimate; other += 2)
		;
	assert_int_equal(estimate_ns(first.estimate), ESTIMATE_UNKNOWN_NS);
	assert_int_equal(estimate_ns(estimate_find(1000001)), ESTIMATE_UNKNOWN_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_never_measured_is_not_known),
		cmocka_unit_test(what_takes_just_as_long_as_the_unknown_is_known),
		cmocka_unit_test(the_first_batch_tells_it),
		cmocka_unit_test(several_of_a_kind_share_what_they_took),
		cmocka_unit_test(what_is_known_is_taken_off_for_what_is_not),
		cmocka_unit_test(nothing_takes_no_time),
		cmocka_unit_test(an_estimate_goes_after_what_it_is_told),
		cmocka_unit_test(longer_is_believed_at_once_and_shorter_is_not),
		cmocka_unit_test(a_rough_measurement_teaches_what_is_not_known_or_far_off),
		cmocka_unit_test(a_kind_that_turns_long_is_known_after_some_batches),
		cmocka_unit_test(kinds_in_different_mixes_part_from_each_other),
		cmocka_unit_test(a_batch_of_many_kinds_is_estimated_as_it_was),
		cmocka_unit_test(more_kinds_than_a_batch_remembers_are_not_estimated_too_long),
		cmocka_unit_test(what_nobody_knows_is_learned_in_however_full_a_batch),
		cmocka_unit_test(a_mix_counts_more_than_it_has_room_for),
		cmocka_unit_test(what_took_far_longer_than_estimated_is_told),
		cmocka_unit_test(as_many_kinds_as_programs_have_are_known_together),
		cmocka_unit_test(a_key_has_its_place_until_another_comes_there),
	};

	return cmocka_run_group_tests_name("estimate", tests, NULL, NULL);
}
