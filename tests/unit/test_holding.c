/* SPDX-License-Identifier: Apache-2.0 */
/* Holdings, with books of the test's own: each charge goes back once, and not while something may keep it. */
#include <errno.h>
#include <stdint.h>

#include "tenant/memory/charge.h"
#include "tenant/memory/chunk.h"
#include "tenant/memory/everywhere.h"
#include "tenant/memory/holding.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/reconcile.h"
#include "tenant/slice/parts.h"
#include "tests/unit/cmocka_ready.h"

static struct device device = {.ordinal = 0};
_Atomic uint64_t charge_strays;
static uint64_t given_back; /* bytes */
static unsigned let_go;	    /* of shared allocations */

struct device *state_device(CUdevice ordinal)
{
	return &device;
}

void charge_hide(struct device *of, uint64_t bytes, enum charge_kind kind)
{
}

void charge_give_back(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	given_back += bytes;
}

void charge_anyway(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	given_back -= bytes;
}

CUresult charge_reserve(
	struct device *of, uint64_t bytes, enum charge_kind kind, struct charge *ret_charge)
{
	return CUDA_ERROR_OUT_OF_MEMORY;
}

uint64_t charge_take(struct charge *charge)
{
	return 0;
}

void charge_undo(struct charge *charge)
{
}

void everywhere_give_back(const struct device *own, uint64_t bytes)
{
}

bool ipc_make(const struct ipc_memory *memory, unsigned *ret_shared)
{
	*ret_shared = 5;
	return true;
}

void ipc_let_go(unsigned shared, bool is_over)
{
	assert_int_equal(shared, 5);
	let_go++;
}

static unsigned objects_ended;

void parts_object_ended(CUmemGenericAllocationHandle object, uint32_t serial)
{
	assert_int_not_equal(serial, 0);
	objects_ended++;
}

void ipc_open_foreign(const struct device *of, int64_t bytes)
{
}

void reconcile_look_again(const struct device *of)
{
}

static uint64_t unnamed, in_doubt;

/* A comparison follows, and says how much of it there is: here, none. */
void reconcile_doubt(struct device *of, uint64_t bytes, enum charge_kind kind)
{
	given_back += bytes;
	in_doubt += bytes;
}

uint64_t charge_unnamed_since(const struct device *of)
{
	(void)of;
	return unnamed;
}

static int begin(void **unused)
{
	holding_reset_after_fork();
	given_back = in_doubt = 0;
	let_go = 0;
	objects_ended = 0;
	return 0;
}

#define UNIT REGION_UNIT_BYTES

static struct holding units(uint32_t count, uint64_t life)
{
	struct charge charge = {.device = &device, .units = count, .kind = CHARGE_PLAIN};

	return holding_of(&charge, life, 0);
}

static void the_last_reference_gives_back_and_no_other(void **unused)
{
	struct holding_end end;

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
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

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
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

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
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

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &first), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &second), 0);
	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(5, 0), charge_since()), 0);
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
	struct holding holding = units(1, 4);
	bool is_new;

	holding.references = UINT32_MAX;
	assert_int_equal(holding_put(HOLDING_OPENED, 7, holding, charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 4, NULL), HOLDING_E_LIMIT);
	assert_int_equal(
		holding_put_or_refer(HOLDING_OPENED, 7, units(1, 4), charge_since(), &is_new, NULL),
		HOLDING_E_LIMIT);
	assert_false(is_new);
}

static void a_pin_outlives_the_last_reference(void **unused)
{
	struct holding_end end;
	struct holding holding;

	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &holding), HOLDING_E_ABSENT);
	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
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

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
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

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
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
	assert_int_equal(holding_put_or_refer(
				 HOLDING_CREATED, 7, units(3, 0), charge_since(), &is_new, NULL),
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

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
	assert_int_equal(holding_pin(HOLDING_CREATED, 7, &first), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	/* The driver gives the handle out again while the first one's call is under way. */
	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(5, 0), charge_since()), 0);
	assert_false(holding_keep_pin(HOLDING_CREATED, 7, first.serial));
	assert_int_equal(given_back, 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 5 * UNIT);
}

static void a_key_that_comes_again_gives_back_what_was_there(void **unused)
{
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x200000, units(3, 1), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x200000, units(5, 2), charge_since()), 0);
	assert_int_equal(given_back, 3 * UNIT);
}

