/* SPDX-License-Identifier: Apache-2.0 */
/* Reaping: who is waited for, how long, and what is left alone. */
#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "region/process.h"
#include "tests/unit/claimer.h"
#include "tests/unit/lingering.h"

#define SECOND	 UINT64_C(1000000000)
#define ATTEMPTS 20 /* a busy machine may take the processor away meanwhile */

/* A slot whose owner is dead, signed with this process's PID, namespace, and the given time. */
static void leave_a_slot(const struct scratch *s, struct region *region, uint64_t start_time)
{
	struct child c = start_claimer(s, WAIT);

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, region), 0);
	child_kill(&c);
	atomic_store(&region->file->own.slots[0].pid, (uint32_t)getpid());
	atomic_store(&region->file->own.slots[0].start_time, start_time);
}

static void a_pid_that_another_process_has_now_saves_nobody(void **state)
{
	struct region region = REGION_NULL;
	struct process_identity me;
	uint64_t start, took = UINT64_MAX;

	process_identify_self(&me);
	for (int i = 0; i < ATTEMPTS && took >= SLOT_REAP_WAIT_NS; i++) {
		leave_a_slot(*state, &region, me.start_time + 1);
		start = clock_now_ns();
		assert_given_back(&region);
		took = clock_now_ns() - start;
		region_close(&region);
	}
	assert_true(took < SLOT_REAP_WAIT_NS);
}

static uint64_t time_of_reap(struct region *region, unsigned reaped)
{
	uint64_t start = clock_now_ns();

	assert_int_equal(reap(region), reaped);
	return clock_now_ns() - start;
}

static void an_owner_without_its_lock_that_runs_on_is_waited_for_only_briefly(void **state)
{
	struct region region = REGION_NULL;
	struct process_identity me;
	uint64_t waited = UINT64_MAX;

	process_identify_self(&me);
	for (int i = 0; i < ATTEMPTS && waited >= 1000000000; i++) {
		leave_a_slot(*state, &region, me.start_time);
		waited = time_of_reap(&region, 1);
		assert_true(waited >= 20000000);
		region_close(&region);
	}
	assert_true(waited < 1000000000);
}

