/* SPDX-License-Identifier: Apache-2.0 */
/* Reaping: who is waited for, how long, and what is left alone. */
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "region/process.h"
#include "tests/unit/claimer.h"

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

static void *outlive(void *argument)
{
	for (;;)
		pause();
	return NULL;
}

/* Without its lock, and for the kernel on its way out as long as its second thread lives. */
static int linger(int fd, void *argument)
{
	struct region region = REGION_NULL;
	pthread_t thread;
	unsigned slot;

	if (region_open(argument, &region) != 0 || slot_claim(&region, &slot) != 0 ||
		ledger_charge(region.file, slot, 0, 10, 1000000) != 0 ||
		pthread_create(&thread, NULL, outlive, NULL) != 0)
		return 1;
	region_close(&region);
	child_say(fd, 1);
	syscall(SYS_exit, 0); /* of this thread alone */
	return 2;
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
	bool is_right = false;

	assert_int_equal(child_hear(c.fd), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	for (int i = 0; i < ATTEMPTS && !is_right; i++)
		is_right = waits_once(&region);
	assert_true(is_right);
	assert_int_equal(ledger_used_units(region.file, 0), 10);
	nanosleep(&(struct timespec){.tv_nsec = SLOT_REST_NS}, NULL);
	assert_true(time_of_reap(&region, 0) >= SLOT_REAP_WAIT_NS);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_pid_that_another_process_has_now_saves_nobody),
		SCRATCH_TEST(an_owner_without_its_lock_that_runs_on_is_waited_for_only_briefly),
		SCRATCH_TEST(an_owner_that_lingers_is_waited_for_once_and_then_left_alone),
		SCRATCH_TEST(a_reaper_that_was_stopped_meanwhile_looks_once_more),
		SCRATCH_TEST(reaping_in_a_file_that_was_replaced_touches_neither),
	};

	return cmocka_run_group_tests_name("slot_reap", tests, NULL, NULL);
}
