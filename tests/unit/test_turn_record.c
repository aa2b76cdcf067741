/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of records: found, cut short, removed, too many, no records at all, and read from outside. */
#include "region/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region/turn_record.h"
#include "tests/unit/turn_scene.h"

static void a_new_page_waits_until_the_others_have_found_it(void **state)
{
	open_one(&a, *state, "a", 0);
	assert_int_equal(hold(&a), TURN_HELD);
	turn_release(&a, now);
	now += 60 * MS;
	turn_count_peers(&a, now);
	open_one(&b, *state, "b", 0);
	assert_in_range(wait_turn(&b, 100 * MS), 59 * MS, 61 * MS);
	turn_count_peers(&a, now);
	assert_int_equal(a.peer_count, 1);
	assert_int_equal(hold(&a), TURN_E_WAIT);
}

/* Another program of its container writes to its page. */
static void a_slice_goes_by_its_books_and_not_by_its_page(void **state)
{
	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_FREE, 0));
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	turn_release(&a, now);
	assert_int_equal(hold(&b), TURN_HELD);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_HOLD, now + 40 * MS));
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(TURN_WORD_STATE(atomic_load(&a.own->face.word)), TURN_WANT);
}

static void who_finds_its_page_changed_blames_nobody_and_gives_way(void **state)
{
	open_two(*state);
	assert_int_equal(hold_for(&b, 1, 1000 * MS), TURN_HELD);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_CLAIM, now + 40 * MS));
	atomic_store(&b.own->face.word, TURN_WORD(TURN_HOLD, now + 1000 * MS));
	assert_int_equal(wait_turn(&a, 300 * MS), UINT64_MAX);
	assert_false(turn_order_is_ignored(&a.peers[0], now));
	atomic_store(&b.own->face.word, TURN_WORD(TURN_FREE, 0));
	assert_int_equal(hold(&a), TURN_HELD);
	atomic_store(&b.own->face.seen_ns, now);
	atomic_store(&b.own->face.word, TURN_WORD(TURN_HOLD, now + 40 * MS));
	now += MS;
	assert_true(turn_is_wanted(&a, 1, now, now, now));
}

static void a_broken_page_is_mended_and_found_again(void **state)
{
	open_two(*state);
	atomic_store(&a.own->face.magic, 0);
	now += 6 * MS;
	assert_int_equal(turn_count_peers(&b, now), 0);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_in_range(wait_turn(&a, 100 * MS), 0, 61 * MS);
	turn_release(&a, now);
	now += 6 * MS;
	assert_int_equal(turn_count_peers(&b, now), 1);
}

static void who_begins_with_a_broken_page_mends_it(void **state)
{
	struct scratch *s = *state;

	open_two(s);
	memset(&a.own->face, 0x5a, sizeof(a.own->face));
	open_one(&c, s, "a", 3);
	now += 61 * MS;
	assert_int_equal(turn_count_peers(&b, now), 1);
}

static void a_page_that_is_cut_short_harms_nobody(void **state)
{
	struct scratch *s = *state;

	open_two(s);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	/* The test has both in one process, where b's own look is what must not fail. */
	turn_record_close(&a);
	assert_int_equal(truncate(path_of(s, "a"), 0), 0);
	assert_int_equal(turn_wait(&b, now + MS), 0);
	assert_int_equal(hold(&b), TURN_HELD);
	assert_int_equal(b.peer_count, 0);
	/* Its slice makes it whole again. */
	open_one(&a, s, "a", 0);
	now += 1000 * MS;
	assert_int_equal(turn_count_peers(&b, now) + turn_count_peers(&a, now), 1);
	assert_int_equal(b.peer_count, 1);
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
	turn_count_peers(&b, now);
	assert_int_equal(b.peer_count, 1);
	assert_string_equal(b.peer_records[0].name, "a");
	c.clock_ns = test_clock;
	assert_int_equal(turn_open(&c, folder_of(s), UUID, "c", 0, now), -ELOOP);
	assert_int_equal(turn_open(&c, folder_of(s), UUID, "folder", 0, now), -EISDIR);
}

