/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: limits to the unit, between processes and behind the back of the dead. */
#include "region/ledger.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"

#define MIB	16u /* units */
#define LIMIT	(1024 * MIB)
#define ROUNDS	20000
#define A	3u /* slots and the device of these tests */
#define B	7u
#define D	5u
#define HANG_NS UINT64_C(20000000000)

/* The ledger needs no file, only its memory, shared where the test forks. */
static int make_memory(void **state)
{
	struct region_file *f = child_shared_memory(sizeof(*f));

	if (!f)
		return -1;
	atomic_store(&f->own.slot_high, B + 1);
	*state = f;
	return 0;
}

static int drop_memory(void **state)
{
	return munmap(*state, sizeof(struct region_file));
}

static void set_words(struct region_file *f, uint64_t total, uint64_t held_a, uint64_t held_b)
{
	atomic_store(&f->own.devices[D].total, total);
	atomic_store(&f->own.slots[A].held[D], held_a);
	atomic_store(&f->own.slots[B].held[D], held_b);
}

static void assert_used(const struct region_file *f, uint32_t a, uint32_t b)
{
	assert_int_equal(atomic_load(&f->own.slots[A].held[D]), (uint64_t)a << 32);
	assert_int_equal(atomic_load(&f->own.slots[B].held[D]), (uint64_t)b << 32);
	assert_int_equal(ledger_held_units(f, A, D), a);
	assert_int_equal(ledger_held_units(f, B, D), b);
	assert_int_equal(ledger_used_units(f, D), a + b);
}

static void bytes_are_rounded_up_to_units_and_limits_down(void **state)
{
	assert_int_equal(ledger_units(0), 0);
	assert_int_equal(ledger_units(1), 1);
	assert_int_equal(ledger_units(65536), 1);
	assert_int_equal(ledger_units(65537), 2);
	assert_true(ledger_units(UINT64_MAX) > LEDGER_MAX_UNITS);
	assert_true(ledger_units(UINT64_MAX - 65534) > LEDGER_MAX_UNITS);
	assert_int_equal(ledger_limit_units(65535), 0);
	assert_int_equal(ledger_limit_units(65536), 1);
	assert_int_equal(ledger_limit_units(131071), 1);
	assert_int_equal(ledger_limit_units(UINT64_MAX), LEDGER_NO_LIMIT - 1);
	assert_int_equal(
		ledger_limit_units(UINT64_C(65536) * LEDGER_NO_LIMIT), LEDGER_NO_LIMIT - 1);
}

static void a_limit_holds_to_the_unit(void **state)
{
	struct region_file *f = *state;

	assert_int_equal(ledger_charge(f, A, D, 600, 1000), 0);
	assert_int_equal(ledger_charge(f, B, D, 401, 1000), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, B, D, 400, 1000), 0);
	assert_int_equal(ledger_charge(f, A, D, 1, 1000), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, A, D, 0, 1000), 0);
	assert_used(f, 600, 400);
	ledger_uncharge(f, A, D, 1);
	assert_int_equal(ledger_charge(f, B, D, 2, 1000), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, B, D, 1, 1000), 0);
	assert_used(f, 599, 401);
}

static void a_limit_of_zero_refuses_all_but_nothing(void **state)
{
	struct region_file *f = *state;

	assert_int_equal(ledger_charge(f, A, D, 1, 0), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, A, D, 0, 0), 0);
	assert_used(f, 0, 0);
}

static void a_limit_below_the_use_refuses_and_takes_nothing_away(void **state)
{
	struct region_file *f = *state;

	assert_int_equal(ledger_charge(f, A, D, 600, 1000), 0);
	assert_int_equal(ledger_charge(f, B, D, 1, 500), LEDGER_E_FULL);
	assert_used(f, 600, 0);
}

static void devices_are_counted_each_for_itself(void **state)
{
	struct region_file *f = *state;

	for (unsigned d = 0; d < REGION_DEVICES; d++)
		assert_int_equal(ledger_charge(f, A, d, d + 1, d + 1), 0);
	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		assert_int_equal(ledger_charge(f, B, d, 1, d + 1), LEDGER_E_FULL);
		assert_int_equal(ledger_used_units(f, d), d + 1);
		assert_int_equal(ledger_held_units(f, A, d), d + 1);
	}
}

