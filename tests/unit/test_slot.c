/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: taken once, kept as long as their process lives, and given back by every kind of death. */
#include "region/slot.h"

#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "region/ledger.h"
#include "region/process.h"
#include "region/shared.h"
#include "region/snapshot.h"
#include "tests/unit/claimer.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define CLAIMERS 8
#define SKIPPED	 77
#define HANG_NS	 UINT64_C(20000000000)

static void a_process_takes_the_first_free_slot_and_signs_it(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct process_identity me;
	struct region_slot *own;
	unsigned slot = 99;

	process_identify_self(&me);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(slot, 0);
	own = &region.file->own.slots[0];
	assert_int_equal(slot_state(&region, 0), SLOT_LIVE);
	assert_int_equal(atomic_load(&own->pid), getpid());
	assert_int_equal(atomic_load(&own->start_time), me.start_time);
	assert_int_equal(atomic_load(&own->pid_namespace), me.pid_namespace);
	assert_string_equal(own->command, "test_slot");
	assert_int_equal(atomic_load(&region.file->hami.slots[0].pid), getpid());
	assert_int_equal(atomic_load(&region.file->hami.slots[0].host_pid),
		process_is_in_first_namespace(&me) ? getpid() : 0);
	assert_int_equal(atomic_load(&region.file->hami.slots[0].status), HAMI_RUNNING);
	assert_int_equal(atomic_load(&region.file->own.slot_high), 1);
	assert_int_equal(atomic_load(&region.file->hami.slot_count), 1);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(slot, 1);
	region_close(&region);
}

static void a_living_owner_is_not_reaped_and_not_robbed(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, WAIT);
	unsigned slot;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(reap(&region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(slot, 1);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	child_kill(&c);
	region_close(&region);
}

static void a_killed_owner_gives_all_back(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, WAIT);

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	assert_given_back(&region);
	region_close(&region);
}

static void a_killed_owner_that_nobody_waits_for_gives_all_back(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, WAIT);
	siginfo_t info;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	kill(c.pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)c.pid, &info, WEXITED | WNOWAIT), 0);
	assert_given_back(&region);
	child_wait(&c);
	region_close(&region);
}

static void an_owner_that_exits_gives_all_back(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, EXIT);

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(child_wait(&c), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_given_back(&region);
	region_close(&region);
}

static void an_owner_that_calls_exec_gives_all_back_and_lives_on(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, EXEC);

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(reap(&region), 0);
	child_say(c.fd, 1);
	/* exec closes the child's end; the old memory goes within the same call, but maybe after it */
	assert_true(child_hear(c.fd) == UINT64_MAX);
	while (reap(&region) == 0)
		sched_yield();
	assert_free(&region);
	assert_int_equal(kill(c.pid, 0), 0);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	region_close(&region);
}

static void closing_the_region_gives_all_back(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, CLOSE_AND_WAIT);

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(child_hear(c.fd), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_given_back(&region);
	child_kill(&c);
	region_close(&region);
}

static void a_stopped_owner_is_alive(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, WAIT);
	int status;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	kill(c.pid, SIGSTOP);
	assert_int_equal(waitpid(c.pid, &status, WUNTRACED), c.pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(reap(&region), 0);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	child_kill(&c);
	assert_given_back(&region);
	region_close(&region);
}

/* Outlives its parent, and ends where it runs. */
static int wait_for_the_end(int fd, void *argument)
{
	prctl(PR_SET_PDEATHSIG, 0);
	child_say(fd, 1);
	child_hear(fd);
	return 0;
}

/* Claims, forks, says the child's PID, and waits for its own end. So many of its 10 units become a shared allocation. */
static int claim_and_fork_as(int fd, const char *path, bool is_left, unsigned shared_units)
{
	struct region region = REGION_NULL;
	struct shared_memory memory = {.units = shared_units, .name.key = 1, .fd = -1};
	struct child heir;
	unsigned slot, shared;

	if (region_open(path, &region) != 0 || slot_claim(&region, &slot) != 0)
		return 1;
	if (is_left && slot_leave_to_children(&region, slot) != 0)
		return 3;
	if (ledger_charge(region.file, slot, 0, 10, 1000000) != 0)
		return 2;
	memory.slot = slot;
	if (shared_units && shared_make(&region, &memory, &shared) != 0)
		return 4;
	region_drop_fd(&region);
	heir = child_start(wait_for_the_end, NULL);
	child_hear(heir.fd);
	child_say(fd, (uint64_t)heir.pid);
	child_hear(fd);
	return 0;
}