/* Has work under way, and unmaps its sign of life. */
static int linger(int fd, void *argument)
{
	struct region region = REGION_NULL;
	uint64_t now_ns = clock_now_ns();
	unsigned slot;

	if (region_open(argument, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		ledger_charge(region.file, slot, 0, 10, 1000000) != 0)
		return 1;
	atomic_store(&region.file->own.slots[slot].busy_since_ns[0], now_ns - 2 * SECOND);
	atomic_store(&region.file->own.looked_ns[slot], now_ns - 2 * SECOND);
	unmap(&region);
	lingering_end_first(fd);
	return 2;
}

static void an_owner_whose_first_thread_ended_lives(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = child_start(linger, s->file);
	enum slot_owner owner;

	lingering_hear(&c);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(reap(&region), 0);
	assert_int_equal(slot_find_owner(region.fd, 0, &region.file->own.slots[0], &owner), 0);
	assert_int_equal(owner, SLOT_OWNER_LIVES);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	slot_charge_dead(&region, REGION_SLOTS);
	assert_true(region.file->own.compute[0].busy_ns >= SECOND);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	assert_given_back(&region);
	region_close(&region);
}

/* Its context is there as long as it is. */
static void work_of_an_owner_that_lingers_is_charged_by_the_clock(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = child_start(linger, s->file);
	pid_t thread = lingering_hear(&c);

	if (!lingering_end_last(&c, thread)) {
		child_kill(&c);
		skip();
	}
	assert_int_equal(region_open(s->file, &region), 0);
	slot_charge_dead(&region, REGION_SLOTS);
	assert_true(region.file->own.compute[0].busy_ns >= SECOND);
	/* It is still under way. */
	assert_true(atomic_load(&region.file->own.slots[0].busy_since_ns[0]) > 0);
	assert_int_equal(lingering_let_go(&c, thread), 0);
	assert_given_back(&region);
	region_close(&region);
}

/* Whether one wait was as short as it should be, and five looks after it did not wait. */
static bool waits_once(struct region *region)
{
	uint64_t first;
	bool is_alone = true;

	nanosleep(&(struct timespec){.tv_nsec = SLOT_REST_NS}, NULL);
	first = time_of_reap(region, 0);
	assert_true(first >= SLOT_REAP_WAIT_NS);
	for (int i = 0; i < 5; i++)
		is_alone &= time_of_reap(region, 0) < SLOT_REAP_WAIT_NS / 2;
	return is_alone && first < 2 * SLOT_REAP_WAIT_NS;
}

static void an_owner_that_lingers_is_waited_for_once_and_then_left_alone(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = child_start(linger, s->file);
	pid_t thread = lingering_hear(&c);
	bool is_right = false;

	if (!lingering_end_last(&c, thread)) {
		child_kill(&c);
		skip();
	}
	assert_int_equal(region_open(s->file, &region), 0);
	for (int i = 0; i < ATTEMPTS && !is_right; i++)
		is_right = waits_once(&region);
	assert_true(is_right);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	nanosleep(&(struct timespec){.tv_nsec = SLOT_REST_NS}, NULL);
	assert_true(time_of_reap(&region, 0) >= SLOT_REAP_WAIT_NS);
	assert_int_equal(lingering_let_go(&c, thread), 0);
	assert_given_back(&region);
	region_close(&region);
	/* The next test begins without it. */
	nanosleep(&(struct timespec){.tv_nsec = SLOT_REST_NS}, NULL);
}

static int reap_and_say(int fd, void *argument)
{
	struct region region = REGION_NULL;
	unsigned reaped;

	if (region_open(argument, &region) != 0)
		return 1;
	child_say(fd, 1);
	if (slot_reap(&region, &reaped) != 0)
		return 2;
	child_say(fd, reaped);
	return 0;
}

/* A reaper that loses the processor while it waits must not give up on what it saw before. */
static void a_reaper_that_was_stopped_meanwhile_looks_once_more(void **state)
{
	struct timespec longer = {.tv_nsec = SLOT_REAP_WAIT_NS + 20000000};
	struct scratch *s = *state;
	struct child owner = start_claimer(s, CLOSE_AND_WAIT), reaper;

	assert_int_equal(child_hear(owner.fd), 0);
	assert_int_equal(child_hear(owner.fd), 1);
	reaper = child_start(reap_and_say, s->file);
	assert_int_equal(child_hear(reaper.fd), 1);
	nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	kill(reaper.pid, SIGSTOP);
	nanosleep(&longer, NULL);
	kill(reaper.pid, SIGCONT);
	assert_int_equal(child_hear(reaper.fd), 1);
	assert_int_equal(child_wait(&reaper), 0);
	child_kill(&owner);
}

static void reaping_in_a_file_that_was_replaced_touches_neither(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL, other = REGION_NULL;
	struct child c = start_claimer(s, WAIT);
	unsigned reaped = 99;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(region_open(s->file, &region), 0);
	child_kill(&c);
	assert_int_equal(unlink(s->file), 0);
	assert_int_equal(slot_reap(&region, &reaped), -ENOENT);
	assert_int_equal(region_open(s->file, &other), 0);
	assert_int_equal(slot_reap(&region, &reaped), -ESTALE);
	assert_int_equal(reaped, 99);
	assert_int_equal(slot_state(&region, 0), SLOT_LIVE);
	region_close(&region);
	region_close(&other);
}

static void an_owner_that_unmaps_its_sign_of_life_lives(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, UNMAP_AND_WAIT);
	enum slot_owner owner;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(child_hear(c.fd), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(reap(&region), 0);
	assert_int_equal(slot_find_owner(region.fd, 0, &region.file->own.slots[0], &owner), 0);
	assert_int_equal(owner, SLOT_OWNER_LIVES);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	assert_given_back(&region);
	region_close(&region);
}

static enum slot_owner find_owner(const struct region *region)
{
	enum slot_owner owner;

	assert_int_equal(slot_find_owner(region->fd, 0, &region->file->own.slots[0], &owner), 0);
	return owner;
}

static void what_is_not_known_of_an_owner_keeps_it_alive(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, UNMAP_AND_WAIT);
	struct region_slot *own;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(child_hear(c.fd), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	own = &region.file->own.slots[0];
	atomic_store(&own->peak_mib, 0);
	assert_int_equal(find_owner(&region), SLOT_OWNER_LIVES);
	atomic_store(&own->pid_namespace, 0);
	assert_int_equal(find_owner(&region), SLOT_OWNER_LIVES);
	atomic_store(&own->start_time, 0);
	assert_int_equal(find_owner(&region), SLOT_OWNER_LIVES);
	assert_int_equal(reap(&region), 0);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	assert_int_equal(find_owner(&region), SLOT_OWNER_GONE);
	assert_given_back(&region);
	region_close(&region);
}

static void an_owner_in_another_time_namespace_is_known_by_its_pid(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c = start_claimer(s, UNMAP_AND_WAIT);
	struct region_slot *own;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(child_hear(c.fd), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	own = &region.file->own.slots[0];
	assert_int_equal(atomic_load(&own->time_namespace), process_own_time_namespace());
	atomic_fetch_add(&own->start_time, 100000);
	assert_int_equal(find_owner(&region), SLOT_OWNER_GONE);
	atomic_fetch_add(&own->time_namespace, 1);
	assert_int_equal(find_owner(&region), SLOT_OWNER_LIVES);
	assert_int_equal(reap(&region), 0);
	/* One that has called exec since is told by its peak there, too. */
	atomic_store(&own->peak_mib, UINT32_MAX - 1);
	assert_int_equal(find_owner(&region), SLOT_OWNER_GONE);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	assert_given_back(&region);
	region_close(&region);
}

/* Claims with few descriptors until that succeeds: 0 where each try before was refused for want of one. */
static int claim_with_few(int fd, void *argument)
{
	struct region region = REGION_NULL;
	struct rlimit few = {0, 4096};
	int first, r = -EMFILE;
	unsigned slot;
	bool keeps;

	if (region_open(argument, &region) != 0)
		return 1;
	first = dup(0);
	close(first);
	for (int left = 0; r == -EMFILE && left < 8; left++) {
		few.rlim_cur = (rlim_t)(first + left);
		if (setrlimit(RLIMIT_NOFILE, &few) != 0)
			return 2;
		r = slot_claim(&region, &slot);
		if (left == 0 && r != -EMFILE)
			return 3;
	}
	if (r)
		return 4;
	few.rlim_cur = few.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &few) != 0 ||
		region_try_locks(&region, REGION_LOCK_TRIAL + REGION_SLOTS - 1, &keeps) != 0)
		return 5;
	/* A token only where it is needed, and all that tells who this is. */
	return !region.token_page != keeps ||
	       !atomic_load(&region.file->own.slots[slot].start_time) ||
	       !atomic_load(&region.file->own.slots[slot].peak_mib);
}

