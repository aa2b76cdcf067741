/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread reaps, another forks children that live on without exec, with copies of
 * whatever descriptors were open just then. What was locked for a moment must not stay locked by them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/file.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define CHILDREN 400
#define DEAD	 5u

static _Atomic bool is_over;

static void *fork_often(void *argument)
{
	pid_t *children = argument;

	for (int i = 0; i < CHILDREN && !atomic_load(&is_over); i++) {
		children[i] = fork();
		if (children[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
	}
	atomic_store(&is_over, true);
	return NULL;
}

static bool is_locked(const struct region *region, int64_t at)
{
	bool locked = true;
	int fd;

	assert_int_equal(region_reopen(region, &fd), 0);
	assert_int_equal(file_byte_is_locked(fd, at, &locked), 0);
	close(fd);
	return locked;
}

static void a_child_of_fork_keeps_no_lock_that_was_held_for_a_moment(void **state)
{
	static pid_t children[CHILDREN];
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	unsigned slot_locks = 0;
	pthread_t thread;

	assert_int_equal(region_open(s->file, &region), 0);
	atomic_store(&region.file->own.slot_high, DEAD + 1);
	assert_int_equal(pthread_create(&thread, NULL, fork_often, children), 0);
	while (!atomic_load(&is_over)) {
		unsigned reaped;

		/* a slot whose owner is always dead */
		atomic_store(&region.file->own.slots[DEAD].state, SLOT_LIVE);
		assert_int_equal(slot_reap(&region, &reaped), 0);
		slot_locks += is_locked(&region, REGION_LOCK_SLOTS + DEAD);
		if (slot_locks)
			atomic_store(&is_over, true);
	}
	pthread_join(thread, NULL);
	for (int i = 0; i < CHILDREN && children[i] > 0; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	assert_int_equal(slot_locks, 0);
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_child_of_fork_keeps_no_lock_that_was_held_for_a_moment),
	};

	return cmocka_run_group_tests_name("fork", tests, NULL, NULL);
}
