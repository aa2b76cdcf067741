/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is between slices, and between the processes of one, in a time that the test makes. */
#include "region/turn.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "region/turn_record.h"
#include "tests/unit/child.h"
#include "tests/unit/turn_scene.h"

#define ATTEMPTS \
	20 /* a busy machine may take the processor away for longer than a turn is announced */

static void alone_one_has_the_turn_at_once(void **state)
{
	struct scratch *s = *state;
	struct stat info;

	errno = 77;
	umask(0777);
	open_one(&a, s, "a", 0);
	umask(0022);
	assert_int_equal(turn_count_peers(&a, now), 0);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_false(turn_is_wanted(&a, 1, now, now, now));
	now += 900 * MS;
	assert_int_equal(hold(&a), TURN_HELD);
	turn_idle(&a, 0, now);
	assert_int_equal(turn_release(&a, now), 0);
	turn_leave(&a);
	assert_int_equal(errno, 77);
	assert_int_equal(stat(folder_of(s), &info), 0);
	assert_int_equal(info.st_mode & 07777, 01777);
	assert_int_equal(stat(path_of(s, "a"), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0644);
	assert_int_equal(info.st_size, sizeof(struct turn_record));
}

static void one_that_is_not_open_is_in_nobodys_way(void **state)
{
	uint64_t look;

	assert_int_equal(turn_hold(&a, 1, now, now, &look), TURN_HELD);
	assert_false(turn_is_wanted(&a, 1, now, now, now));
	assert_int_equal(turn_count_peers(&a, now), 0);
	turn_idle(&a, 0, now);
	assert_int_equal(turn_release(&a, now), 0);
	turn_leave(&a);
	assert_int_equal(turn_open(&a, "/proc/nowhere", UUID, "a", 0, now), -ENOENT);
	assert_null(a.own);
	assert_int_equal(turn_open(&a, "/tmp", "../x", "a", 0, now), -EINVAL);
	assert_int_equal(turn_open(&a, "/tmp", UUID, ".a", 0, now), -EINVAL);
	assert_int_equal(turn_open(&a, "/tmp", UUID, "", 0, now), -EINVAL);
	assert_int_equal(turn_open(&a, "/tmp", UUID, "a", TURN_PROCESSES, now), -EINVAL);
}

static void the_turn_goes_to_and_fro(void **state)
{
	open_two(*state);
	assert_int_equal(turn_count_peers(&a, now), 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(hold(&a), TURN_HELD);
		assert_int_equal(hold(&b), TURN_E_WAIT);
		now += MS;
		assert_int_equal(hold(&a), TURN_HELD);
		assert_false(turn_is_wanted(&a, 1, now, now, now));
		for (int k = 0; k < 4; k++) {
			now += MS;
			assert_int_equal(hold(&b), TURN_E_WAIT);
			assert_int_equal(hold(&a), TURN_HELD);
		}
		assert_true(turn_is_wanted(&a, 1, now, now, now));
		assert_int_equal(turn_release(&a, now), 0);
		assert_int_equal(hold(&a), TURN_E_WAIT);
		assert_int_equal(hold(&b), TURN_HELD);
		assert_int_equal(hold(&a), TURN_E_WAIT);
		now += MS;
		turn_release(&b, now);
	}
}

static void a_better_rank_is_let_in_at_once(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, MS), TURN_HELD);
	assert_int_equal(hold_for(&b, 0, MS), TURN_E_WAIT);
	now += 600 * US;
	assert_true(turn_is_wanted(&a, 1, now, now, now));
	assert_false(turn_is_wanted(&a, 0, now, now, now));
	turn_leave(&b);
	now += 600 * US;
	assert_false(turn_is_wanted(&a, 1, now, now, now));
}

/* Work of 100 ms apiece, while one that borrows waits from the first on: no turn lasts longer than it is believed. */
static void who_goes_before_all_that_wait_has_one_turn_after_the_other(void **state)
{
	uint64_t begun_ns = now;

	open_two(*state);
	assert_int_equal(hold_for(&a, 2, 101 * MS), TURN_HELD);
	for (int i = 1; i <= 5; i++) {
		for (int k = 0; k < 50; k++) {
			now += 2 * MS;
			assert_int_equal(hold_for(&b, 3, 101 * MS), TURN_E_WAIT);
		}
		assert_false(turn_is_wanted(&a, 2, now, now, now + 101 * MS));
		assert_int_equal(hold_for(&a, 2, 101 * MS), TURN_HELD);
	}
	assert_true(a.books->since_ns > begun_ns);
	/* and who is as good has the next one */
	now += 2 * MS;
	assert_int_equal(hold_for(&b, 2, 101 * MS), TURN_E_WAIT);
	now += 98 * MS;
	assert_int_equal(hold_for(&b, 2, 101 * MS), TURN_E_WAIT);
	assert_true(turn_is_wanted(&a, 2, now, now, now + 101 * MS));
}