static void a_refused_charge_changes_nothing(void **state)
{
	struct region_file *f = *state, *before = malloc(sizeof(*f));

	assert_non_null(before);
	assert_int_equal(ledger_charge(f, A, D, 600, 1000), 0);
	memcpy(before, f, sizeof(*f));
	assert_int_equal(ledger_charge(f, B, D, 401, 1000), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, A, D, 1000, 1000), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, A, D, LEDGER_MAX_UNITS, 1000), LEDGER_E_FULL);
	assert_int_equal(
		ledger_charge(f, A, D, LEDGER_MAX_UNITS + 1, LEDGER_NO_LIMIT), LEDGER_E_FULL);
	assert_int_equal(ledger_charge(f, A, D, UINT64_MAX, LEDGER_NO_LIMIT), LEDGER_E_FULL);
	assert_memory_equal(before, f, sizeof(*f));
	free(before);
}

static void errno_is_kept(void **state)
{
	errno = EXDEV;
	assert_int_equal(ledger_charge(*state, A, D, 600, 1000), 0);
	assert_int_equal(ledger_charge(*state, A, D, 600, 1000), LEDGER_E_FULL);
	ledger_uncharge(*state, A, D, 600);
	assert_int_equal(errno, EXDEV);
}

static void what_the_driver_has_taken_is_charged_above_the_limit(void **state)
{
	struct region_file *f = *state;

	assert_int_equal(ledger_charge(f, A, D, 1000, 1000), 0);
	ledger_charge_anyway(f, B, D, 500);
	assert_used(f, 1000, 500);
	assert_int_equal(ledger_charge(f, A, D, 1, 1000), LEDGER_E_FULL);
	ledger_uncharge(f, B, D, 500);
	assert_used(f, 1000, 0);
}

static void without_a_limit_the_whole_word_may_be_filled_and_no_more(void **state)
{
	struct region_file *f = *state;
	uint64_t charged = 0;

	while (ledger_charge(f, A, D, LEDGER_MAX_UNITS, LEDGER_NO_LIMIT) == 0)
		charged += LEDGER_MAX_UNITS;
	assert_int_equal(
		charged, (LEDGER_NO_LIMIT / LEDGER_MAX_UNITS) * (uint64_t)LEDGER_MAX_UNITS);
	assert_int_equal(ledger_charge(f, A, D, LEDGER_MAX_UNITS - 1, LEDGER_NO_LIMIT), 0);
	assert_int_equal(ledger_charge(f, A, D, 1, LEDGER_NO_LIMIT), LEDGER_E_FULL);
	assert_used(f, UINT32_MAX, 0);
	ledger_uncharge(f, A, D, UINT32_MAX);
	assert_used(f, 0, 0);
}

struct race {
	struct region_file *file;
	_Atomic uint32_t *arrived; /* counts on through all rounds: two a barrier */
	_Atomic uint8_t *won;	   /* by round: a bit a process */
	unsigned slot;
};

/* Waits until both processes have come for the n-th time; spins, so that they leave together. */
static void meet(struct race *race, uint32_t n)
{
	atomic_fetch_add(race->arrived, 1);
	for (int spins = 0; atomic_load(race->arrived) < 2 * n; spins++) {
		lock_pause();
		if (spins > 500)
			sched_yield();
	}
}

/* Says how often it won, and how many rounds were not as they should be. */
static int race_for_memory(int fd, void *argument)
{
	struct race *race = argument;
	unsigned mine = race->slot == A ? 1 : 2, wins = 0, bad_rounds = 0;
	uint32_t n = 0;

	for (int round = 0; round < ROUNDS; round++) {
		bool is_mine;

		meet(race, ++n);
		is_mine = ledger_charge(race->file, race->slot, D, 600 * MIB, LIMIT) == 0;
		if (is_mine)
			atomic_fetch_or(&race->won[round], mine);
		meet(race, ++n);
		bad_rounds += race->won[round] != 1 && race->won[round] != 2;
		if (!is_mine)
			continue;
		wins++;
		bad_rounds += ledger_used_units(race->file, D) != 600 * MIB;
		ledger_uncharge(race->file, race->slot, D, 600 * MIB);
	}
	child_say(fd, wins);
	child_say(fd, bad_rounds);
	return 0;
}

