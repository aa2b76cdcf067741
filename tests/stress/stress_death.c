/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is killed at each place between two steps, for the 1st, 2nd, 3rd, ... time that it comes
 * there. After slot_reap() and ledger_settle() each device's total is what the living hold, exactly.
 */
#include <string.h>
#include <unistd.h>

#include "region/shared.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/stress/fault.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define DEVICES	  3u
#define LIMIT	  1000000u
#define TIMES	  8u   /* how often each place is passed before it kills */
#define SURVIVOR  100u /* units that the test itself holds of each device, and the device's number */
#define UNREACHED 55   /* the process came to its end alive */

struct plan {
	const char *path;
	unsigned place, n;
};

/* Makes a shared allocation of units that it holds, has it grow and shrink, and lets every second one go again. */
static int share(const struct region *region, unsigned slot, unsigned round, unsigned device)
{
	struct shared_memory memory = {.slot = slot,
		.device = device,
		.units = 2 + device,
		.name.key = (uint64_t)getpid() << 16 | round << 4 | device | 1u << 15,
		.fd = -1};
	unsigned shared, again;

	/* The survivor's, which stays the survivor's, whoever holds it and dies. */
	if (shared_hold(region, slot, &(struct shared_name){.key = 77}, &again) != 0)
		return 5;
	if (shared_make(region, &memory, &shared) != 0 ||
		shared_hold(region, slot, &memory.name, &again) != 0 || again != shared)
		return 5;
	shared_grow(region, slot, shared, 3);
	shared_shrink(region, slot, shared, 3);
	if (round % 2)
		shared_let_go(region, slot, shared);
	return 0;
}

/* Claims a slot, and works until it dies: charges and gives back, and reaps whom it finds. */
static int work(int fd, void *argument)
{
	const struct plan *plan = argument;
	struct region region = REGION_NULL;
	unsigned slot, reaped;

	if (region_open(plan->path, &region) != 0 || slot_claim(&region, &slot) != 0)
		return 1;
	fault_arm(plan->place, plan->n, SIGKILL);
	if (slot_reap(&region, &reaped) != 0)
		return 2;
	for (unsigned round = 0; round < TIMES; round++) {
		for (unsigned d = 0; d < DEVICES; d++) {
			unsigned units = 5 + 7 * round + d;

			if (ledger_charge(region.file, slot, d, units, LIMIT) != 0)
				return 3;
			if (ledger_charge(region.file, slot, d, LIMIT, LIMIT) != LEDGER_E_FULL)
				return 4;
			if (share(&region, slot, round, d) != 0)
				return 5;
			if (round % 2)
				ledger_uncharge(region.file, slot, d, units - 2 - (2 + d));
		}
	}
	return UNREACHED;
}

/* A shared allocation that the survivor holds, too, whoever made it and died. */
static void hold_one(struct region *region, unsigned survivor)
{
	unsigned shared;

	assert_int_equal(ledger_charge(region->file, survivor, 0, 40, LIMIT), 0);
	assert_int_equal(shared_make(region,
				 &(struct shared_memory){
					 .slot = survivor, .units = 40, .name.key = 77, .fd = -1},
				 &shared),
		0);
}

/* The test's own region, with a slot and what it holds. */
static unsigned survive(const struct scratch *s, struct region *region)
{
	unsigned slot;

	assert_int_equal(region_open(s->file, region), 0);
	assert_int_equal(slot_claim(region, &slot), 0);
	for (unsigned d = 0; d < DEVICES; d++)
		assert_int_equal(ledger_charge(region->file, slot, d, SURVIVOR + d, LIMIT), 0);
	hold_one(region, slot);
	return slot;
}

static void assert_exact(struct region *region, unsigned survivor)
{
	unsigned shared = 0;

	for (unsigned i = 0; i < REGION_SHARED; i++)
		shared += (unsigned)ledger_shared_units(
			atomic_load(&region->file->own.shared[i].word));
	assert_int_equal(shared, 40);
	for (unsigned d = 0; d < REGION_DEVICES; d++) {
		unsigned expected = d < DEVICES ? SURVIVOR + d : 0, held = 0;

		assert_true(ledger_used_units(region->file, d) >= expected);
		assert_int_equal(ledger_settle(region->file, d), 0);
		for (unsigned i = 0; i < REGION_SLOTS; i++) {
			uint64_t word = atomic_load(&region->file->own.slots[i].held[d]);

			assert_int_equal((uint32_t)word, 0);
			held += (unsigned)(word >> 32);
		}
		assert_int_equal(held, expected);
		assert_int_equal(ledger_held_units(region->file, survivor, d), expected);
		assert_int_equal(
			ledger_used_units(region->file, d), expected + (d == 0 ? shared : 0));
	}
}

