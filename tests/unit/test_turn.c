/* SPDX-License-Identifier: Apache-2.0 */
/* Turns between slices, in a time that the test makes. */
#include "region/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "region/turn_page.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define UUID "GPU-5a1b"
#define US   UINT64_C(1000)
#define MS   UINT64_C(1000000)

static struct turn a, b, c;
static uint64_t now;
static uint64_t late_ns; /* what the process loses before its next look at the clock but one */
static unsigned looks_until_late;

static uint64_t test_clock(void)
{
	if (late_ns && looks_until_late-- == 0) {
		now += late_ns;
		late_ns = 0;
	}
	return now;
}

static int setup(void **state)
{
	now = 1000000 * MS;
	late_ns = 0;
	return scratch_setup(state);
}

static int teardown(void **state)
{
	turn_close(&a);
	turn_close(&b);
	turn_close(&c);
	return scratch_teardown(state);
}

#define TURN_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const char *folder_of(const struct scratch *s)
{
	return s->file;
}

static const char *path_of(const struct scratch *s, const char *slice)
{
	static char path[400];

	snprintf(path, sizeof(path), "%s/%s/%s", s->file, UUID, slice);
	return path;
}

static void open_one(struct turn *t, const struct scratch *s, const char *slice, unsigned process)
{
	*t = (struct turn)TURN_NULL;
	t->clock_ns = test_clock;
	assert_int_equal(turn_open(t, folder_of(s), UUID, slice, process, now), 0);
}

/* Everybody knows everybody. */
static void get_known(void)
{
	now += 61 * MS;
	turn_others(&a, now);
	turn_others(&b, now);
	turn_others(&c, now);
}

static void open_two(const struct scratch *s)
{
	open_one(&a, s, "a", 0);
	open_one(&b, s, "b", 0);
	get_known();
}

static int hold_for(struct turn *t, unsigned rank, uint64_t work_ns)
{
	uint64_t look = 0;
	int r = turn_hold(t, rank, now, now + work_ns, &look);

	if (r != TURN_HELD)
		assert_true(look > now && look <= now + 2 * MS);
	return r;
}

static int hold(struct turn *t)
{
	return hold_for(t, 1, MS);
}

/* Goes on in steps as a waiter would, until it has the turn; when that was. */
static uint64_t wait_turn(struct turn *t, uint64_t most_ns)
{
	uint64_t start = now, look;

	while (turn_hold(t, 1, now, now + MS, &look) != TURN_HELD) {
		assert_true(look > now);
		now = look;
		if (now - start > most_ns)
			return UINT64_MAX;
	}
	return now - start;
}

static void alone_one_has_the_turn_at_once(void **state)
{
	struct scratch *s = *state;
	struct stat info;

	errno = 77;
	umask(0077);
	open_one(&a, s, "a", 0);
	umask(0022);
	assert_int_equal(turn_others(&a, now), 0);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_false(turn_is_wanted(&a, 1, now, now));
	now += 900 * MS;
	assert_int_equal(hold(&a), TURN_HELD);
	turn_idle(&a, now);
	assert_int_equal(turn_release(&a, now), 0);
	turn_leave(&a);
	assert_int_equal(errno, 77);
	assert_int_equal(stat(folder_of(s), &info), 0);
	assert_int_equal(info.st_mode & 07777, 01777);
	assert_int_equal(stat(path_of(s, "a"), &info), 0);
	assert_int_equal(info.st_mode & 07777, 0644);
	assert_int_equal(info.st_size, sizeof(struct turn_page));
}

static void one_that_is_not_open_is_in_nobodys_way(void **state)
{
	uint64_t look;

	assert_int_equal(turn_hold(&a, 1, now, now, &look), TURN_HELD);
	assert_false(turn_is_wanted(&a, 1, now, now));
	assert_int_equal(turn_others(&a, now), 0);
	turn_idle(&a, now);
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
	assert_int_equal(turn_others(&a, now), 1);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(hold(&a), TURN_HELD);
		assert_int_equal(hold(&b), TURN_E_WAIT);
		now += MS;
		assert_int_equal(hold(&a), TURN_HELD);
		assert_false(turn_is_wanted(&a, 1, now, now));
		for (int k = 0; k < 4; k++) {
			now += MS;
			assert_int_equal(hold(&b), TURN_E_WAIT);
			assert_int_equal(hold(&a), TURN_HELD);
		}
		assert_true(turn_is_wanted(&a, 1, now, now));
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
	assert_true(turn_is_wanted(&a, 1, now, now));
	assert_false(turn_is_wanted(&a, 0, now, now));
	turn_leave(&b);
	now += 600 * US;
	assert_false(turn_is_wanted(&a, 1, now, now));
}

