/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of records, which others fill: what a look at it costs, and whom it finds. */
#include "region/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region/turn_record.h"
#include "tests/unit/turn_scene.h"

#define STRANGER  54321
#define NEIGHBOUR 54322
#define LOOK_NS	  (51 * MS) /* after so long the folder is looked at again */

static void make_file(struct scratch *s, const char *name, size_t size, uid_t owner)
{
	int fd = open(path_of(s, name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(owner ? fchown(fd, owner, owner) : 0, 0);
	close(fd);
}

/* No records, by their names or content. */
static void litter(struct scratch *s, unsigned first, unsigned count, size_t size, uid_t owner)
{
	char name[16];

	for (unsigned i = first; i < first + count; i++) {
		snprintf(name, sizeof(name), "n%x", i);
		make_file(s, name, size, owner);
	}
}

/* A record of a slice that lives. */
static void make_record(struct scratch *s, const char *name, uid_t owner)
{
	struct turn_face face = {.magic = TURN_MAGIC, .seen_ns = now + 1000 * MS};
	int fd;

	make_file(s, name, sizeof(struct turn_record), owner);
	fd = open(path_of(s, name), O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, &face, sizeof(face), 0), sizeof(face));
	close(fd);
}

static bool knows(const struct turn *t, const char *name)
{
	for (unsigned i = 0; i < t->peer_count; i++)
		if (strcmp(t->peer_records[i].name, name) == 0)
			return true;
	return false;
}

/* Looks again after the folder has changed. */
static void look(struct scratch *s)
{
	make_file(s, "t", 0, 0);
	assert_int_equal(unlink(path_of(s, "t")), 0);
	now += LOOK_NS;
	turn_count_peers(&a, now);
}

static int watch_folder(const struct scratch *s)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char folder[400];

	snprintf(folder, sizeof(folder), "%s/%s", folder_of(s), UUID);
	assert_true(inotify_add_watch(fd, folder, IN_OPEN) >= 0);
	return fd;
}