static void assert_all_free_but(struct region *region, unsigned survivor)
{
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		assert_int_equal(atomic_load(&region->file->own.slots[i].state),
			i == survivor ? SLOT_LIVE : SLOT_FREE);
}

/* Starts a worker with the plan and returns how it ended. */
static int run(const struct plan *plan)
{
	struct child c = child_start(work, (void *)(uintptr_t)plan);

	return child_wait(&c);
}

static void reap_all(struct region *region, unsigned survivor)
{
	unsigned reaped;

	assert_int_equal(slot_reap(region, &reaped), 0);
	assert_true(reaped > 0);
	shared_sweep(region, survivor);
}

/*
 * Each place, each time. Where the place is a reaper's, a worker dies first in the middle of a
 * charge, so that the reaper under test finds units held and units on their way.
 */
static void a_death_between_any_two_steps_leaves_the_books_exact(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned survivor = survive(s, &region);

	for (unsigned place = 0; place < fault_place_count; place++) {
		unsigned deaths = 0;

		for (unsigned n = 1; n <= TIMES; n++) {
			struct plan victim = {.path = s->file, .place = n % 2, .n = 6};
			struct plan plan = {.path = s->file, .place = place, .n = n};
			int status;

			if (fault_is_reapers(place))
				assert_int_equal(run(&victim), CHILD_SIGNALLED + SIGKILL);
			status = run(&plan);
			if (status != UNREACHED) {
				assert_int_equal(status, CHILD_SIGNALLED + SIGKILL);
				deaths++;
			}
			reap_all(&region, survivor);
			assert_exact(&region, survivor);
			assert_all_free_but(&region, survivor);
		}
		if (deaths == 0)
			print_error("nobody died at '%s'\n", fault_places[place]);
		assert_true(deaths > 0);
	}
	region_close(&region);
}

/* The reaper of a dead process dies, and its reaper, and its: at every reaper's place in turn. */
static void reapers_that_die_reaping_reapers_leave_the_books_exact(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned survivor = survive(s, &region);

	for (unsigned first = 0; first < fault_place_count; first++) {
		struct plan victim = {.path = s->file, .place = first, .n = 4};

		if (fault_is_reapers(first))
			continue;
		assert_int_equal(run(&victim), CHILD_SIGNALLED + SIGKILL);
		for (unsigned place = 0; place < fault_place_count; place++) {
			struct plan plan = {.path = s->file, .place = place, .n = 1};
			int status;

			if (!fault_is_reapers(place))
				continue;
			status = run(&plan);
			assert_true(status == UNREACHED || status == CHILD_SIGNALLED + SIGKILL);
		}
		reap_all(&region, survivor);
		assert_exact(&region, survivor);
		assert_all_free_but(&region, survivor);
	}
	region_close(&region);
}

/* Somebody who claims a slot dies in it, and the next claimer finds it as if it were new. */
static void a_claimer_finds_a_clean_slot_after_any_death(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL, other = REGION_NULL;
	unsigned survivor = survive(s, &region), slot;

	for (unsigned place = 0; place < fault_place_count; place++) {
		struct plan plan = {.path = s->file, .place = place, .n = 2};

		run(&plan);
		reap_all(&region, survivor);
		assert_int_equal(region_open(s->file, &other), 0);
		assert_int_equal(slot_claim(&other, &slot), 0);
		for (unsigned d = 0; d < REGION_DEVICES; d++)
			assert_int_equal(atomic_load(&region.file->own.slots[slot].held[d]), 0);
		region_close(&other);
		reap_all(&region, survivor);
		assert_exact(&region, survivor);
	}
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_death_between_any_two_steps_leaves_the_books_exact),
		SCRATCH_TEST(reapers_that_die_reaping_reapers_leave_the_books_exact),
		SCRATCH_TEST(a_claimer_finds_a_clean_slot_after_any_death),
	};

	return cmocka_run_group_tests_name("death", tests, NULL, NULL);
}