static void of_two_that_ask_for_600_of_1024_mib_at_once_exactly_one_wins(void **state)
{
	struct region_file *f = *state;
	size_t size = 64 + ROUNDS;
	uint8_t *bytes = child_shared_memory(size);
	struct race a = {
		.file = f, .arrived = (void *)bytes, .won = (void *)(bytes + 64), .slot = A};
	struct race b = a;
	struct child first, second;
	uint64_t wins;

	b.slot = B;
	first = child_start(race_for_memory, &a);
	second = child_start(race_for_memory, &b);
	wins = child_hear(first.fd) + child_hear(second.fd);
	assert_int_equal(wins, ROUNDS);
	assert_int_equal(child_hear(first.fd), 0);
	assert_int_equal(child_hear(second.fd), 0);
	assert_int_equal(child_wait(&first), 0);
	assert_int_equal(child_wait(&second), 0);
	assert_used(f, 0, 0);
	munmap(bytes, size);
}

static void what_the_dead_held_is_given_back_exactly(void **state)
{
	struct region_file *f = *state;

	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		assert_int_equal(ledger_charge(f, A, d, 100 + d, 1000), 0);
		assert_int_equal(ledger_charge(f, B, d, 7, 1000), 0);
	}
	ledger_note(f, A, D, CHARGE_POOL, 4096);
	ledger_reap(f, A);
	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		assert_int_equal(ledger_used_units(f, d), 7);
		assert_int_equal(atomic_load(&f->own.slots[A].held[d]), 0);
		assert_false(ledger_is_in_doubt(f, d));
	}
	assert_int_equal(atomic_load(&f->own.slots[A].kind_bytes[D][CHARGE_POOL]), 0);
	assert_int_equal(atomic_load(&f->hami.slots[A].used[D].data_bytes), 0);
	assert_int_equal(atomic_load(&f->hami.slots[A].used[D].total_bytes), 0);
	ledger_reap(f, A);
	assert_used(f, 0, 7);
}

/* The four states in which a process may die between two steps; 50 of B's must be left. */
static void the_last_step_of_the_dead_becomes_doubt_and_is_settled(void **state)
{
	static const struct {
		uint64_t total, held;
	} deaths[] = {
		{50, 9},			     /* charge of 9, not yet in total */
		{59, 9},			     /* charge of 9, in total */
		{59, 9},			     /* give-back of 9, still in total */
		{50, 9},			     /* give-back of 9, out of total */
		{50 + 20, (UINT64_C(20) << 32) | 9}, /* the same with 20 held besides */
		{50 + 20 + 9, (UINT64_C(20) << 32) | 9},
	};
	struct region_file *f = *state;

	for (size_t i = 0; i < ARRAY_SIZE(deaths); i++) {
		set_words(f, deaths[i].total << 32, deaths[i].held, UINT64_C(50) << 32);
		ledger_reap(f, A);
		assert_true(ledger_used_units(f, D) >= 50);
		assert_true(ledger_is_in_doubt(f, D));
		assert_int_equal(ledger_settle(f, D), 0);
		assert_used(f, 0, 50);
		assert_int_equal(ledger_settle(f, D), 0);
	}
}

static void settling_without_doubt_changes_nothing(void **state)
{
	struct region_file *f = *state;

	set_words(f, UINT64_C(99) << 32 | 5, 0, UINT64_C(50) << 32);
	assert_int_equal(ledger_settle(f, D), 0);
	assert_int_equal(atomic_load(&f->own.devices[D].total), UINT64_C(99) << 32 | 5);
}