/* Another thread may have ended what the first call was given, and have had the other one there before the first call enters its own. */
static void what_may_have_come_later_stays_until_its_context_ends(void **unused)
{
	uint64_t since = charge_since();

	charge_stray_begins();
	charge_stray_ends(NULL);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x200000, units(5, 2), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x200000, units(3, 1), since), 0);
	assert_int_equal(given_back, 0);
	holding_life_ended(&device, 1);
	assert_int_equal(given_back, 3 * UNIT);
	holding_life_ended(&device, 2);
	assert_int_equal(given_back, 8 * UNIT);
}

static void a_stray_end_under_way_is_no_proof(void **unused)
{
	uint64_t since;

	charge_stray_begins();
	since = charge_since();
	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(5, 0), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), since), 0);
	charge_stray_ends(NULL);
	assert_int_equal(given_back, 0);
	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(1, 0), charge_since()), 0);
	assert_int_equal(given_back, 3 * UNIT);
}

static void a_holding_ends_with_its_life_and_with_no_other(void **unused)
{
	struct holding pooled = {.pool = (struct pool *)2, .flags = HOLDING_POOLED};
	struct holding holding;

	assert_int_equal(holding_put(HOLDING_POINTERS, 0x200000, units(3, 1), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_ARRAYS, 8, units(4, 1), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x400000, units(5, 2), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x600000, units(6, 0), charge_since()), 0);
	assert_int_equal(holding_put(HOLDING_POINTERS, 0x800000, pooled, charge_since()), 0);
	holding_life_ended(&device, 1);
	assert_int_equal(given_back, 7 * UNIT);
	holding_life_ended(&device, 0);
	assert_int_equal(given_back, 7 * UNIT);
	holding_life_ended(&device, 2);
	assert_int_equal(given_back, 12 * UNIT);
	assert_int_equal(holding_get(HOLDING_POINTERS, 0x800000, &holding), 0);
}

static void who_refers_is_told_what_is_there(void **unused)
{
	struct holding there = {.serial = 0};
	bool is_new;

	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 1, &there), HOLDING_E_ABSENT);
	assert_int_equal(holding_put_or_refer(
				 HOLDING_OPENED, 7, units(3, 1), charge_since(), &is_new, &there),
		0);
	assert_true(is_new);
	assert_int_equal(there.serial, 0);
	assert_int_equal(holding_put_or_refer(
				 HOLDING_OPENED, 7, units(5, 1), charge_since(), &is_new, &there),
		0);
	assert_false(is_new);
	assert_int_equal(there.units, 3);
	there.units = 0;
	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 1, &there), 0);
	assert_int_equal(there.units, 3);
	assert_int_equal(there.references, 3);
	holding_life_ended(&device, 1);
}

static void the_same_again_counts_in_its_life_alone(void **unused)
{
	struct holding_end end;
	bool is_new;

	assert_int_equal(
		holding_put_or_refer(HOLDING_OPENED, 7, units(3, 1), charge_since(), &is_new, NULL),
		0);
	assert_true(is_new);
	assert_int_equal(
		holding_put_or_refer(HOLDING_OPENED, 7, units(3, 1), charge_since(), &is_new, NULL),
		0);
	assert_false(is_new);
	/* A new life of the context, before the old one was swept. */
	assert_int_equal(holding_refer(HOLDING_OPENED, 7, 2, NULL), HOLDING_E_ABSENT);
	assert_int_equal(
		holding_put_or_refer(HOLDING_OPENED, 7, units(5, 2), charge_since(), &is_new, NULL),
		0);
	assert_true(is_new);
	assert_int_equal(given_back, 3 * UNIT);
	holding_life_ended(&device, 1);
	assert_int_equal(holding_end_begin(HOLDING_OPENED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(given_back, 8 * UNIT);
}

static void a_chunk_goes_back_with_its_last_tenant(void **unused)
{
	struct holding part = units(0, 1);
	struct holding holding;
	bool is_first;

	part.flags = HOLDING_IN_CHUNK;
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(
			holding_put(HOLDING_POINTERS, 0x200000 + i, part, charge_since()), 0);
		assert_int_equal(chunk_enter(0x200000 + i, 0, &is_first), 0);
		assert_int_equal(is_first, i == 0);
	}
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(given_back, 0);
		assert_int_equal(holding_take(HOLDING_POINTERS, 0x200000 + i, &holding), 0);
		holding_give_back(0x200000 + i, &holding);
	}
	assert_int_equal(given_back, CHUNK_BYTES);
	assert_int_equal(in_doubt, 0);
}

