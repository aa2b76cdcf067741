/* SPDX-License-Identifier: Apache-2.0 */
/* Marks: they go with every copy of a descriptor, and end with the last. */
#include "base/mark.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

static int open_file(const struct scratch *s)
{
	int fd = open(s->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	return fd;
}

static bool is_alive(const struct scratch *s, uint64_t id)
{
	int fd = open_file(s);
	bool is_alive;

	assert_int_equal(mark_is_alive(fd, id, &is_alive), 0);
	close(fd);
	return is_alive;
}

static void a_mark_is_read_from_any_copy_and_ends_with_the_last(void **state)
{
	struct scratch *s = *state;
	struct mark mark = {.id = mark_new_id(MARK_OF_MEMORY), .steps = 77}, seen;
	int fd = open_file(s), copy;

	assert_int_not_equal(mark.id, 0);
	assert_int_equal(mark_get(fd, &seen), -ENOENT);
	assert_int_equal(mark_set(fd, mark), 0);
	copy = dup(fd);
	close(fd);
	assert_int_equal(mark_get(copy, &seen), 0);
	assert_true(seen.id == mark.id);
	assert_int_equal(seen.steps, 77);
	assert_true(is_alive(s, mark.id));
	close(copy);
	assert_false(is_alive(s, mark.id));
}

static void one_file_may_be_opened_with_many_marks_and_one_mark_be_on_many(void **state)
{
	struct scratch *s = *state;
	struct mark a = {.id = mark_new_id(MARK_OF_MEMORY), .steps = MARK_STEPS_MAX},
		    b = {.id = mark_new_id(MARK_OF_MEMORY)};
	int first = open_file(s), second = open_file(s), third = open_file(s);
	struct mark seen;

	assert_true(a.id != b.id);
	assert_int_equal(mark_set(first, a), 0);
	assert_int_equal(mark_set(second, a), 0);
	assert_int_equal(mark_set(third, b), 0);
	assert_int_equal(mark_get(first, &seen), 0);
	assert_true(seen.id == a.id);
	assert_int_equal(seen.steps, MARK_STEPS_MAX);
	assert_int_equal(mark_get(third, &seen), 0);
	assert_true(seen.id == b.id);
	assert_int_equal(seen.steps, 0);
	close(first);
	assert_true(is_alive(s, a.id));
	close(second);
	assert_false(is_alive(s, a.id));
	assert_true(is_alive(s, b.id));
	close(third);
}

static void other_locks_are_no_marks(void **state)
{
	struct flock other = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 5, .l_len = 9};
	struct scratch *s = *state;
	struct mark seen;
	int fd = open_file(s);

	assert_int_equal(fcntl(fd, F_OFD_SETLK, &other), 0);
	assert_int_equal(mark_get(fd, &seen), -ENOENT);
	assert_int_equal(mark_get(-1, &seen), -ENOENT);
	assert_int_equal(mark_set(fd, (struct mark){.steps = MARK_STEPS_MAX + 1}), -EINVAL);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_mark_is_read_from_any_copy_and_ends_with_the_last),
		SCRATCH_TEST(one_file_may_be_opened_with_many_marks_and_one_mark_be_on_many),
		SCRATCH_TEST(other_locks_are_no_marks),
	};

	return cmocka_run_group_tests_name("mark", tests, NULL, NULL);
}
