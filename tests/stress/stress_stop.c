/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process is stopped at each place between two steps. The others go on charging and giving back,
 * the total stays under the limit, and when the stopped one goes on or dies, the books are exact.
 */
#include "base/clock.h"
#include "region/shared.h"
#include "region/ledger.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/stress/fault.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define LIMIT	   1000u
#define ROUNDS	   2000
#define LONGEST_NS 50000000u /* that anybody may be held up by a stopped process */
#define ATTEMPTS   20	     /* a busy machine may take the processor away for longer than that */
#define FIRST_HELD 10u

struct plan {
	const char *path;
	unsigned place;
};

/* Makes a shared allocation of units that the slot holds, has it grow and shrink, and gives it back. */
static int share(const struct region *region, unsigned slot)
{
	struct shared_memory memory = {
		.slot = slot, .units = 20, .name.key = (uint64_t)getpid(), .fd = -1};
	unsigned shared;

	if (shared_make(region, &memory, &shared) != 0)
		return -1;
	shared_grow(region, slot, shared, 30);
	shared_shrink(region, slot, shared, 30);
	shared_let_go(region, slot, shared);
	return 0;
}

/* Charges, shares and gives back, reaps, and says when it has come through. */
static int work(int fd, void *argument)
{
	const struct plan *plan = argument;
	struct region region = REGION_NULL;
	unsigned slot, reaped;

	if (region_open(plan->path, &region) != 0 || slot_claim(&region, &slot) != 0)
		return 1;
	fault_arm(plan->place, 1, SIGSTOP);
	if (slot_reap(&region, &reaped) != 0)
		return 2;
	if (ledger_charge(region.file, slot, 0, 100, LIMIT) != 0)
		return 3;
	if (share(&region, slot) != 0)
		return 4;
	ledger_uncharge(region.file, slot, 0, 40);
	child_say(fd, fault_count());
	child_hear(fd);
	return 0;
}

/* Dies holding some, with a step undone. */
static int die_in_a_charge(int fd, void *argument)
{
	struct region region = REGION_NULL;
	unsigned slot;

	if (region_open(argument, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		ledger_charge(region.file, slot, 0, 7, LIMIT) != 0)
		return 1;
	fault_arm(1, 1, SIGKILL);
	return ledger_charge(region.file, slot, 0, 9, LIMIT);
}

/* The longest that one charge and give-back took. */
static uint64_t go_on(struct region *region, unsigned slot)
{
	uint64_t longest = 0;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_now_ns(), took;

		assert_int_equal(ledger_charge(region->file, slot, 0, 500, LIMIT), 0);
		assert_true(ledger_used_units(region->file, 0) <= LIMIT);
		assert_int_equal(ledger_charge(region->file, slot, 0, 501, LIMIT), LEDGER_E_FULL);
		ledger_uncharge(region->file, slot, 0, 500);
		took = clock_now_ns() - start;
		longest = took > longest ? took : longest;
	}
	return longest;
}

static void assert_nobody_waits(struct region *region, unsigned slot)
{
	struct region newcomer = REGION_NULL;
	unsigned reaped, other;
	uint64_t start, took = UINT64_MAX, newcomer_took = UINT64_MAX;

	for (int i = 0; i < ATTEMPTS && took > LONGEST_NS; i++)
		took = go_on(region, slot);
	assert_true(took <= LONGEST_NS);

	for (int i = 0; i < ATTEMPTS && newcomer_took >= 10 * SLOT_REAP_WAIT_NS; i++) {
		start = clock_now_ns();
		assert_int_equal(region_open(region->path, &newcomer), 0);
		assert_int_equal(slot_claim(&newcomer, &other), 0);
		assert_int_equal(slot_reap(region, &reaped), 0);
		if (ledger_settle(region->file, 0) != 0)
			assert_true(ledger_used_units(region->file, 0) <= LIMIT);
		newcomer_took = clock_now_ns() - start;
		region_close(&newcomer);
	}
	assert_true(newcomer_took < 10 * SLOT_REAP_WAIT_NS);
}

static void assert_exact(struct region *region)
{
	uint64_t held = 0;
	unsigned reaped;

	assert_int_equal(slot_reap(region, &reaped), 0);
	assert_int_equal(ledger_settle(region->file, 0), 0);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		held += ledger_held_units(region->file, i, 0);
	for (unsigned i = 0; i < REGION_SHARED; i++)
		held += ledger_shared_units(atomic_load(&region->file->own.shared[i].word));
	assert_int_equal(ledger_used_units(region->file, 0), held);
}

/* Stops a worker at the place; then lets it go on, or kills it as it stands. */
static void stop_at(const struct scratch *s, struct region *region, unsigned slot, unsigned place,
	bool is_killed)
{
	struct plan plan = {.path = s->file, .place = place};
	struct child victim = child_start(die_in_a_charge, (void *)(uintptr_t)s->file), c;
	int status;

	assert_int_equal(child_wait(&victim), CHILD_SIGNALLED + SIGKILL);
	c = child_start(work, &plan);
	assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
	if (!WIFSTOPPED(status))
		print_error("nobody stopped at '%s'\n", fault_places[place]);
	assert_true(WIFSTOPPED(status));
	assert_nobody_waits(region, slot);
	if (is_killed) {
		assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
		assert_exact(region);
		return;
	}
	kill(c.pid, SIGCONT);
	assert_true(child_hear(c.fd) > 0);
	assert_exact(region);
	assert_int_equal(ledger_used_units(region->file, 0), FIRST_HELD + 40);
	child_say(c.fd, 1);
	assert_int_equal(child_wait(&c), 0);
	assert_exact(region);
	assert_int_equal(ledger_used_units(region->file, 0), FIRST_HELD);
}

static void stop_everywhere(const struct scratch *s, bool is_killed)
{
	struct region region = REGION_NULL;
	unsigned slot;

	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(ledger_charge(region.file, slot, 0, FIRST_HELD, LIMIT), 0);
	for (unsigned place = 0; place < fault_place_count; place++)
		stop_at(s, &region, slot, place, is_killed);
	region_close(&region);
}

static void a_stopped_process_holds_nobody_up_and_may_go_on(void **state)
{
	stop_everywhere(*state, false);
}

static void a_stopped_process_holds_nobody_up_and_may_die(void **state)
{
	stop_everywhere(*state, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_stopped_process_holds_nobody_up_and_may_go_on),
		SCRATCH_TEST(a_stopped_process_holds_nobody_up_and_may_die),
	};

	return cmocka_run_group_tests_name("stop", tests, NULL, NULL);
}
