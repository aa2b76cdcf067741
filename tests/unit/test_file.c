/* SPDX-License-Identifier: Apache-2.0 */
/* Files: read whole or not at all, told apart, and locked by description. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

static void write_file(const char *path, const void *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	close(fd);
}

static void a_file_is_read_whole_and_ended_with_zero(void **state)
{
	struct scratch *s = *state;
	char buffer[6];
	size_t length = 99;

	write_file(s->file, "ab\0de", 5);
	memset(buffer, 'x', sizeof(buffer));
	assert_int_equal(file_read(s->file, buffer, sizeof(buffer), &length), 0);
	assert_int_equal(length, 5);
	assert_memory_equal(buffer, "ab\0de", 6);
	write_file(s->file, "", 0);
	assert_int_equal(file_read(s->file, buffer, sizeof(buffer), &length), 0);
	assert_int_equal(length, 0);
	assert_int_equal(buffer[0], '\0');
}

static void a_file_that_leaves_no_room_for_the_zero_is_too_large(void **state)
{
	struct scratch *s = *state;
	char buffer[6];
	size_t length = 99;

	write_file(s->file, "abcdef", 6);
	assert_int_equal(file_read(s->file, buffer, sizeof(buffer), &length), -EFBIG);
	write_file(s->file, "abcdefgh", 8);
	assert_int_equal(file_read(s->file, buffer, sizeof(buffer), &length), -EFBIG);
	assert_int_equal(length, 99);
}

static void what_cannot_be_read_is_an_error(void **state)
{
	struct scratch *s = *state;
	char buffer[6];
	size_t length = 99;

	assert_int_equal(file_read(s->file, buffer, sizeof(buffer), &length), -ENOENT);
	assert_int_equal(file_read(s->folder, buffer, sizeof(buffer), &length), -EISDIR);
	assert_int_equal(length, 99);
}

static void a_fifo_without_a_writer_delays_nobody(void **state)
{
	struct scratch *s = *state;
	char buffer[6];
	size_t length;

	assert_int_equal(mkfifo(s->file, 0600), 0);
	assert_int_equal(file_read(s->file, buffer, sizeof(buffer), &length), 0);
	assert_int_equal(length, 0);
}

static int open_it(const char *path, int flags)
{
	int fd = -1, r = file_open_regular(AT_FDCWD, path, flags, &fd);

	if (r < 0)
		assert_int_equal(fd, -1);
	else
		close(fd);
	return r;
}

static void what_is_no_regular_file_is_not_opened(void **state)
{
	struct scratch *s = *state;
	char link[512], buffer[6];
	size_t length = 99;

	snprintf(link, sizeof(link), "%s/link", s->folder);
	assert_int_equal(open_it(s->file, O_RDONLY), -ENOENT);
	assert_int_equal(open_it(s->folder, O_RDONLY), -EISDIR);
	assert_int_equal(open_it("/dev/zero", O_RDONLY), -EBADF);
	assert_int_equal(open_it("/dev/ptmx", O_RDWR), -EBADF);
	write_file(s->file, "abc", 3);
	assert_int_equal(open_it(s->file, O_RDWR | O_NOFOLLOW), 0);
	assert_int_equal(symlink(s->file, link), 0);
	assert_int_equal(open_it(link, O_RDONLY), 0);
	assert_int_equal(open_it(link, O_RDONLY | O_NOFOLLOW), -EBADF);
	assert_int_equal(file_read_regular(AT_FDCWD, link, 0, buffer, sizeof(buffer), &length), 0);
	assert_string_equal(buffer, "abc");
	unlink(s->file);
	assert_int_equal(mkfifo(s->file, 0600), 0);
	assert_int_equal(open_it(s->file, O_RDONLY), -EBADF);
	assert_int_equal(open_it(link, O_RDONLY), -EBADF);
	unlink(link);
}

/* A folder that its owner may not read cannot be opened to change that, unless its owner is root. */
static void a_folder_has_its_mode_whatever_the_umask(void **state)
{
	static const unsigned modes[] = {0700, 0755, 01777, 0500};
	struct scratch *s = *state;
	struct file_identity id;
	char path[sizeof(s->folder) + 8];

	snprintf(path, sizeof(path), "%s/folder", s->folder);
	for (unsigned mask = 0; mask <= 0777; mask += 0111)
		for (unsigned i = 0; i < ARRAY_SIZE(modes); i++) {
			mode_t before = umask(mask);

			assert_int_equal(file_make_folder(AT_FDCWD, path, modes[i]), 0);
			assert_int_equal(file_make_folder(AT_FDCWD, path, 0777), -EEXIST);
			assert_int_equal(umask(before), mask);
			assert_int_equal(file_identify_path(path, &id), 0);
			assert_true(id.is_folder);
			assert_int_equal(id.mode, modes[i]);
			assert_int_equal(rmdir(path), 0);
		}
	assert_int_equal(symlink("/nowhere", path), 0);
	assert_int_equal(file_make_folder(AT_FDCWD, path, 0700), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(file_make_folder(AT_FDCWD, "/nowhere/folder", 0700), -ENOENT);
}

static void files_are_told_apart_by_device_and_inode(void **state)
{
	struct scratch *s = *state;
	struct file_identity by_fd, by_path, folder;
	struct stat truth;
	int fd;

	write_file(s->file, "1234567", 7);
	fd = open(s->file, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_identify(fd, &by_fd), 0);
	assert_int_equal(file_identify_path(s->file, &by_path), 0);
	assert_int_equal(fstat(fd, &truth), 0);
	close(fd);
	assert_int_equal(by_fd.device, truth.st_dev);
	assert_int_equal(by_fd.inode, truth.st_ino);
	assert_int_equal(by_fd.inode, by_path.inode);
	assert_int_equal(by_fd.device, by_path.device);
	assert_int_equal(by_fd.size_bytes, 7);
	assert_int_equal(by_fd.changed_ns,
		(uint64_t)truth.st_mtim.tv_sec * 1000000000u + (uint64_t)truth.st_mtim.tv_nsec);
	assert_true(by_fd.is_regular);
	assert_int_equal(file_identify_path(s->folder, &folder), 0);
	assert_false(folder.is_regular);
	assert_int_equal(file_identify(-1, &folder), -EBADF);
	assert_int_equal(file_identify_path("", &folder), -ENOENT);
}

static void a_locked_byte_is_refused_to_another_description_only(void **state)
{
	struct scratch *s = *state;
	bool is_locked = false;
	int one, two;

	write_file(s->file, "", 0);
	one = open(s->file, O_RDWR | O_CLOEXEC);
	two = open(s->file, O_RDWR | O_CLOEXEC);
	assert_int_equal(file_lock_byte(one, INT64_C(1) << 40), 0);
	assert_int_equal(file_lock_byte(one, INT64_C(1) << 40), 0);
	assert_int_equal(file_lock_byte(two, INT64_C(1) << 40), -EAGAIN);
	assert_int_equal(file_lock_byte(two, (INT64_C(1) << 40) + 1), 0);
	assert_int_equal(file_byte_is_locked(two, INT64_C(1) << 40, &is_locked), 0);
	assert_true(is_locked);
	assert_int_equal(file_byte_is_locked(one, INT64_C(1) << 40, &is_locked), 0);
	assert_false(is_locked);
	file_unlock_byte(one, INT64_C(1) << 40);
	assert_int_equal(file_byte_is_locked(two, INT64_C(1) << 40, &is_locked), 0);
	assert_false(is_locked);
	assert_int_equal(file_lock_byte(two, INT64_C(1) << 40), 0);
	close(one);
	close(two);
}

static void a_reader_may_ask_for_a_lock_but_not_take_one(void **state)
{
	struct scratch *s = *state;
	bool is_locked = true;
	int fd;

	write_file(s->file, "", 0);
	fd = open(s->file, O_RDONLY | O_CLOEXEC);
	assert_int_equal(file_byte_is_locked(fd, 0, &is_locked), 0);
	assert_false(is_locked);
	assert_int_equal(file_lock_byte(fd, 0), -EBADF);
	close(fd);
	assert_int_equal(file_byte_is_locked(-1, 0, &is_locked), -EBADF);
}

static void a_mapping_keeps_the_lock_when_the_descriptor_is_closed(void **state)
{
	struct scratch *s = *state;
	bool is_locked = false;
	int one, two;
	void *at;

	write_file(s->file, "x", 1);
	one = open(s->file, O_RDWR | O_CLOEXEC);
	two = open(s->file, O_RDWR | O_CLOEXEC);
	at = mmap(NULL, 1, PROT_READ, MAP_SHARED, one, 0);
	assert_true(at != MAP_FAILED);
	assert_int_equal(file_lock_byte(one, 5), 0);
	close(one);
	assert_int_equal(file_byte_is_locked(two, 5, &is_locked), 0);
	assert_true(is_locked);
	munmap(at, 1);
	assert_int_equal(file_byte_is_locked(two, 5, &is_locked), 0);
	assert_false(is_locked);
	close(two);
}

static int lock_and_wait(int fd, void *argument)
{
	int file = open(argument, O_RDWR | O_CLOEXEC);

	child_say(fd, (uint64_t)(file_lock_byte(file, 9) == 0));
	child_hear(fd);
	return 0;
}

static void a_killed_process_gives_its_lock_back(void **state)
{
	struct scratch *s = *state;
	struct child c;
	int fd;

	write_file(s->file, "", 0);
	c = child_start(lock_and_wait, s->file);
	assert_int_equal(child_hear(c.fd), 1);
	fd = open(s->file, O_RDWR | O_CLOEXEC);
	assert_int_equal(file_lock_byte(fd, 9), -EAGAIN);
	assert_int_equal(child_kill(&c), CHILD_SIGNALLED + SIGKILL);
	assert_int_equal(file_lock_byte(fd, 9), 0);
	close(fd);
}

static void a_boot_has_one_id(void **state)
{
	char one[FILE_BOOT_BYTES], two[FILE_BOOT_BYTES];

	assert_int_equal(file_read_boot(one), 0);
	assert_int_equal(file_read_boot(two), 0);
	assert_string_equal(one, two);
	assert_int_equal(strlen(one), 36);
	assert_null(strpbrk(one, " \n"));
}

/* 0: right in all; 77: this machine forbids a filter. */
static int look_without_statx(int fd, void *argument)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	bool is_mount = false;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return 77;
	if (file_is_mounted("/proc", &is_mount) != 0 || !is_mount)
		return 1;
	if (file_is_mounted("/proc/self/status", &is_mount) != 0 || is_mount)
		return 2;
	return file_is_mounted("/proc/nothing", &is_mount) == -ENOENT ? 0 : 3;
}

