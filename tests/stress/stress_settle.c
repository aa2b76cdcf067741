/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A settler is held up at its last step, after it has made the total exact and before it says that
 * there is no doubt, while another process settles, a third dies between two steps, and its slot is
 * reaped. The doubt about the third must survive the first settler's last step.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

static bool run_before_exchange(_Atomic uint64_t *word);

/* The ledger's own source, whose strong exchanges tell us before they happen. */
#undef atomic_compare_exchange_strong
#define atomic_compare_exchange_strong(word, expected, desired)                        \
	(run_before_exchange(word),                                                    \
		atomic_compare_exchange_strong_explicit((word), (expected), (desired), \
			memory_order_seq_cst, memory_order_seq_cst))
#include "region/ledger.c"

#include "tests/unit/cmocka_ready.h"

#define LIVING 1u
#define DEAD   2u

static struct region_file *file;
static void (*meanwhile)(void); /* what the others do before the settler's last step; once */

static bool run_before_exchange(_Atomic uint64_t *word)
{
	void (*others)(void) = meanwhile;

	if (!others || word != &file->own.devices[0].doubts_settled)
		return false;
	meanwhile = NULL;
	others();
	return true;
}

static int make_memory(void **state)
{
	file = mmap(
		NULL, sizeof(*file), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file == MAP_FAILED)
		return -1;
	atomic_store(&file->own.slot_high, DEAD + 1);
	return ledger_charge(file, LIVING, 0, 50, 1000);
}

static int drop_memory(void **state)
{
	return munmap(file, sizeof(*file));
}

/* Charges 9 with DEAD's slot, dies behind step 2, and is reaped. */
static void die_and_be_reaped(void)
{
	atomic_fetch_add(&file->own.slots[DEAD].held[0], 9);
	atomic_fetch_add(&file->own.devices[0].total, (UINT64_C(9) << 32) + 1);
	ledger_reap(file, DEAD);
}

static void settle_and_die(void)
{
	assert_int_equal(ledger_settle(file, 0), 0);
	die_and_be_reaped();
}

static void settle_with(void (*others)(void))
{
	die_and_be_reaped();
	assert_int_equal(ledger_used_units(file, 0), 59);
	meanwhile = others;
	assert_int_equal(ledger_settle(file, 0), 0);
	assert_null(meanwhile);
	/* a caller who is refused asks again */
	assert_int_equal(ledger_settle(file, 0), 0);
	assert_int_equal(ledger_used_units(file, 0), 50);
}

static void a_death_before_the_settlers_last_step_is_not_forgotten(void **state)
{
	settle_with(die_and_be_reaped);
}

static void nor_is_it_when_another_has_settled_meanwhile(void **state)
{
	settle_with(settle_and_die);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_memory, drop_memory)
	const struct CMUnitTest tests[] = {
		TEST(a_death_before_the_settlers_last_step_is_not_forgotten),
		TEST(nor_is_it_when_another_has_settled_meanwhile),
	};

	return cmocka_run_group_tests_name("settle", tests, NULL, NULL);
}