static void an_idle_turn_is_kept_for_the_grace_and_no_longer(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 40 * MS), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	turn_idle(&a, now);
	now += 299 * US;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_int_equal(hold_for(&a, 1, 100 * US), TURN_HELD);
	turn_idle(&a, now);
	now += 300 * US;
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(hold(&a), TURN_E_WAIT);
}

static void who_dies_holding_is_past_when_its_lease_is(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 10 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 100 * MS), 10 * MS, 11 * MS);
	/* And if it was only stopped, it does not believe in its turn any more. */
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_false(turn_is_wanted(&a, 1, now, now));
}

static void no_honest_lease_is_longer_than_44_ms(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 1000 * MS), TURN_HELD);
	assert_in_range(wait_turn(&b, 100 * MS), 43 * MS, 45 * MS);
	assert_false(turn_order_is_ignored(&b.peers[0], now));
}

static void who_dies_claiming_or_waiting_is_past_soon(void **state)
{
	open_two(*state);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_CLAIM, now + TURN_CLAIM_NS));
	assert_in_range(wait_turn(&b, 100 * MS), MS, 2 * MS);
	turn_release(&b, now);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(hold(&a), TURN_E_WAIT);
	now += 6 * MS;
	assert_int_equal(hold(&b), TURN_HELD);
	assert_false(turn_is_wanted(&b, 1, now, now));
}

static void who_comes_too_late_to_prolong_has_lost_the_turn(void **state)
{
	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	late_ns = 5 * MS;
	looks_until_late = 0; /* after the store of the longer lease */
	assert_int_equal(hold_for(&a, 1, 3 * MS), TURN_HELD);
	/* It began anew, with a claim. */
	assert_int_equal(atomic_load(&a.own->face.turns), 2);
	late_ns = 5 * MS;
	looks_until_late = 0;
	atomic_store(&b.own->face.word, TURN_WORD(TURN_HOLD, now + 50 * MS));
	assert_int_equal(hold_for(&a, 1, 9 * MS), TURN_E_WAIT);
	assert_int_equal(turn_word_state(atomic_load(&a.own->face.word)), TURN_WANT);
}

static void who_comes_too_late_with_its_claim_does_not_hold(void **state)
{
	uint64_t look;

	open_two(*state);
	late_ns = 2 * MS;
	looks_until_late = 2; /* between the look at the others and the hold */
	assert_int_equal(turn_hold(&a, 1, now, now + MS, &look), TURN_E_WAIT);
	assert_int_equal(late_ns, 0);
	assert_int_equal(turn_word_state(atomic_load(&a.own->face.word)), TURN_FREE);
	assert_int_equal(hold(&b), TURN_HELD);
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
	turn_release(&c, now);
	assert_int_equal(hold(&b), TURN_HELD);
}

static void who_overstays_is_not_believed_for_a_while_and_by_that_device_only(void **state)
{
	struct turn_view views[4];
	unsigned count;

	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_HOLD, UINT64_MAX >> 4));
	assert_in_range(wait_turn(&b, 100 * MS), 50 * MS, 55 * MS);
	turn_release(&b, now);
	now += 900 * MS;
	assert_true(wait_turn(&b, 100 * MS) <= MS);
	assert_int_equal(turn_read(folder_of(*state), UUID, now, views, 4, &count), 0);
	assert_int_equal(count, 2);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(views[i].distrusted, views[i].slice[0] == 'a');
	turn_release(&b, now);
	now += 200 * MS;
	/* Then it has another chance, and does not use it. */
	atomic_store(&a.own->face.seen_ns, now);
	assert_in_range(wait_turn(&b, 100 * MS), 50 * MS, 55 * MS);
	turn_release(&b, now);
	now += 1900 * MS;
	assert_true(wait_turn(&b, 100 * MS) <= MS);
}

static void who_is_always_first_and_never_takes_its_turn_is_not_waited_for(void **state)
{
	uint64_t waited = 0;

	open_two(*state);
	for (int i = 0; i < 50; i++) {
		turn_release(&b, now);
		atomic_store(&a.own->face.ticket_ns, 0);
		atomic_store(&a.own->face.word, TURN_WORD(TURN_WANT, now + TURN_WISH_NS));
		waited += wait_turn(&b, 100 * MS);
	}
	assert_in_range(waited, 300 * US, TURN_MISSES * 310 * US);
}

