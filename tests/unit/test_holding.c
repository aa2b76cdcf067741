/* SPDX-License-Identifier: Apache-2.0 */
/* Holdings, with books of the test's own: each charge goes back once, and not while something may keep it. */
#include <errno.h>
#include <stdint.h>

#include "tenant/memory/charge.h"
#include "tests/unit/holding_books.h"

static void the_last_reference_gives_back_and_no_other(void **unused)
{
	struct holding_end end;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 0);
	/* The driver refused: it is there still. */
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	assert_int_equal(
		holding_end_begin(HOLDING_CREATED, 7, &(struct holding_end){}), HOLDING_E_ABSENT);
	holding_end_done(&end, false);
	assert_int_equal(given_back, 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 3 * UNIT);
}

static void an_end_that_is_refused_leaves_its_reference_beside_another_end(void **unused)
{
	struct holding_end refused, other;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &refused), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &other), 0);
	holding_end_done(&other, true);
	assert_int_equal(given_back, 0);
	holding_end_done(&refused, false);
	assert_int_equal(given_back, 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &other), 0);
	holding_end_done(&other, true);
	assert_int_equal(given_back, 3 * UNIT);
}

static void the_last_of_several_ends_gives_back(void **unused)
{
	struct holding_end first, second;
	struct holding holding;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), 0);
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &holding), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &first), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &second), 0);
	holding_end_done(&first, true);
	holding_unpin(HOLDING_CREATED, 7, holding.serial);
	assert_int_equal(given_back, 0);
	holding_end_done(&second, true);
	assert_int_equal(given_back, 3 * UNIT);
}

static void a_key_that_comes_again_before_an_end_is_done_gives_back_once(void **unused)
{
	struct holding_end first, second;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &first), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &second), 0);
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(5, 0), charge_since()), 0);
	assert_int_equal(given_back, 3 * UNIT);
	holding_end_done(&first, true);
	holding_end_done(&second, true);
	assert_int_equal(given_back, 3 * UNIT);
	/* A mapping of the earlier one ends nothing of the later one. */
	assert_int_equal(holding_end_begin_of(HOLDING_CREATED, 7, first.holding.serial, &first),
		HOLDING_E_ABSENT);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &first), 0);
	holding_end_done(&first, true);
	assert_int_equal(given_back, 8 * UNIT);
}

static void references_stop_at_their_limit(void **unused)
{
	struct holding holding = holding_books_units(1, 4);
	bool is_new;

	holding.references = UINT32_MAX;
	assert_int_equal(holding_put(HOLDING_OPENED, 7, holding, charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 4, NULL), HOLDING_E_LIMIT);
	assert_int_equal(holding_put_or_refer(HOLDING_OPENED, 7, holding_books_units(1, 4),
				 charge_since(), &is_new, NULL),
		HOLDING_E_LIMIT);
	assert_false(is_new);
}

static void a_pin_outlives_the_last_reference(void **unused)
{
	struct holding_end end;
	struct holding holding;

	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &holding), HOLDING_E_ABSENT);
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &holding), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 0);
	/* What is ending cannot be pinned or referred to any more. */
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &(struct holding){}), HOLDING_E_ABSENT);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), HOLDING_E_ABSENT);
	holding_unpin(HOLDING_CREATED, 7, holding.serial);
	assert_int_equal(given_back, 3 * UNIT);
}

static void a_pin_that_is_kept_is_a_reference(void **unused)
{
	struct holding_end end;
	struct holding holding;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &holding), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_true(holding_keep_pin(HOLDING_CREATED, 7, holding.serial));
	assert_int_equal(given_back, 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 3 * UNIT);
}

static void what_may_stay_is_never_given_back(void **unused)
{
	struct holding_end end;
	struct holding holding;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &holding), 0);
	assert_true(holding_stay_by_pin(HOLDING_CREATED, 7, holding.serial));
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 0);
}

static void a_multicast_object_ends_its_bindings_unless_others_have_it(void **unused)
{
	struct holding object = {.references = 1, .flags = HOLDING_OBJECT};
	struct holding_end end;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(holding_put(HOLDING_CREATED, 7, object, charge_since()), 0);
		assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
		assert_int_equal(objects_ended, i);
		holding_end_done(&end, true);
		assert_int_equal(objects_ended, 1);
		object.flags |= HOLDING_MAY_STAY;
	}
}

static void memory_is_not_taken_for_a_multicast_object(void **unused)
{
	struct holding object = {.references = 1, .flags = HOLDING_OBJECT};
	struct holding_end end;
	bool is_new;

	assert_int_equal(
		holding_put_or_refer(HOLDING_CREATED, 7, object, charge_since(), &is_new, NULL), 0);
	assert_true(is_new);
	assert_int_equal(
		holding_put_or_refer(HOLDING_CREATED, 7, object, charge_since(), &is_new, NULL), 0);
	assert_false(is_new);
	assert_int_equal(holding_put_or_refer(HOLDING_CREATED, 7, holding_books_units(3, 0),
				 charge_since(), &is_new, NULL),
		0);
	assert_true(is_new);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 3 * UNIT);
}