/* Files in the folder that were opened; the folder itself is not counted. */
static unsigned count_opened(int fd)
{
	union {
		struct inotify_event first;
		char bytes[4096];
	} buffer;
	unsigned count = 0;
	ssize_t length;

	while ((length = read(fd, &buffer, sizeof(buffer))) > 0)
		for (ssize_t at = 0; at < length;) {
			const struct inotify_event *event =
				(const struct inotify_event *)(const void *)(buffer.bytes + at);

			count += event->len > 0 && !strchr(event->name, 't');
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	return count;
}

static void what_was_no_record_is_not_opened_again_at_each_look(void **state)
{
	struct scratch *s = *state;
	unsigned opened = 0;
	int watch;

	open_one(&a, s, "a", 0);
	litter(s, 0, 200, 128, 0);
	watch = watch_folder(s);
	for (int i = 0; i < 100; i++)
		look(s);
	opened = count_opened(watch);
	close(watch);
	/* 1,360; and 255 more where five names fall on places for four, as in one folder of forty. */
	assert_in_range(opened, 200, 12 * 200);
}

static void a_look_opens_no_more_than_some_files(void **state)
{
	struct scratch *s = *state;
	int watch;

	open_one(&a, s, "a", 0);
	litter(s, 0, 1300, 128, 0);
	watch = watch_folder(s);
	for (int i = 0; i < 20; i++) {
		look(s);
		assert_in_range(count_opened(watch), 0, 40);
	}
	close(watch);
}

static void what_becomes_a_record_is_found(void **state)
{
	struct scratch *s = *state;
	uint64_t magic = TURN_MAGIC;
	unsigned i;
	int fd;

	open_one(&a, s, "a", 0);
	make_file(s, "later", sizeof(struct turn_record), 0);
	for (i = 0; i < 100; i++)
		look(s);
	assert_false(knows(&a, "later"));
	fd = open(path_of(s, "later"), O_WRONLY | O_CLOEXEC);
	assert_int_equal(
		pwrite(fd, &magic, sizeof(magic), offsetof(struct turn_record, face.magic)), 8);
	close(fd);
	for (i = 0; i < 100 && !knows(&a, "later"); i++)
		look(s);
	assert_in_range(i, 0, 90);
}

/* The slice's claim holds for 1 ms: a listing in it would be the end of it. */
static void a_claim_lists_nothing(void **state)
{
	struct scratch *s = *state;
	uint64_t poll_ns;
	uint32_t listing;

	open_one(&a, s, "a", 0);
	now += 61 * MS;
	turn_count_peers(&a, now);
	make_file(s, "new", 0, 0);
	listing = a.listing;
	/* It has the time for the next one between its wish and its claim. */
	looks_until_late = 1;
	late_ns = LOOK_NS;
	assert_int_equal(turn_hold(&a, 1, now, now + MS, &poll_ns), TURN_HELD);
	assert_int_equal(a.listing, listing);
	assert_int_equal(late_ns, 0);
	turn_count_peers(&a, now + 6 * MS);
	assert_int_equal(a.listing, listing + 1);
}

/* It was known to nobody when the other one last looked, and has waited until everybody else knew it. */
static void who_looked_long_ago_claims_nothing_beside_a_new_slice(void **state)
{
	uint64_t looked_ns = now, look;

	open_one(&a, *state, "a", 0);
	now = looked_ns + MS;
	open_one(&b, *state, "b", 0);
	assert_int_equal(hold(&b), TURN_E_WAIT);
	now = looked_ns + 62 * MS;
	assert_int_equal(hold_for(&b, 1, 20 * MS), TURN_HELD);
	/* a saw the folder well before that, and loses its processor before it claims. */
	now = looked_ns + 49 * MS;
	looks_until_late = 1;
	late_ns = 20 * MS;
	assert_int_equal(turn_hold(&a, 1, now, now + MS, &look), TURN_E_WAIT);
	assert_int_equal(late_ns, 0);
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(turn_count_peers(&a, now), 1);
	now = looked_ns + 83 * MS;
	assert_int_equal(hold(&a), TURN_HELD);
}

static void who_lost_its_processor_in_a_look_looks_again(void **state)
{
	uint64_t looked_ns = now;

	looks_until_late = 1; /* at the end of the look */
	late_ns = 150 * MS;
	open_one(&a, *state, "a", 0);
	assert_int_equal(now, looked_ns + 150 * MS);
	now = looked_ns + 90 * MS;
	open_one(&b, *state, "b", 0);
	now = looked_ns + 151 * MS;
	assert_int_equal(hold_for(&b, 1, 20 * MS), TURN_HELD);
	now += MS;
	assert_int_equal(hold(&a), TURN_E_WAIT);
	assert_int_equal(turn_count_peers(&a, now), 1);
}

/* As who fills the folder makes them: it looks no more often because of that, and has its turn. */
static void whose_looks_are_always_long_has_its_turn(void **state)
{
	uint64_t look;
	uint32_t listing;

	open_one(&a, *state, "a", 0);
	for (unsigned i = 0; i < 5; i++) {
		now += LOOK_NS;
		litter(*state, i, 1, 0, 0);
		listing = a.listing;
		for (int r = TURN_E_WAIT, k = 0; r != TURN_HELD && k < 2; k++) {
			looks_until_late = 1;
			late_ns = 150 * MS;
			r = turn_hold(&a, 1, now, now + MS, &look);
			assert_int_equal(r, i + k == 0 ? TURN_E_WAIT : TURN_HELD);
			assert_int_equal(late_ns, 0);
		}
		assert_int_equal(a.listing, listing + (i == 0 ? 2 : 1));
		turn_leave(&a);
	}
}

static void a_strangers_records_leave_room_for_others(void **state)
{
	struct scratch *s = *state;
	char name[16];
	unsigned i;

	if (geteuid() != 0)
		skip();
	open_one(&a, s, "a", 0);
	for (i = 0; i < TURN_PEERS + 36; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		make_record(s, name, STRANGER);
	}
	for (i = 0; i < 8; i++)
		look(s);
	assert_int_equal(a.peer_count, TURN_PEERS);
	make_record(s, "y", NEIGHBOUR);
	make_record(s, "z", NEIGHBOUR);
	look(s);
	assert_true(knows(&a, "y"));
	assert_true(knows(&a, "z"));
	assert_int_equal(a.peer_count, TURN_PEERS);
	for (i = 0; i < 20; i++)
		look(s);
	assert_true(knows(&a, "y"));
	assert_true(knows(&a, "z"));
}

/* Each look has some of it that is new. */
static void a_strangers_new_files_hide_no_record(void **state)
{
	struct scratch *s = *state;

	if (geteuid() != 0)
		skip();
	open_one(&a, s, "a", 0);
	litter(s, 0, 300, 128, STRANGER);
	make_record(s, "y", NEIGHBOUR);
	litter(s, 300, 300, 128, STRANGER);
	look(s);
	assert_true(knows(&a, "y"));
}

static void among_thousands_of_names_the_known_stay_and_the_new_are_found(void **state)
{
	struct scratch *s = *state;
	unsigned i;

	open_one(&a, s, "a", 0);
	make_record(s, "first", 0);
	look(s);
	assert_true(knows(&a, "first"));
	litter(s, 0, 3000, 0, 0);
	make_record(s, "between", 0);
	litter(s, 3000, 3000, 0, 0);
	for (i = 0; i < 12; i++) {
		look(s);
		assert_true(knows(&a, "first"));
	}
	assert_true(knows(&a, "between"));
	make_record(s, "last", 0);
	for (i = 0; i < 12 && !knows(&a, "last"); i++)
		look(s);
	assert_true(knows(&a, "last"));
	/* And those that went are forgotten. */
	assert_int_equal(unlink(path_of(s, "first")), 0);
	for (i = 0; i < 12; i++)
		look(s);
	assert_false(knows(&a, "first"));
	assert_true(knows(&a, "between"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(what_was_no_record_is_not_opened_again_at_each_look),
		TURN_TEST(a_look_opens_no_more_than_some_files),
		TURN_TEST(what_becomes_a_record_is_found),
		TURN_TEST(a_claim_lists_nothing),
		TURN_TEST(who_looked_long_ago_claims_nothing_beside_a_new_slice),
		TURN_TEST(who_lost_its_processor_in_a_look_looks_again),
		TURN_TEST(whose_looks_are_always_long_has_its_turn),
		TURN_TEST(a_strangers_records_leave_room_for_others),
		TURN_TEST(a_strangers_new_files_hide_no_record),
		TURN_TEST(among_thousands_of_names_the_known_stay_and_the_new_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
