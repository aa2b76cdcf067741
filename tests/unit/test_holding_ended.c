/* SPDX-License-Identifier: Apache-2.0 */
/* How charges end, with books of the test's own: in chunks, shared, and where nobody sees when the memory goes. */
#include <stdint.h>

#include "tenant/memory/charge.h"
#include "tenant/memory/chunk.h"
#include "tenant/memory/ipc.h"
#include "tests/unit/holding_books.h"

static void a_chunk_goes_back_with_its_last_tenant(void **unused)
{
	struct holding part = holding_books_units(0, 1);
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
	struct holding part = holding_books_units(0, 1), holding;
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
	struct holding part = holding_books_units(0, 1), holding;
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

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_true(holding_share(HOLDING_CREATED, 7, &memory, 0, &shared));
	assert_int_equal(memory.bytes, 3 * UNIT);
	assert_true(holding_share(HOLDING_CREATED, 7, &memory, 0, &shared));
	assert_int_equal(shared, 5);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &end), 0);
	holding_end_done(&end, true);
	assert_int_equal(let_go, 1);
	assert_int_equal(given_back, 0);
}

static void memory_of_which_a_reference_ends_unseen_is_left_to_the_figure(void **unused)
{
	struct holding_end unseen, other;

	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(3, 0), charge_since()), 0);
	assert_int_equal(holding_refer(HOLDING_CREATED, 7, 0, NULL), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &unseen), 0);
	holding_end_unseen(&unseen);
	assert_int_equal(left_to_figure, 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &other), 0);
	holding_end_done(&other, true);
	assert_int_equal(left_to_figure, 3 * UNIT);
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(2, 0), charge_since()), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &unseen), 0);
	holding_end_unseen(&unseen);
	assert_int_equal(left_to_figure, 5 * UNIT);
	/* Without a figure it stays charged. */
	has_figure = false;
	assert_int_equal(
		holding_put(HOLDING_CREATED, 7, holding_books_units(2, 0), charge_since()), 0);
	assert_int_equal(holding_end_begin(HOLDING_CREATED, 7, &unseen), 0);
	holding_end_unseen(&unseen);
	assert_int_equal(left_to_figure, 5 * UNIT);
	assert_int_equal(given_back, 0);
}

static void what_no_figure_tells_is_not_left_to_it(void **unused)
{
	struct holding holding = holding_books_units(3, 1);

	holding.flags = HOLDING_SHARED;
	assert_false(holding_leave_to_figure(7, &holding));
	holding.flags = HOLDING_FOREIGN;
	assert_false(holding_leave_to_figure(7, &holding));
	holding.flags = HOLDING_EVERYWHERE;
	assert_false(holding_leave_to_figure(7, &holding));
	holding.flags = 0;
	holding.kind = CHARGE_MANAGED;
	assert_false(holding_leave_to_figure(7, &holding));
	holding.kind = CHARGE_PLAIN;
	assert_true(holding_leave_to_figure(7, &holding));
	has_figure = false;
	assert_false(holding_leave_to_figure(7, &holding));
	assert_int_equal(left_to_figure, 3 * UNIT);
}

static void a_chunk_that_a_block_has_left_unseen_is_in_doubt(void **unused)
{
	uint64_t first = 3 * CHUNK_BYTES, second = first + 4096;
	struct holding part = holding_books_units(0, 1);
	bool is_first;

	part.flags = HOLDING_IN_CHUNK;
	assert_int_equal(chunk_enter(first, unnamed, &is_first), 0);
	assert_int_equal(chunk_enter(second, unnamed, &is_first), 0);
	has_figure = false;
	assert_false(holding_leave_to_figure(first, &part));
	has_figure = true;
	assert_true(holding_leave_to_figure(first, &part));
	assert_int_equal(left_to_figure, 0);
	holding_give_back(second, &part);
	assert_int_equal(in_doubt, CHUNK_BYTES);
	assert_int_equal(chunk_enter(first, unnamed, &is_first), 0);
	assert_true(is_first);
	assert_true(holding_leave_to_figure(first, &part));
	assert_int_equal(left_to_figure, CHUNK_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_chunk_goes_back_with_its_last_tenant, holding_books_begin),
		cmocka_unit_test_setup(a_chunk_in_which_something_unnamed_may_lie_is_in_doubt,
			holding_books_begin),
		cmocka_unit_test_setup(
			so_is_one_whose_first_block_came_to_the_books_later, holding_books_begin),
		cmocka_unit_test_setup(
			what_is_shared_lets_go_of_the_shared_allocation, holding_books_begin),
		cmocka_unit_test_setup(
			memory_of_which_a_reference_ends_unseen_is_left_to_the_figure,
			holding_books_begin),
		cmocka_unit_test_setup(what_no_figure_tells_is_not_left_to_it, holding_books_begin),
		cmocka_unit_test_setup(
			a_chunk_that_a_block_has_left_unseen_is_in_doubt, holding_books_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