static void a_mount_is_told_from_a_folder_in_it(void **state)
{
	struct child c = child_start(look_without_statx, NULL);
	bool is_mount = false;
	int status;

	assert_int_equal(file_is_mounted("/proc", &is_mount), 0);
	assert_true(is_mount);
	assert_int_equal(file_is_mounted("/proc/self/status", &is_mount), 0);
	assert_false(is_mount);
	assert_int_equal(file_is_mounted("/proc/nothing", &is_mount), -ENOENT);
	status = child_wait(&c);
	if (status == 77)
		print_message("skipped in part: no filter of system calls\n");
	else
		assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_file_is_read_whole_and_ended_with_zero),
		SCRATCH_TEST(a_file_that_leaves_no_room_for_the_zero_is_too_large),
		SCRATCH_TEST(what_cannot_be_read_is_an_error),
		SCRATCH_TEST(a_fifo_without_a_writer_delays_nobody),
		SCRATCH_TEST(what_is_no_regular_file_is_not_opened),
		SCRATCH_TEST(a_folder_has_its_mode_whatever_the_umask),
		SCRATCH_TEST(files_are_told_apart_by_device_and_inode),
		SCRATCH_TEST(a_locked_byte_is_refused_to_another_description_only),
		SCRATCH_TEST(a_reader_may_ask_for_a_lock_but_not_take_one),
		SCRATCH_TEST(a_mapping_keeps_the_lock_when_the_descriptor_is_closed),
		SCRATCH_TEST(a_killed_process_gives_its_lock_back),
		cmocka_unit_test(a_boot_has_one_id),
		cmocka_unit_test(a_mount_is_told_from_a_folder_in_it),
	};

	return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