static void a_pin_of_an_earlier_holding_is_none_of_a_later_one(void **unused)
{
	struct holding_end end;
	struct holding first;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &first), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	/* The driver gives the handle out again while the first one's call is under way. */
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(5, 0), charge_since()), 0);
	assert_false(holding_keep_pin(HOLDING_CREATED, 7, first.serial));
	assert_int_equal(given_back, 0);
	/* That call may have referred to the later one. */
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 0);
}

static void a_key_that_comes_again_gives_back_what_was_there(void **unused)
{
	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x200000, holding_books_units(3, 1), charge_since()),
		0);
	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x200000, holding_books_units(5, 2), charge_since()),
		0);
	assert_int_equal(given_back, 3 * UNIT);
}

/* Another thread may have ended what the first call was given, and have had the other one there before the first call enters its own. */
static void what_may_have_come_later_stays_until_its_context_ends(void **unused)
{
	uint64_t since = charge_since();

	charge_stray_begins();
	charge_stray_ends(NULL);
	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x200000, holding_books_units(5, 2), charge_since()),
		0);
	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x200000, holding_books_units(3, 1), since), 0);
	assert_int_equal(given_back, 0);
	holding_life_ended(state_device(0), 1);
	assert_int_equal(given_back, 3 * UNIT);
	holding_life_ended(state_device(0), 2);
	assert_int_equal(given_back, 8 * UNIT);
}

static void a_stray_end_under_way_is_no_proof(void **unused)
{
	uint64_t since;

	charge_stray_begins();
	since = charge_since();
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(5, 0), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), since), 0);
	charge_stray_ends(NULL);
	assert_int_equal(given_back, 0);
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(1, 0), charge_since()), 0);
	assert_int_equal(given_back, 3 * UNIT);
}

static void a_holding_ends_with_its_life_and_with_no_other(void **unused)
{
	struct holding pooled = {.pool = (struct pool *)2, .flags = HOLDING_POOLED};
	struct holding holding;

	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x200000, holding_books_units(3, 1), charge_since()),
		0);
	assert_int_equal(
		holding_put(HOLDING_ARRAYS, 8, holding_books_units(4, 1), charge_since()), 0);
	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x400000, holding_books_units(5, 2), charge_since()),
		0);
	assert_int_equal(
		holding_put(HOLDING_POINTERS, 0x600000, holding_books_units(6, 0), charge_since()),
		0);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x800000, pooled, charge_since()), 0);
	holding_life_ended(state_device(0), 1);
	assert_int_equal(given_back, 7 * UNIT);
	holding_life_ended(state_device(0), 0);
	assert_int_equal(given_back, 7 * UNIT);
	holding_life_ended(state_device(0), 2);
	assert_int_equal(given_back, 12 * UNIT);
	assert_int_equal(holding_get(HOLDING_POINTERS, 0x800000, &holding), 0);
}

static void who_refers_is_told_what_is_there(void **unused)
{
	struct holding there = {.serial = 0};
	bool is_new;

	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 1, &there), HOLDING_E_ABSENT);
	assert_int_equal(holding_put_or_refer(HOLDING_OPENED, 7, holding_books_units(3, 1),
				 charge_since(), &is_new, &there),
		0);
	assert_true(is_new);
	assert_int_equal(there.serial, 0);
	assert_int_equal(holding_put_or_refer(HOLDING_OPENED, 7, holding_books_units(5, 1),
				 charge_since(), &is_new, &there),
		0);
	assert_false(is_new);
	assert_int_equal(there.units, 3);
	there.units = 0;
	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 1, &there), 0);
	assert_int_equal(there.units, 3);
	assert_int_equal(there.references, 3);
	holding_life_ended(state_device(0), 1);
}

static void the_same_again_counts_in_its_life_alone(void **unused)
{
	struct holding_end end;
	bool is_new;

	assert_int_equal(holding_put_or_refer(HOLDING_OPENED, 7, holding_books_units(3, 1),
				 charge_since(), &is_new, NULL),
		0);
	assert_true(is_new);
	assert_int_equal(holding_put_or_refer(HOLDING_OPENED, 7, holding_books_units(3, 1),
				 charge_since(), &is_new, NULL),
		0);
	assert_false(is_new);
	/* A new life of the context, before the old one was swept. */
	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 2, NULL), HOLDING_E_ABSENT);
	assert_int_equal(holding_put_or_refer(HOLDING_OPENED, 7, holding_books_units(5, 2),
				 charge_since(), &is_new, NULL),
		0);
	assert_true(is_new);
	assert_int_equal(given_back, 3 * UNIT);
	holding_life_ended(state_device(0), 1);
	assert_int_equal(holding_end_begin(HOLDING_OPENED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 8 * UNIT);
}