static void a_new_page_waits_until_the_others_have_found_it(void **state)
{
	open_one(&a, *state, "a", 0);
	assert_int_equal(hold(&a), TURN_HELD);
	turn_release(&a, now);
	now += 60 * MS;
	turn_others(&a, now);
	open_one(&b, *state, "b", 0);
	assert_in_range(wait_turn(&b, 100 * MS), 59 * MS, 61 * MS);
	turn_others(&a, now);
	assert_int_equal(a.other_count, 1);
	assert_int_equal(hold(&a), TURN_E_WAIT);
}

static void the_processes_of_a_slice_share_its_turn(void **state)
{
	open_one(&a, *state, "one", 0);
	open_one(&c, *state, "one", 7);
	open_one(&b, *state, "two", 0);
	get_known();
	assert_int_equal(turn_others(&a, now), 1);
	assert_int_equal(hold_for(&a, 1, 2 * MS), TURN_HELD);
	assert_int_equal(hold_for(&c, 1, 4 * MS), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	/* Idle is the slice only when all of it is. */
	turn_idle(&a, now);
	now += 2 * MS;
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_int_equal(hold(&a), TURN_HELD);
	/* Handing over begins with the first, and is done with the last. */
	assert_int_equal(turn_release(&a, now), TURN_E_SHARED);
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(hold(&c), TURN_E_WAIT);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_true(turn_is_wanted(&c, 1, now, now));
	assert_int_equal(turn_release(&c, now), 0);
	assert_int_equal(hold(&b), TURN_HELD);
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
	assert_int_equal(turn_word_state(atomic_load(&c.own->face.word)), TURN_WANT);
	turn_leave(&c);
	assert_int_equal(turn_word_state(atomic_load(&c.own->face.word)), TURN_FREE);
}

static void a_page_that_is_cut_short_harms_nobody(void **state)
{
	struct scratch *s = *state;

	open_two(s);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	/* The test has both in one process, where b's own look is what must not fail. */
	turn_page_close(&a);
	assert_int_equal(truncate(path_of(s, "a"), 0), 0);
	assert_int_equal(turn_wait(&b, now + MS), 0);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(b.other_count, 0);
	/* Its slice makes it whole again. */
	open_one(&a, s, "a", 0);
	now += 1000 * MS;
	assert_int_equal(turn_others(&b, now) + turn_others(&a, now), 1);
	assert_int_equal(b.other_count, 1);
}

static void what_is_no_page_is_passed_over(void **state)
{
	struct scratch *s = *state;
	char junk[400];
	int fd;

	open_two(s);
	memset(junk, 'x', sizeof(junk));
	fd = open(path_of(s, "junk"), O_WRONLY | O_CREAT, 0644);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	close(fd);
	close(open(path_of(s, "empty"), O_WRONLY | O_CREAT, 0644));
	assert_int_equal(mkfifo(path_of(s, "fifo"), 0644), 0);
	assert_int_equal(mkdir(path_of(s, "folder"), 0755), 0);
	snprintf(junk, sizeof(junk), "%s", path_of(s, "a"));
	assert_int_equal(symlink(junk, path_of(s, "link")), 0);
	assert_int_equal(symlink(junk, path_of(s, "c")), 0);
	now += 1000 * MS;
	turn_others(&b, now);
	assert_int_equal(b.other_count, 1);
	assert_string_equal(b.others[0].name, "a");
	c.clock_ns = test_clock;
	assert_int_equal(turn_open(&c, folder_of(s), UUID, "c", 0, now), -ELOOP);
	assert_int_equal(turn_open(&c, folder_of(s), UUID, "folder", 0, now), -EISDIR);
}

static void reading_by_path_does_as_well(void **state)
{
	open_two(*state);
	a.is_by_file = b.is_by_file = true;
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	turn_release(&a, now);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(unlink(path_of(*state, "a")), 0);
	now += 6 * MS;
	turn_others(&b, now);
	assert_int_equal(b.other_count, 0);
	assert_true(b.is_by_file);
}

static void a_page_that_was_removed_is_made_again(void **state)
{
	struct scratch *s = *state;

	open_two(s);
	assert_int_equal(unlink(path_of(s, "a")), 0);
	now += 1000 * MS;
	turn_others(&a, now);
	assert_int_equal(access(path_of(s, "a"), F_OK), 0);
	now += 60 * MS;
	turn_others(&b, now);
	now += MS;
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
}

static void of_more_than_64_the_living_are_looked_at(void **state)
{
	struct scratch *s = *state;
	char name[16];

	for (unsigned i = 0; i < TURN_OTHERS + 6; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		open_one(&c, s, name, 0);
		turn_page_close(&c);
	}
	now += 2000 * MS;
	open_one(&a, s, "a", 0);
	assert_int_equal(a.other_count, TURN_OTHERS);
	assert_int_equal(turn_others(&a, now), 0);
	open_one(&b, s, "b", 0);
	now += 61 * MS;
	assert_int_equal(turn_others(&a, now), 1);
	assert_int_equal(a.other_count, TURN_OTHERS);
	now += 6 * MS;
	turn_others(&b, now);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(hold(&a), TURN_E_WAIT);
}

static void a_watcher_sees_who_holds_and_who_waits(void **state)
{
	struct turn_view views[3];
	unsigned count;

	open_two(*state);
	assert_int_equal(hold_for(&a, 1, 5 * MS), TURN_HELD);
	now += MS;
	assert_int_equal(hold_for(&b, 2, 5 * MS), TURN_E_WAIT);
	assert_int_equal(turn_read(folder_of(*state), UUID, now, views, 3, &count), 0);
	assert_int_equal(count, 2);
	for (unsigned i = 0; i < count; i++) {
		bool is_a = views[i].slice[0] == 'a';

		assert_int_equal(views[i].state, is_a ? TURN_HOLD : TURN_WANT);
		assert_int_equal(views[i].since_ns, is_a ? now - MS : now);
		assert_int_equal(views[i].rank, is_a ? 1 : 2);
		assert_int_equal(views[i].turns, is_a ? 1 : 0);
	}
	now += 100 * MS;
	assert_int_equal(turn_read(folder_of(*state), UUID, now, views, 1, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(views[0].state, TURN_FREE);
	assert_int_equal(turn_read(folder_of(*state), "GPU-none", now, views, 1, &count), -ENOENT);
}

/* A slice in real time: waits for the turn, and says for how many ms. */
static int wait_in_child(int fd, void *argument)
{
	uint64_t start, look, at;
	struct scratch *s = argument;

	/* The parent's mappings are not there; nothing of them is touched. */
	turn_forget_parent(&a);
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

static void a_waiter_in_another_process_is_woken(void **state)
{
	uint64_t look, deadline = clock_now_ns() + 20000 * MS;
	struct child child;

	assert_int_equal(turn_open(&a, folder_of(*state), UUID, "a", 0, clock_now_ns()), 0);
	child = child_start(wait_in_child, *state);
	assert_int_equal(child_hear(child.fd), 1);
	/* long enough that it is not lost on a busy machine */
	assert_int_equal(
		turn_hold(&a, 1, clock_now_ns(), clock_now_ns() + 30 * MS, &look), TURN_HELD);
	child_say(child.fd, 1);
	while (!turn_is_wanted(&a, 1, clock_now_ns(), clock_now_ns())) {
		assert_true(clock_now_ns() < deadline);
		assert_true(turn_hold(&a, 1, clock_now_ns(), clock_now_ns() + 30 * MS, &look) >= 0);
		turn_wait(&a, clock_now_ns() + 200 * US);
	}
	turn_release(&a, clock_now_ns());
	assert_int_equal(child_hear(child.fd), 2);
	assert_int_equal(child_wait(&child), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(alone_one_has_the_turn_at_once),
		TURN_TEST(one_that_is_not_open_is_in_nobodys_way),
		TURN_TEST(the_turn_goes_to_and_fro),
		TURN_TEST(a_better_rank_is_let_in_at_once),
		TURN_TEST(an_idle_turn_is_kept_for_the_grace_and_no_longer),
		TURN_TEST(who_dies_holding_is_past_when_its_lease_is),
		TURN_TEST(no_honest_lease_is_longer_than_44_ms),
		TURN_TEST(who_dies_claiming_or_waiting_is_past_soon),
		TURN_TEST(who_comes_too_late_to_prolong_has_lost_the_turn),
		TURN_TEST(who_comes_too_late_with_its_claim_does_not_hold),
		TURN_TEST(the_first_in_line_goes_first_and_has_300_us),
		TURN_TEST(who_overstays_is_not_believed_for_a_while_and_by_that_device_only),
		TURN_TEST(who_is_always_first_and_never_takes_its_turn_is_not_waited_for),
		TURN_TEST(a_new_page_waits_until_the_others_have_found_it),
		TURN_TEST(the_processes_of_a_slice_share_its_turn),
		TURN_TEST(a_process_that_never_says_so_ends_with_what_it_announced),
		TURN_TEST(one_process_that_leaves_does_not_end_the_others_wish),
		TURN_TEST(a_page_that_is_cut_short_harms_nobody),
		TURN_TEST(what_is_no_page_is_passed_over),
		TURN_TEST(reading_by_path_does_as_well),
		TURN_TEST(a_page_that_was_removed_is_made_again),
		TURN_TEST(of_more_than_64_the_living_are_looked_at),
		TURN_TEST(a_watcher_sees_who_holds_and_who_waits),
		TURN_TEST(a_waiter_in_another_process_is_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