/* In a container whoever may make devices makes one there; to open some is to use them. */
static void what_is_no_file_is_not_opened(void **state)
{
	struct scratch *s = *state;
	struct turn_view views[4];
	unsigned count;
	char events[512];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	open_two(s);
	assert_int_equal(mkfifo(path_of(s, "fifo"), 0644), 0);
	assert_true(inotify_add_watch(watch, path_of(s, "fifo"), IN_OPEN) >= 0);
	now += 1000 * MS;
	turn_count_peers(&b, now);
	assert_int_equal(turn_read(folder_of(s), UUID, now, views, 4, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(errno, EAGAIN);
	close(watch);
}

/* Of this user's, and long ago: by the file's time, and by what it says. */
static void the_long_dead_are_removed(void **state)
{
	const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
	struct scratch *s = *state;

	open_two(s);
	turn_record_close(&b);
	now += 700000 * MS;
	open_one(&a, s, "a", 0);
	assert_int_equal(access(path_of(s, "b"), F_OK), 0);
	turn_record_close(&a);
	assert_int_equal(utimensat(AT_FDCWD, path_of(s, "b"), long_ago, 0), 0);
	open_one(&a, s, "a", 0);
	assert_int_equal(access(path_of(s, "b"), F_OK), -1);
	assert_int_equal(access(path_of(s, "a"), F_OK), 0);
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
	turn_count_peers(&b, now);
	assert_int_equal(b.peer_count, 0);
	assert_true(b.is_by_file);
}

static void a_page_that_was_removed_is_made_again(void **state)
{
	struct scratch *s = *state;

	open_two(s);
	assert_int_equal(unlink(path_of(s, "a")), 0);
	now += 1000 * MS;
	turn_count_peers(&a, now);
	assert_int_equal(access(path_of(s, "a"), F_OK), 0);
	now += 60 * MS;
	turn_count_peers(&b, now);
	now += MS;
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
}

/* Stays in the way, and is blamed for it. */
static void lose_belief(void)
{
	atomic_store(&a.own->face.word, TURN_WORD(TURN_HOLD, UINT64_MAX >> 4));
	atomic_store(&a.own->face.seen_ns, now + 900 * MS);
	assert_in_range(wait_turn(&b, 300 * MS), 250 * MS, 260 * MS);
	turn_blame(&b, TURN_LACKS_ANEW, now);
	turn_release(&b, now);
}

static void assert_not_believed(const char *name)
{
	now += 60 * MS;
	turn_count_peers(&b, now);
	assert_int_equal(b.peer_count, 1);
	assert_string_equal(b.peer_records[0].name, name);
	assert_true(turn_order_is_ignored(&b.peers[0], now));
	assert_int_equal(hold(&b), TURN_HELD);
	turn_release(&b, now);
}

static void another_name_another_file_or_a_broken_one_does_not_help_who_is_not_believed(
	void **state)
{
	struct scratch *s = *state;
	char from[400];

	open_two(s);
	lose_belief();
	snprintf(from, sizeof(from), "%s", path_of(s, "a"));
	assert_int_equal(rename(from, path_of(s, "x")), 0);
	assert_not_believed("x");
	atomic_store(&a.own->face.magic, 0);
	now += 6 * MS;
	assert_int_equal(turn_count_peers(&b, now), 0);
	atomic_store(&a.own->face.magic, TURN_MAGIC);
	assert_not_believed("x");
	assert_int_equal(unlink(path_of(s, "x")), 0);
	turn_record_close(&a);
	open_one(&a, s, "y", 0);
	atomic_store(&a.own->face.word, TURN_WORD(TURN_HOLD, UINT64_MAX >> 4));
	assert_not_believed("y");
}

/* A record of another user's, as b meets it. */
static void make_for_user(struct scratch *s, const char *name)
{
	open_one(&c, s, name, 0);
	turn_record_close(&c);
	assert_int_equal(chown(path_of(s, name), 54321, 54321), 0);
}

static void what_one_record_of_another_user_did_counts_for_all_of_his(void **state)
{
	struct scratch *s = *state;

	if (geteuid() != 0)
		skip();
	make_for_user(s, "x");
	make_for_user(s, "y");
	open_one(&a, s, "a", 0);
	open_one(&b, s, "b", 0);
	assert_int_equal(b.peer_count, 3);
	for (unsigned i = 0; i < 3; i++)
		if (b.peer_records[i].name[0] == 'x')
			turn_order_note_wait(&b.peers[i].doubt, MS);
	turn_blame(&b, TURN_LACKS_ANEW, now);
	make_for_user(s, "z");
	now += 61 * MS;
	turn_count_peers(&b, now);
	assert_int_equal(b.peer_count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(
			turn_order_is_ignored(&b.peers[i], now), b.peer_records[i].name[0] != 'a');
}

/* One that root made, for another user to look at or to write to. */
static void make_as_root(struct scratch *s, const char *name)
{
	open_one(&c, s, name, 0);
	turn_record_close(&c);
	assert_int_equal(chmod(path_of(s, name), 0666), 0);
}

static void be_user(uid_t user)
{
	assert_int_equal(setresuid(user, user, 0), 0);
}

/* Of the letter's record, as slice b has it; -1: it has none. */
static int is_believed(char letter)
{
	for (unsigned i = 0; i < b.peer_count; i++)
		if (b.peer_records[i].name[0] == letter)
			return !turn_order_is_ignored(&b.peers[i], now);
	return -1;
}

/* Another user's slice b waits for x, and then finds that it has not had its share. */
static void blame_x_as_nobody(struct scratch *s)
{
	be_user(54321);
	open_one(&b, s, "b", 0);
	for (unsigned i = 0; i < b.peer_count; i++)
		if (b.peer_records[i].name[0] == 'x')
			turn_order_note_wait(&b.peers[i].doubt, MS);
	turn_blame(&b, TURN_LACKS_ANEW, now);
	be_user(0);
}

static void look_as_nobody(uint64_t later_ns)
{
	now += later_ns;
	be_user(54321);
	turn_count_peers(&b, now);
	be_user(0);
}

static void what_one_of_the_operators_records_did_counts_for_it_alone(void **state)
{
	struct scratch *s = *state;
	char device[400];

	if (geteuid() != 0)
		skip();
	make_as_root(s, "b");
	make_as_root(s, "x");
	make_as_root(s, "y");
	snprintf(device, sizeof(device), "%s/%s", folder_of(s), UUID);
	assert_int_equal(chmod(s->folder, 0755), 0);
	assert_int_equal(chmod(device, 0755), 0);
	blame_x_as_nobody(s);
	assert_int_equal(is_believed('x'), false);
	assert_int_equal(is_believed('y'), true);
	/* Nor where its tenant breaks it, for what the operator makes for the next one. */
	assert_int_equal(truncate(path_of(s, "x"), 0), 0);
	look_as_nobody(61 * MS);
	assert_int_equal(is_believed('x'), -1);
	make_as_root(s, "z");
	look_as_nobody(61 * MS);
	assert_int_equal(is_believed('z'), true);
	make_as_root(s, "x");
	look_as_nobody(61 * MS);
	assert_int_equal(is_believed('x'), false);
	assert_int_equal(is_believed('y'), true);
	turn_close(&b);
	/* Where everybody can make records, root may have made both for one slice. */
	assert_int_equal(unlink(path_of(s, "b")), 0);
	assert_int_equal(chmod(device, 01777), 0);
	blame_x_as_nobody(s);
	assert_int_equal(is_believed('x'), false);
	assert_int_equal(is_believed('y'), false);
}

static void of_more_than_64_the_living_are_looked_at(void **state)
{
	struct scratch *s = *state;
	char name[16];

	for (unsigned i = 0; i < TURN_PEERS + 6; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		open_one(&c, s, name, 0);
		turn_record_close(&c);
	}
	now += 2000 * MS;
	open_one(&a, s, "a", 0);
	assert_int_equal(a.peer_count, TURN_PEERS);
	assert_int_equal(turn_count_peers(&a, now), 0);
	open_one(&b, s, "b", 0);
	now += 61 * MS;
	assert_int_equal(turn_count_peers(&a, now), 1);
	assert_int_equal(a.peer_count, TURN_PEERS);
	now += 6 * MS;
	turn_count_peers(&b, now);
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

/* As holes can be punched over all of it. */
static void a_large_record_is_read_by_its_file(void **state)
{
	open_one(&a, *state, "a", 0);
	assert_int_equal(truncate(path_of(*state, "a"), 1 << 20), 0);
	open_one(&b, *state, "b", 0);
	now += 61 * MS;
	turn_count_peers(&b, now);
	assert_int_equal(b.peer_count, 1);
	assert_true(b.peers[0].doubt.is_slow);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(hold(&b), TURN_E_WAIT);
}

/* Who touches a page of a file in which its owner punches holes waits for that. */
static void a_record_that_was_slow_to_read_is_read_by_its_file(void **state)
{
	open_two(*state);
	assert_int_equal(hold(&a), TURN_HELD);
	assert_int_equal(b.peer_count, 1);
	b.peers[0].doubt.is_slow = true;
	assert_int_equal(mprotect((void *)(uintptr_t)b.peer_records[0].at, sizeof(struct turn_face),
				 PROT_NONE),
		0);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	assert_int_equal(b.peer_count, 1);
	assert_int_equal(turn_wait(&b, now + MS), 0);
	turn_release(&a, now);
	now += MS;
	assert_int_equal(hold(&b), TURN_HELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(a_new_page_waits_until_the_others_have_found_it),
		TURN_TEST(a_slice_goes_by_its_books_and_not_by_its_page),
		TURN_TEST(who_finds_its_page_changed_blames_nobody_and_gives_way),
		TURN_TEST(a_broken_page_is_mended_and_found_again),
		TURN_TEST(who_begins_with_a_broken_page_mends_it),
		TURN_TEST(a_page_that_is_cut_short_harms_nobody),
		TURN_TEST(what_is_no_page_is_passed_over),
		TURN_TEST(what_is_no_file_is_not_opened),
		TURN_TEST(the_long_dead_are_removed),
		TURN_TEST(reading_by_path_does_as_well),
		TURN_TEST(a_page_that_was_removed_is_made_again),
		TURN_TEST(
			another_name_another_file_or_a_broken_one_does_not_help_who_is_not_believed),
		TURN_TEST(what_one_record_of_another_user_did_counts_for_all_of_his),
		TURN_TEST(what_one_of_the_operators_records_did_counts_for_it_alone),
		TURN_TEST(of_more_than_64_the_living_are_looked_at),
		TURN_TEST(a_record_that_was_slow_to_read_is_read_by_its_file),
		TURN_TEST(a_large_record_is_read_by_its_file),
		TURN_TEST(a_watcher_sees_who_holds_and_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