static void without_descriptors_no_slot_is_taken(void **state)
{
	struct scratch *s = *state;
	struct child c = child_start(claim_with_few, s->file);

	assert_int_equal(child_wait(&c), 0);
}

/* Where this thread cannot look at the owner, either. */
static int look_without_descriptors(int fd, void *argument)
{
	struct region region = REGION_NULL;
	struct rlimit none = {0, 4096};

	if (region_open(argument, &region) != 0 || setrlimit(RLIMIT_NOFILE, &none) != 0)
		return 1;
	return slot_find_unlocked(&region.file->own.slots[0]) == SLOT_OWNER_LIVES ? 0 : 2;
}

static void who_cannot_look_takes_no_owner_for_gone(void **state)
{
	struct scratch *s = *state;
	struct child c = start_claimer(s, UNMAP_AND_WAIT), looker;

	assert_int_equal(child_hear(c.fd), 0);
	assert_int_equal(child_hear(c.fd), 1);
	looker = child_start(look_without_descriptors, s->file);
	assert_int_equal(child_wait(&looker), 0);
	child_kill(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(an_owner_that_unmaps_its_sign_of_life_lives),
		SCRATCH_TEST(an_owner_whose_first_thread_ended_lives),
		SCRATCH_TEST(work_of_an_owner_that_lingers_is_charged_by_the_clock),
		SCRATCH_TEST(what_is_not_known_of_an_owner_keeps_it_alive),
		SCRATCH_TEST(an_owner_in_another_time_namespace_is_known_by_its_pid),
		SCRATCH_TEST(without_descriptors_no_slot_is_taken),
		SCRATCH_TEST(who_cannot_look_takes_no_owner_for_gone),
		SCRATCH_TEST(a_pid_that_another_process_has_now_saves_nobody),
		SCRATCH_TEST(an_owner_without_its_lock_that_runs_on_is_waited_for_only_briefly),
		SCRATCH_TEST(an_owner_that_lingers_is_waited_for_once_and_then_left_alone),
		SCRATCH_TEST(a_reaper_that_was_stopped_meanwhile_looks_once_more),
		SCRATCH_TEST(reaping_in_a_file_that_was_replaced_touches_neither),
	};

	return cmocka_run_group_tests_name("slot_reap", tests, NULL, NULL);
}