static void an_idle_turn_is_kept_for_the_grace_and_no_longer(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 40 * MS), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	turn_idle(&a, 0, now);
	now += 299 * US;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_int_equal(hold_for(&a, 1, 100 * US), TURN_HELD);
	turn_idle(&a, 0, now);
	now += 300 * US;
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(hold(&a), TURN_E_WAIT);
}

static void a_turn_that_is_shortened_is_kept_for_the_work_that_is_left(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 100 * MS), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	turn_shorten(&a, now, now + 5 * MS);
	now += 5 * MS - 1;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	/* and is not made longer */
	turn_shorten(&a, now, now + 50 * MS);
	now += 301 * US;
	assert_int_equal(hold(&b), TURN_HELD);
}

static uint64_t missed_ns(const struct turn *t, const char *slice)
{
	for (unsigned i = 0; i < t->peer_count; i++)
		if (strcmp(t->peer_records[i].name, slice) == 0)
			return t->peers[i].doubt.missed_until_ns;
	fail_msg("%s is not known", slice);
	return 0;
}

static void the_first_in_line_goes_first_and_has_300_us(void **state)
{
	open_two(*state);
	open_one(&c, *state, "c", 0);
	get_known();
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	now += 10 * US;
	assert_int_equal(hold(&c), TURN_E_WAIT);
	turn_release(&a, now);
	assert_int_equal(hold(&c), TURN_E_WAIT);
	now += 299 * US;
	assert_int_equal(hold(&c), TURN_E_WAIT);
	now += US;
	assert_int_equal(hold(&c), TURN_HELD);
	/* The one that was first has missed its turn, and the other has not. */
	assert_int_equal(missed_ns(&c, "b"), now + 2 * TURN_MISS_NS);
	assert_int_equal(missed_ns(&c, "a"), 0);
	/* It comes too late, and does not wait for a whole turn of the other's. */
	now += 600 * US;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_true(turn_is_wanted(&c, 1, now, now, now));
	turn_release(&c, now);
	assert_int_equal(hold(&c), TURN_E_WAIT);
	assert_int_equal(hold(&b), TURN_HELD);
	now += 600 * US;
	assert_int_equal(hold(&c), TURN_E_WAIT);
	assert_false(turn_is_wanted(&b, 1, now, now, now));
}