static void settling_waits_for_nobody_between_two_steps(void **state)
{
	struct region_file *f = *state;
	uint64_t start = clock_now_ns();

	set_words(f, UINT64_C(70) << 32, 20, UINT64_C(50) << 32);
	ledger_reap(f, A);
	/* B has begun a charge and does not go on */
	atomic_fetch_add(&f->own.slots[B].held[D], 3);
	assert_int_equal(ledger_settle(f, D), -EAGAIN);
	assert_true(clock_now_ns() - start < HANG_NS);
	assert_int_equal(ledger_used_units(f, D), 70);
	atomic_fetch_sub(&f->own.slots[B].held[D], 3);
	assert_int_equal(ledger_settle(f, D), 0);
	assert_used(f, 0, 50);
}

static void a_slot_above_the_highest_is_not_counted(void **state)
{
	struct region_file *f = *state;

	set_words(f, UINT64_C(70) << 32, 20, UINT64_C(50) << 32);
	atomic_store(&f->own.slots[B + 1].held[D], UINT64_C(1000) << 32);
	ledger_reap(f, A);
	assert_int_equal(ledger_settle(f, D), 0);
	assert_int_equal(ledger_used_units(f, D), 50);
}

static void a_total_that_was_made_too_small_becomes_zero_not_huge(void **state)
{
	struct region_file *f = *state;

	assert_int_equal(ledger_charge(f, A, D, 600, 1000), 0);
	atomic_store(&f->own.devices[D].total, 0);
	ledger_uncharge(f, A, D, 600);
	assert_used(f, 0, 0);
	assert_int_equal(ledger_charge(f, A, D, 600, 1000), 0);
	atomic_store(&f->own.devices[D].total, 0);
	ledger_reap(f, A);
	assert_int_equal(ledger_used_units(f, D), 0);
}

static void hostile_words_neither_crash_nor_hang(void **state)
{
	static const uint64_t patterns[] = {UINT64_MAX, UINT64_MAX << 32, UINT32_MAX,
		UINT64_C(1) << 63, UINT64_C(0x5555555555555555), UINT64_C(0xffffffff00000001)};
	struct region_file *f = *state;
	uint64_t start = clock_now_ns();

	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		uint64_t *words = (uint64_t *)(void *)&f->own;

		for (size_t w = 0; w < sizeof(f->own) / sizeof(*words); w++)
			words[w] = patterns[i];
		memset(&f->hami, (int)(patterns[i] & 0xff), sizeof(f->hami));
		if (ledger_charge(f, A, D, 5, 1000) == 0)
			ledger_uncharge(f, A, D, 5);
		ledger_charge_anyway(f, A, D, 5);
		ledger_uncharge(f, B, D, LEDGER_MAX_UNITS);
		ledger_note(f, A, D, CHARGE_UNATTRIBUTED, INT64_MIN);
		ledger_reap(f, A);
		ledger_reap(f, REGION_SLOTS - 1);
		if (ledger_settle(f, D) == 0)
			assert_false(ledger_is_in_doubt(f, D));
	}
	assert_true(clock_now_ns() - start < HANG_NS);
}

static void a_hostile_sum_makes_the_device_full(void **state)
{
	struct region_file *f = *state;

	set_words(f, UINT64_C(100) << 32, UINT64_MAX << 32, UINT64_MAX << 32);
	atomic_store(&f->own.devices[D].doubts, 1);
	assert_int_equal(ledger_settle(f, D), 0);
	assert_int_equal(ledger_used_units(f, D), UINT32_MAX);
}

static void an_audit_of_right_books_changes_nothing(void **state)
{
	struct region_file *f = *state;

	assert_true(ledger_audit(f, D));
	set_words(f, UINT64_C(70) << 32 | 5, UINT64_C(20) << 32, UINT64_C(50) << 32);
	assert_true(ledger_audit(f, D));
	/* on its way, and in the total or not */
	set_words(f, UINT64_C(80) << 32 | 5, UINT64_C(20) << 32 | 10, UINT64_C(50) << 32);
	assert_true(ledger_audit(f, D));
	set_words(f, UINT64_C(70) << 32 | 5, UINT64_C(20) << 32 | 10, UINT64_C(50) << 32);
	assert_true(ledger_audit(f, D));
	assert_true(atomic_load(&f->own.devices[D].total) == (UINT64_C(70) << 32 | 5));
}

