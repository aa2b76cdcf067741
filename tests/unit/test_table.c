/* SPDX-License-Identifier: Apache-2.0 */
/* The tenant library's table, against a plain array that cannot be wrong. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "tenant/memory/table.h"
#include "tests/unit/cmocka_ready.h"

#define KEYS	4096
#define ROUNDS	200000
#define THREADS 4

static struct table table;

static int forget(void **state)
{
	table_forget(&table);
	return 0;
}

/* Keys as pointers are: multiples of 512, so that a bad hash would show. */
static uint64_t key_of(unsigned i)
{
	return UINT64_C(0x7f0000000000) + (uint64_t)i * 512;
}

static void an_absent_key_is_absent(void **state)
{
	struct table_entry e;

	assert_int_equal(table_get(&table, key_of(1), &e), TABLE_E_ABSENT);
	assert_int_equal(table_take(&table, key_of(1), NULL), TABLE_E_ABSENT);
	assert_int_equal(table_get(&table, 0, &e), TABLE_E_ABSENT);
}

static void what_was_put_is_found_and_taken_once(void **state)
{
	struct table_entry e;

	assert_int_equal(
		table_put(&table, (struct table_entry){.key = key_of(1), .a = 2, .b = 3}), 0);
	assert_int_equal(table_get(&table, key_of(1), &e), 0);
	assert_int_equal(e.a, 2);
	assert_int_equal(e.b, 3);
	assert_int_equal(
		table_put(&table, (struct table_entry){.key = key_of(1), .a = 4, .b = 5}), 0);
	assert_int_equal(table_take(&table, key_of(1), &e), 0);
	assert_int_equal(e.a, 4);
	assert_int_equal(table_take(&table, key_of(1), &e), TABLE_E_ABSENT);
}

static void random_work_agrees_with_an_array(void **state)
{
	static uint64_t expected[KEYS]; /* 0: absent */
	struct table_entry e;

	srand(1);
	for (int round = 0; round < ROUNDS; round++) {
		unsigned i = (unsigned)rand() % KEYS;
		int r;

		if (rand() % 2) {
			expected[i] = (uint64_t)rand() + 1;
			assert_int_equal(table_put(&table, (struct table_entry){.key = key_of(i),
								   .a = expected[i],
								   .b = 0}),
				0);
			continue;
		}
		r = table_take(&table, key_of(i), &e);
		assert_int_equal(r, expected[i] ? 0 : TABLE_E_ABSENT);
		if (r == 0)
			assert_int_equal(e.a, expected[i]);
		expected[i] = 0;
	}
	for (unsigned i = 0; i < KEYS; i++) {
		assert_int_equal(
			table_get(&table, key_of(i), &e), expected[i] ? 0 : TABLE_E_ABSENT);
		expected[i] = 0;
	}
}

static bool is_of(const struct table_entry *entry, uint64_t owner)
{
	return entry->a == owner;
}

static void a_sweep_takes_all_of_one_owner_and_nothing_else(void **state)
{
	struct table_cursor cursor = {0};
	struct table_entry e;
	unsigned taken = 0;

	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(
			table_put(
				&table, (struct table_entry){.key = key_of(i), .a = i % 3, .b = i}),
			0);
	while (table_take_next(&table, is_of, 1, &cursor, &e) == 0) {
		assert_int_equal(e.a, 1);
		taken++;
	}
	assert_int_equal(taken, (KEYS + 1) / 3);
	for (unsigned i = 0; i < KEYS; i++)
		assert_int_equal(table_get(&table, key_of(i), &e), i % 3 == 1 ? TABLE_E_ABSENT : 0);
}

static void *churn(void *argument)
{
	uint64_t mine = (uint64_t)(uintptr_t)argument * KEYS;
	struct table_entry e;

	for (unsigned round = 0; round < 50; round++) {
		for (unsigned i = 0; i < 200; i++)
			if (table_put(&table,
				    (struct table_entry){
					    .key = key_of((unsigned)mine + i), .a = mine, .b = i}) <
				0)
				return &table;
		for (unsigned i = 0; i < 200; i++)
			if (table_take(&table, key_of((unsigned)mine + i), &e) || e.b != i)
				return &table;
	}
	return NULL;
}

static void threads_do_not_disturb_each_other(void **state)
{
	pthread_t threads[THREADS];
	void *fault;

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &fault), 0);
		assert_null(fault);
	}
}

static void an_entry_is_added_changed_and_removed_in_its_place(void **state)
{
	struct table_place place = table_enter(&table, 7, false);
	struct table_entry entry;

	assert_null(place.entry);
	table_leave(&place);
	place = table_enter(&table, 7, true);
	assert_int_equal(place.entry->a, 0);
	place.entry->a = 3;
	table_leave(&place);
	assert_int_equal(table_get(&table, 7, &entry), 0);
	assert_int_equal(entry.a, 3);
	place = table_enter(&table, 7, false);
	assert_int_equal(place.entry->a, 3);
	table_remove(&place);
	assert_null(place.entry);
	table_leave(&place);
	assert_int_equal(table_get(&table, 7, &entry), TABLE_E_ABSENT);
}

static void add_up(const struct table_entry *entry, void *argument)
{
	*(uint64_t *)argument += entry->a;
}

static void a_visit_shows_each_entry_once(void **state)
{
	uint64_t sum = 0, taken;
	struct table_entry entry;

	table_visit(&table, add_up, &sum);
	assert_int_equal(sum, 0);
	for (uint64_t key = 1; key <= 20000; key++)
		assert_int_equal(table_put(&table, (struct table_entry){.key = key, .a = key}), 0);
	table_visit(&table, add_up, &sum);
	assert_int_equal(sum, 20000 * 20001 / 2);
	assert_int_equal(table_take(&table, 77, &entry), 0);
	taken = sum - entry.a;
	sum = 0;
	table_visit(&table, add_up, &sum);
	assert_int_equal(sum, taken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(an_absent_key_is_absent, forget),
		cmocka_unit_test_teardown(what_was_put_is_found_and_taken_once, forget),
		cmocka_unit_test_teardown(random_work_agrees_with_an_array, forget),
		cmocka_unit_test_teardown(
			an_entry_is_added_changed_and_removed_in_its_place, forget),
		cmocka_unit_test_teardown(a_sweep_takes_all_of_one_owner_and_nothing_else, forget),
		cmocka_unit_test_teardown(a_visit_shows_each_entry_once, forget),
		cmocka_unit_test_teardown(threads_do_not_disturb_each_other, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