static void the_processes_of_a_slice_share_its_turn(void **state)
{
	open_one(&a, *state, "one", 0);
	open_one(&c, *state, "one", 7);
	open_one(&b, *state, "two", 0);
	get_known();
	assert_int_equal(turn_count_peers(&a, now), 1);
	assert_int_equal(hold_for(&a, 1, 2 * MS), TURN_HELD);
	assert_int_equal(hold_for(&c, 1, 4 * MS), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	/* Idle is the slice only when all of it is. */
	turn_idle(&a, 0, now);
	now += 2 * MS;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_int_equal(hold(&a), TURN_HELD);
	/* Handing over begins with the first, and is done with the last. */
	assert_int_equal(turn_release(&a, now), TURN_E_SHARED);
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(hold(&c), TURN_E_WAIT);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_true(turn_is_wanted(&c, 1, now, now, now));
	assert_int_equal(turn_release(&c, now), 0);
	assert_int_equal(hold(&b), TURN_HELD);
}

/* Both saw another slice hold the turn when they last looked; one of them then takes the next one. */
static void what_a_process_saw_before_its_slice_had_the_turn_is_not_beside_it(void **state)
{
	open_one(&a, *state, "one", 0);
	open_one(&c, *state, "one", 7);
	open_one(&b, *state, "two", 0);
	get_known();
	assert_int_equal(hold_for(&b, 1, 20 * MS), TURN_HELD);
	now += MS;
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(hold(&c), TURN_E_WAIT);
	assert_int_equal(turn_release(&b, now), 0);
	now += 100 * US;
	assert_int_equal(hold(&a), TURN_HELD);
	now += 100 * US;
	assert_int_equal(hold(&c), TURN_HELD);
	assert_false(turn_is_wanted(&c, 1, now, now, now));
	assert_int_equal(TURN_WORD_STATE(atomic_load(&c.own->face.word)), TURN_HOLD);
}

static void a_process_that_never_says_so_ends_with_what_it_announced(void **state)
{
	open_one(&a, *state, "one", 0);
	open_one(&c, *state, "one", 7);
	open_one(&b, *state, "two", 0);
	get_known();
	assert_int_equal(hold_for(&c, 1, 4 * MS), TURN_HELD);
	assert_int_equal(hold_for(&a, 1, 20 * MS), TURN_HELD);
	assert_int_equal(turn_release(&a, now), TURN_E_SHARED);
	assert_in_range(wait_turn(&b, 100 * MS), 3 * MS, 5 * MS);
}

static void one_process_that_leaves_does_not_end_the_others_wish(void **state)
{
	open_one(&a, *state, "one", 0);
	open_one(&c, *state, "one", 7);
	open_one(&b, *state, "two", 0);
	get_known();
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(hold(&c), TURN_E_WAIT);
	turn_leave(&a);
	assert_int_equal(TURN_WORD_STATE(atomic_load(&c.own->face.word)), TURN_WANT);
	turn_leave(&c);
	assert_int_equal(TURN_WORD_STATE(atomic_load(&c.own->face.word)), TURN_FREE);
}

/* A slice in real time: waits for the turn, and says for how many ms. */
static int wait_in_child(int fd, void *argument)
{
	uint64_t start, look, at;
	struct scratch *s = argument;

	/* The parent's mappings are not there; nothing of them is touched. */
	turn_reset_after_fork(&a);
	if (turn_open(&b, folder_of(s), UUID, "b", 0, clock_now_ns()) != 0)
		return 1;
	nanosleep(&(struct timespec){.tv_nsec = 70 * (long)MS}, NULL);
	child_say(fd, 1);
	child_hear(fd);
	start = clock_now_ns();
	while (turn_hold(&b, 1, clock_now_ns(), clock_now_ns() + MS, &look) != TURN_HELD) {
		turn_wait(&b, look);
		at = clock_now_ns();
		if (at - start > 20000 * MS)
			return 2;
	}
	child_say(fd, 2);
	return 0;
}

static bool has_said(const struct child *child)
{
	return poll(&(struct pollfd){.fd = child->fd, .events = POLLIN}, 1, 0) == 1;
}

/* False where the turn was lost before it was wanted: this process had no processor for longer than it had announced. */
static bool wake_a_child(void *state)
{
	uint64_t look, deadline = clock_now_ns() + 20000 * MS;
	struct child child = child_start(wait_in_child, state);
	bool is_wanted;

	assert_int_equal(child_hear(child.fd), 1);
	/* the child of an attempt before has ended with its turn */
	while (turn_hold(&a, 1, clock_now_ns(), clock_now_ns() + 30 * MS, &look) != TURN_HELD) {
		assert_true(clock_now_ns() < deadline);
		turn_wait(&a, look);
	}
	child_say(child.fd, 1);
	while (!(is_wanted = turn_is_wanted(&a, 1, clock_now_ns(), clock_now_ns(), 0)) &&
		!has_said(&child)) {
		assert_true(clock_now_ns() < deadline);
		assert_true(turn_hold(&a, 1, clock_now_ns(), clock_now_ns() + 30 * MS, &look) >= 0);
		turn_wait(&a, clock_now_ns() + 200 * US);
	}
	turn_release(&a, clock_now_ns());
	assert_int_equal(child_hear(child.fd), 2);
	assert_int_equal(child_wait(&child), 0);
	return is_wanted;
}

static void a_waiter_in_another_process_is_woken(void **state)
{
	bool was_wanted = false;

	assert_int_equal(turn_open(&a, folder_of(*state), UUID, "a", 0, clock_now_ns()), 0);
	for (unsigned i = 0; i < ATTEMPTS && !was_wanted; i++)
		was_wanted = wake_a_child(*state);
	assert_true(was_wanted);
}

/* Of a holder that goes on between our look at it and our sleep nobody wakes us any more. */
static void assert_no_sleep_after_a_release(bool is_by_file)
{
	uint64_t look;
	uint32_t news;

	b.is_by_file = is_by_file;
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(turn_hold(&b, 1, now, now + MS, &look), TURN_E_WAIT);
	assert_true(turn_record_is_as_read(&b, 0, &news));
	assert_int_equal(turn_release(&a, now), 0);
	assert_false(turn_record_is_as_read(&b, 0, &news));
	assert_int_equal(news, atomic_load(&a.own->face.news));
	/* One that slept here would not come back. */
	assert_int_equal(turn_wait(&b, now + 1000000 * MS), 0);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(turn_release(&b, now), 0);
}

static void who_waits_does_not_sleep_on_what_it_was_not_woken_for(void **state)
{
	open_two(*state);
	assert_no_sleep_after_a_release(false);
	assert_no_sleep_after_a_release(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(alone_one_has_the_turn_at_once),
		TURN_TEST(one_that_is_not_open_is_in_nobodys_way),
		TURN_TEST(the_turn_goes_to_and_fro),
		TURN_TEST(a_better_rank_is_let_in_at_once),
		TURN_TEST(who_goes_before_all_that_wait_has_one_turn_after_the_other),
		TURN_TEST(an_idle_turn_is_kept_for_the_grace_and_no_longer),
		TURN_TEST(a_turn_that_is_shortened_is_kept_for_the_work_that_is_left),
		TURN_TEST(the_first_in_line_goes_first_and_has_300_us),
		TURN_TEST(the_processes_of_a_slice_share_its_turn),
		TURN_TEST(what_a_process_saw_before_its_slice_had_the_turn_is_not_beside_it),
		TURN_TEST(a_process_that_never_says_so_ends_with_what_it_announced),
		TURN_TEST(one_process_that_leaves_does_not_end_the_others_wish),
		TURN_TEST(a_waiter_in_another_process_is_woken),
		TURN_TEST(who_waits_does_not_sleep_on_what_it_was_not_woken_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