static void an_audit_puts_right_a_total_that_was_tampered_with(void **state)
{
	struct region_file *f = *state;

	set_words(f, 0, UINT64_C(20) << 32, UINT64_C(50) << 32);
	assert_false(ledger_audit(f, D));
	assert_true(atomic_load(&f->own.devices[D].total) == (UINT64_C(70) << 32 | 1));
	/* too low, with something on its way: at least what is held */
	set_words(f, UINT64_C(69) << 32, UINT64_C(20) << 32 | 10, UINT64_C(50) << 32);
	assert_false(ledger_audit(f, D));
	assert_int_equal(ledger_used_units(f, D), 70);
	/* too high */
	set_words(f, UINT64_C(71) << 32, UINT64_C(20) << 32, UINT64_C(50) << 32);
	assert_false(ledger_audit(f, D));
	assert_int_equal(ledger_used_units(f, D), 70);
	/* slots that a hostile count hides */
	atomic_store(&f->own.slot_high, 0);
	set_words(f, 0, UINT64_C(20) << 32, UINT64_C(50) << 32);
	assert_false(ledger_audit(f, D));
	assert_int_equal(ledger_used_units(f, D), 70);
	set_words(f, 0, UINT64_MAX, UINT64_MAX);
	assert_false(ledger_audit(f, D));
	assert_int_equal(ledger_used_units(f, D), UINT32_MAX);
}

static void notes_are_kept_by_kind_and_for_hamis_monitor(void **state)
{
	struct region_file *f = *state;

	assert_int_equal(ledger_charge(f, A, D, 3, 1000), 0);
	for (int k = 0; k < CHARGE_KIND_COUNT; k++)
		ledger_note(f, A, D, (enum charge_kind)k, 100 + k);
	ledger_note(f, A, D, CHARGE_PLAIN, -101);
	for (int k = 0; k < CHARGE_KIND_COUNT; k++)
		assert_int_equal(atomic_load(&f->own.slots[A].kind_bytes[D][k]),
			k == CHARGE_PLAIN ? 0 : 100 + k);
	assert_int_equal(atomic_load(&f->hami.slots[A].used[D].context_bytes), 100);
	assert_int_equal(atomic_load(&f->hami.slots[A].used[D].module_bytes), 105);
	assert_int_equal(atomic_load(&f->hami.slots[A].used[D].data_bytes),
		102 + 103 + 104 + 106 + 107 + 108 + 109 + 110);
	assert_int_equal(atomic_load(&f->hami.slots[A].used[D].total_bytes),
		100 + 102 + 103 + 104 + 105 + 106 + 107 + 108 + 109 + 110);
	assert_int_equal(ledger_used_units(f, D), 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_memory, drop_memory)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_rounded_up_to_units_and_limits_down),
		TEST(a_limit_holds_to_the_unit),
		TEST(a_limit_of_zero_refuses_all_but_nothing),
		TEST(a_limit_below_the_use_refuses_and_takes_nothing_away),
		TEST(devices_are_counted_each_for_itself),
		TEST(a_refused_charge_changes_nothing),
		TEST(errno_is_kept),
		TEST(what_the_driver_has_taken_is_charged_above_the_limit),
		TEST(without_a_limit_the_whole_word_may_be_filled_and_no_more),
		TEST(of_two_that_ask_for_600_of_1024_mib_at_once_exactly_one_wins),
		TEST(what_the_dead_held_is_given_back_exactly),
		TEST(the_last_step_of_the_dead_becomes_doubt_and_is_settled),
		TEST(settling_without_doubt_changes_nothing),
		TEST(settling_waits_for_nobody_between_two_steps),
		TEST(a_slot_above_the_highest_is_not_counted),
		TEST(a_total_that_was_made_too_small_becomes_zero_not_huge),
		TEST(hostile_words_neither_crash_nor_hang),
		TEST(a_hostile_sum_makes_the_device_full),
		TEST(an_audit_of_right_books_changes_nothing),
		TEST(an_audit_puts_right_a_total_that_was_tampered_with),
		TEST(notes_are_kept_by_kind_and_for_hamis_monitor),
	};

	return cmocka_run_group_tests_name("ledger", tests, NULL, NULL);
}