static void a_chunk_in_which_something_unnamed_may_lie_is_in_doubt(void **unused)
{
	struct holding part = units(0, 1), holding;
	bool is_first;

	part.flags = HOLDING_IN_CHUNK;
	for (unsigned way = 0; way < 2; way++) {
		in_doubt = 0;
		unnamed = way;
		assert_int_equal(holding_put(HOLDING_POINTERS, 0x200000, part, charge_since()), 0);
		assert_int_equal(chunk_enter(0x200000, unnamed, &is_first), 0);
		unnamed += way ? 0 : UINT64_C(1) << 32; /* under way, or begun since */
		assert_int_equal(holding_take(HOLDING_POINTERS, 0x200000, &holding), 0);
		holding_give_back(0x200000, &holding);
		assert_int_equal(in_doubt, CHUNK_BYTES);
	}
	unnamed = 0;
}

static void so_is_one_whose_first_block_came_to_the_books_later(void **unused)
{
	struct holding part = units(0, 1), holding;
	bool is_first;

	part.flags = HOLDING_IN_CHUNK;
	unnamed = UINT64_C(2) << 32;
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(
			holding_put(HOLDING_POINTERS, 0x200000 + i, part, charge_since()), 0);
		assert_int_equal(chunk_enter(0x200000 + i, (2 - i) << 32, &is_first), 0);
	}
	for (uint64_t i = 0; i < 2; i++) {
		assert_int_equal(in_doubt, 0);
		assert_int_equal(holding_take(HOLDING_POINTERS, 0x200000 + i, &holding), 0);
		holding_give_back(0x200000 + i, &holding);
	}
	assert_int_equal(in_doubt, CHUNK_BYTES);
	unnamed = 0;
}

static void what_is_shared_lets_go_of_the_shared_allocation(void **unused)
{
	struct ipc_memory memory = {.name.key = 1, .fd = -1};
	struct holding_end end;
	unsigned shared;

	assert_int_equal(holding_put(HOLDING_CREATED, 7, units(3, 0), charge_since()), 0);
	assert_true(holding_share(HOLDING_CREATED, 7, &memory, 0, &shared));
	assert_int_equal(memory.bytes, 3 * UNIT);
	assert_true(holding_share(HOLDING_CREATED, 7, &memory, 0, &shared));
	assert_int_equal(shared, 5);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(let_go, 1);
	assert_int_equal(given_back, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_last_reference_gives_back_and_no_other, begin),
		cmocka_unit_test_setup(
			an_end_that_is_refused_leaves_its_reference_beside_another_end, begin),
		cmocka_unit_test_setup(the_last_of_several_ends_gives_back, begin),
		cmocka_unit_test_setup(
			a_key_that_comes_again_before_an_end_is_done_gives_back_once, begin),
		cmocka_unit_test_setup(references_stop_at_their_limit, begin),
		cmocka_unit_test_setup(a_pin_outlives_the_last_reference, begin),
		cmocka_unit_test_setup(a_pin_that_is_kept_is_a_reference, begin),
		cmocka_unit_test_setup(what_may_stay_is_never_given_back, begin),
		cmocka_unit_test_setup(
			a_multicast_object_ends_its_bindings_unless_others_have_it, begin),
		cmocka_unit_test_setup(memory_is_not_taken_for_a_multicast_object, begin),
		cmocka_unit_test_setup(a_pin_of_an_earlier_holding_is_none_of_a_later_one, begin),
		cmocka_unit_test_setup(a_key_that_comes_again_gives_back_what_was_there, begin),
		cmocka_unit_test_setup(
			what_may_have_come_later_stays_until_its_context_ends, begin),
		cmocka_unit_test_setup(a_stray_end_under_way_is_no_proof, begin),
		cmocka_unit_test_setup(a_holding_ends_with_its_life_and_with_no_other, begin),
		cmocka_unit_test_setup(who_refers_is_told_what_is_there, begin),
		cmocka_unit_test_setup(the_same_again_counts_in_its_life_alone, begin),
		cmocka_unit_test_setup(a_chunk_goes_back_with_its_last_tenant, begin),
		cmocka_unit_test_setup(
			a_chunk_in_which_something_unnamed_may_lie_is_in_doubt, begin),
		cmocka_unit_test_setup(so_is_one_whose_first_block_came_to_the_books_later, begin),
		cmocka_unit_test_setup(what_is_shared_lets_go_of_the_shared_allocation, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