static int claim_and_fork(int fd, void *argument)
{
	return claim_and_fork_as(fd, argument, false, 0);
}

static int claim_and_leave(int fd, void *argument)
{
	return claim_and_fork_as(fd, argument, true, 0);
}

static int claim_share_and_leave(int fd, void *argument)
{
	return claim_and_fork_as(fd, argument, true, 10);
}

struct family {
	struct region region;
	struct child parent;
	pid_t heir;
};

static pid_t heir_left;

/* A case that fails must not leave it behind: who waits for the end of its output would wait for ever. */
static int end_family(void **state)
{
	if (heir_left)
		kill(heir_left, SIGKILL);
	heir_left = 0;
	return scratch_teardown(state);
}

/* A parent that holds 10 units, and its child, which lives longer and which this process inherits then. */
static struct family start_family(const struct scratch *s, child_fn *parent)
{
	struct family f = {.region = REGION_NULL};

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	f.parent = child_start(parent, (void *)s->file);
	f.heir = (pid_t)child_hear(f.parent.fd);
	assert_true(f.heir > 0);
	heir_left = f.heir;
	assert_int_equal(region_open(s->file, &f.region), 0);
	assert_int_equal(reap(&f.region), 0);
	return f;
}

static void kill_parent(struct family *f)
{
	/* stopped, it cannot act on its parent's death before we have looked */
	kill(f->heir, SIGSTOP);
	assert_int_equal(child_kill(&f->parent), CHILD_SIGNALLED + SIGKILL);
}