/* The one that is left at last is told by the figure, too: nobody has seen the other one's end. */
/* A call was given a key that is nobody's, and memory gets that key before the call is over: the call may refer to it. */
static void memory_whose_key_is_pinned_stays_charged(void **unused)
{
	struct holding first, second;
	struct holding_end end;

	assert_int_equal(holding_pin_key(HOLDING_CREATED, 7, &first), 0);
	assert_int_equal(holding_pin_key(HOLDING_CREATED, 7, &second), 0);
	assert_true(first.flags & HOLDING_NOBODYS);
	assert_int_equal(first.serial, second.serial);
	/* It is no holding. */
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &second), HOLDING_E_ABSENT);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), HOLDING_E_ABSENT);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), HOLDING_E_ABSENT);
	assert_true(holding_unpin(HOLDING_CREATED, 7, first.serial));
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_false(holding_unpin(HOLDING_CREATED, 7, first.serial));
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	assert_true(end.holding.flags & HOLDING_MAY_STAY);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 0);
}

/* So it is with memory that gets the key of what the call has pinned. */
static void memory_in_the_place_of_pinned_memory_stays_charged(void **unused)
{
	struct charge charge = {.device = state_device(0), .units = 3, .kind = CHARGE_MAPPED};
	struct holding pinned;
	struct holding_end end;
	bool is_new;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(holding_put(HOLDING_CREATED, 7 + i, holding_books_units(1, 0),
					 charge_since()),
			0);
		assert_int_equal(holding_pin_key(HOLDING_CREATED, 7 + i, &pinned), 0);
		assert_false(pinned.flags & HOLDING_NOBODYS);
		assert_int_equal(holding_end_begin(HOLDING_CREATED, 7 + i, &end), 0);
		holding_end_done(&end, true);
		assert_int_equal(
			holding_pin_key(HOLDING_CREATED, 7 + i, &pinned), HOLDING_E_ABSENT);
		if (i)
			assert_int_equal(
				holding_put_charge(HOLDING_CREATED, 7 + i, &charge, 0, 0), 0);
		else
			assert_int_equal(
				holding_put_or_refer(HOLDING_CREATED, 7 + i,
					holding_books_units(3, 0), charge_since(), &is_new, NULL),
				0);
		assert_int_equal(holding_end_begin(HOLDING_CREATED, 7 + i, &end), 0);
		holding_end_done(&end, true);
	}
	assert_int_equal(given_back, 0);
}

static void a_key_that_is_not_pinned_any_more_leaves_nothing(void **unused)
{
	struct holding pinned;
	struct holding_end end;

	assert_int_equal(holding_pin_key(HOLDING_CREATED, 7, &pinned), 0);
	assert_true(holding_unpin(HOLDING_CREATED, 7, pinned.serial));
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	/* The driver refuses to end it while another call has its key. */
	assert_int_equal(holding_pin_key(HOLDING_CREATED, 7, &pinned), 0);
	holding_end_done(&end, false);
	assert_false(holding_unpin(HOLDING_CREATED, 7, pinned.serial));
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 3 * UNIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(
			the_last_reference_gives_back_and_no_other, holding_books_begin),
		cmocka_unit_test_setup(
			an_end_that_is_refused_leaves_its_reference_beside_another_end,
			holding_books_begin),
		cmocka_unit_test_setup(the_last_of_several_ends_gives_back, holding_books_begin),
		cmocka_unit_test_setup(a_key_that_comes_again_before_an_end_is_done_gives_back_once,
			holding_books_begin),
		cmocka_unit_test_setup(references_stop_at_their_limit, holding_books_begin),
		cmocka_unit_test_setup(a_pin_outlives_the_last_reference, holding_books_begin),
		cmocka_unit_test_setup(a_pin_that_is_kept_is_a_reference, holding_books_begin),
		cmocka_unit_test_setup(what_may_stay_is_never_given_back, holding_books_begin),
		cmocka_unit_test_setup(a_multicast_object_ends_its_bindings_unless_others_have_it,
			holding_books_begin),
		cmocka_unit_test_setup(
			memory_is_not_taken_for_a_multicast_object, holding_books_begin),
		cmocka_unit_test_setup(
			a_pin_of_an_earlier_holding_is_none_of_a_later_one, holding_books_begin),
		cmocka_unit_test_setup(
			a_key_that_comes_again_gives_back_what_was_there, holding_books_begin),
		cmocka_unit_test_setup(
			what_may_have_come_later_stays_until_its_context_ends, holding_books_begin),
		cmocka_unit_test_setup(a_stray_end_under_way_is_no_proof, holding_books_begin),
		cmocka_unit_test_setup(
			a_holding_ends_with_its_life_and_with_no_other, holding_books_begin),
		cmocka_unit_test_setup(who_refers_is_told_what_is_there, holding_books_begin),
		cmocka_unit_test_setup(
			the_same_again_counts_in_its_life_alone, holding_books_begin),
		cmocka_unit_test_setup(
			memory_whose_key_is_pinned_stays_charged, holding_books_begin),
		cmocka_unit_test_setup(
			memory_in_the_place_of_pinned_memory_stays_charged, holding_books_begin),
		cmocka_unit_test_setup(
			a_key_that_is_not_pinned_any_more_leaves_nothing, holding_books_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