static void kill_heir(struct family *f)
{
	kill(f->heir, SIGKILL);
	heir_left = 0;
	assert_int_equal(waitpid(f->heir, NULL, 0), f->heir);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

static void a_child_of_fork_does_not_keep_its_parents_slot_alive(void **state)
{
	struct family f = start_family(*state, claim_and_fork);

	kill_parent(&f);
	assert_given_back(&f.region);
	kill_heir(&f);
	region_close(&f.region);
}

static void assert_left_until_the_last_child_ends(const struct scratch *s, child_fn *parent)
{
	static struct snapshot snapshot;
	struct family f = start_family(s, parent);
	unsigned slot;

	kill_parent(&f);
	assert_int_equal(snapshot_read(s->file, &snapshot), 0);
	assert_int_equal(snapshot.process_count, 1);
	assert_int_equal(reap(&f.region), 0);
	assert_int_equal(ledger_used_units(f.region.file, 0), 10);
	assert_int_equal(slot_claim(&f.region, &slot), 0);
	assert_int_equal(slot, 1);
	kill_heir(&f);
	assert_int_equal(reap(&f.region), 1);
	shared_sweep(&f.region, slot);
	assert_free(&f.region);
	region_close(&f.region);
}

static void what_is_left_to_children_is_given_back_with_the_last_of_them(void **state)
{
	assert_left_until_the_last_child_ends(*state, claim_and_leave);
}

static void what_is_shared_is_left_to_children_too(void **state)
{
	assert_left_until_the_last_child_ends(*state, claim_share_and_leave);
}

/* Becomes the first process of a new PID namespace's child, and claims there. */
static int claim_in_namespace(int fd, void *argument)
{
	struct order order = {.path = argument, .what_then = WAIT, .slots = 1};
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWPID) < 0)
		return SKIPPED;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(claim(fd, &order));
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void processes_of_several_pid_namespaces_share_a_region(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child one = child_start(claim_in_namespace, s->file), two;
	const struct region_slot *slots;
	unsigned mine;

	if (child_hear(one.fd) == UINT64_MAX) {
		assert_int_equal(child_wait(&one), SKIPPED);
		print_message("skipped: no right to make a PID namespace\n");
		skip();
	}
	two = child_start(claim_in_namespace, s->file);
	assert_int_equal(child_hear(two.fd), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(slot_claim(&region, &mine), 0);
	assert_int_equal(mine, 2);
	slots = region.file->own.slots;
	assert_int_equal(atomic_load(&slots[0].pid), 1);
	assert_int_equal(atomic_load(&slots[1].pid), 1);
	assert_int_not_equal(
		atomic_load(&slots[0].pid_namespace), atomic_load(&slots[1].pid_namespace));
	assert_int_equal(atomic_load(&region.file->hami.slots[0].host_pid), 0);
	assert_int_equal(reap(&region), 0);
	assert_int_equal(ledger_used_units(region.file, 0), 20);
	child_kill(&one);
	/* its namespace is taken down behind the back of child_kill() */
	while (slot_state(&region, 0) != SLOT_FREE)
		reap(&region);
	assert_int_equal(slot_state(&region, 1), SLOT_LIVE);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	child_kill(&two);
	region_close(&region);
}

static void all_slots_can_be_taken_and_one_more_is_refused(void **state)
{
	struct scratch *s = *state;
	struct order order = {.path = s->file, .slots = REGION_SLOTS / CLAIMERS};
	struct region region = REGION_NULL;
	struct child claimers[CLAIMERS];
	unsigned slot = 9999;

	for (int i = 0; i < CLAIMERS; i++) {
		claimers[i] = child_start(claim, &order);
		assert_true(child_hear(claimers[i].fd) < REGION_SLOTS);
	}
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(atomic_load(&region.file->own.slot_high), REGION_SLOTS);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		assert_int_equal(slot_state(&region, i), SLOT_LIVE);
	assert_int_equal(slot_claim(&region, &slot), SLOT_E_FULL);
	assert_int_equal(slot, 9999);
	child_kill(&claimers[3]);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_true(slot < REGION_SLOTS);
	assert_int_equal(reap(&region), 0);
	for (int i = 0; i < CLAIMERS; i++)
		if (i != 3)
			child_kill(&claimers[i]);
	assert_int_equal(reap(&region), REGION_SLOTS - REGION_SLOTS / CLAIMERS);
	assert_int_equal(ledger_used_units(region.file, 0), 0);
	region_close(&region);
}

static void a_slot_that_a_dead_claimer_left_half_made_is_taken_clean(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned slot;

	assert_int_equal(region_open(s->file, &region), 0);
	atomic_store(&region.file->own.slots[0].held[2], UINT64_C(5) << 32);
	atomic_store(&region.file->own.devices[2].total, UINT64_C(5) << 32);
	atomic_store(&region.file->own.slots[0].kind_bytes[2][CHARGE_POOL], 99);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(slot, 0);
	assert_int_equal(ledger_held_units(region.file, 0, 2), 0);
	assert_int_equal(ledger_used_units(region.file, 2), 0);
	assert_int_equal(atomic_load(&region.file->own.slots[0].kind_bytes[2][CHARGE_POOL]), 0);
	region_close(&region);
}

static void hostile_slots_neither_crash_nor_hang(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	uint64_t start;
	unsigned slot;

	assert_int_equal(region_open(s->file, &region), 0);
	memset(region.file->own.slots, 0xff, sizeof(region.file->own.slots));
	atomic_store(&region.file->own.slot_high, UINT32_MAX);
	start = clock_now_ns();
	reap(&region);
	assert_int_equal(slot_claim(&region, &slot), SLOT_E_FULL);
	for (unsigned i = 0; i < REGION_SLOTS; i++)
		atomic_store(&region.file->own.slots[i].state, SLOT_LIVE);
	assert_int_equal(slot_claim(&region, &slot), 0);
	assert_int_equal(slot, 0);
	assert_true(clock_now_ns() - start < HANG_NS);
	region_close(&region);
}

#define FAMILY_TEST(f) cmocka_unit_test_setup_teardown(f, scratch_setup, end_family)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_process_takes_the_first_free_slot_and_signs_it),
		SCRATCH_TEST(a_living_owner_is_not_reaped_and_not_robbed),
		SCRATCH_TEST(a_killed_owner_gives_all_back),
		SCRATCH_TEST(a_killed_owner_that_nobody_waits_for_gives_all_back),
		SCRATCH_TEST(an_owner_that_exits_gives_all_back),
		SCRATCH_TEST(an_owner_that_calls_exec_gives_all_back_and_lives_on),
		SCRATCH_TEST(closing_the_region_gives_all_back),
		SCRATCH_TEST(a_stopped_owner_is_alive),
		FAMILY_TEST(a_child_of_fork_does_not_keep_its_parents_slot_alive),
		FAMILY_TEST(what_is_left_to_children_is_given_back_with_the_last_of_them),
		FAMILY_TEST(what_is_shared_is_left_to_children_too),
		SCRATCH_TEST(processes_of_several_pid_namespaces_share_a_region),
		SCRATCH_TEST(all_slots_can_be_taken_and_one_more_is_refused),
		SCRATCH_TEST(a_slot_that_a_dead_claimer_left_half_made_is_taken_clean),
		SCRATCH_TEST(hostile_slots_neither_crash_nor_hang),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
