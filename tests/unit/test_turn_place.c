/* SPDX-License-Identifier: Apache-2.0 */
/* Whose folders and records count. */
#include "region/turn_place.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "region/turn.h"
#include "tests/unit/turn_scene.h"

static int open_as(struct scratch *s, const char *uuid, const char *slice)
{
	c.clock_ns = test_clock;
	return turn_open(&c, folder_of(s), uuid, slice, 0, now);
}

static void a_file_with_something_else_in_it_is_not_written_to(void **state)
{
	struct scratch *s = *state;
	char is[16] = "";
	int fd;

	open_one(&a, s, "a", 0);
	fd = open(path_of(s, "c"), O_RDWR | O_CREAT, 0644);
	assert_int_equal(write(fd, "precious", 8), 8);
	assert_int_equal(open_as(s, UUID, "c"), -EBADMSG);
	assert_int_equal(pread(fd, is, sizeof(is), 0), 8);
	assert_string_equal(is, "precious");
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(open_as(s, UUID, "c"), 0);
	close(fd);
}

static void a_link_to_a_folder_is_not_followed(void **state)
{
	struct scratch *s = *state;
	char there[400], link[400];

	open_one(&a, s, "a", 0);
	snprintf(there, sizeof(there), "%s/there", s->folder);
	snprintf(link, sizeof(link), "%s/GPU-link", folder_of(s));
	assert_int_equal(mkdir(there, 0755), 0);
	assert_int_equal(symlink(there, link), 0);
	assert_true(open_as(s, "GPU-link", "c") < 0);
	/* Nothing was made in it. */
	assert_int_equal(rmdir(there), 0);
	snprintf(link, sizeof(link), "%s/turns", s->folder);
	assert_int_equal(symlink(folder_of(s), link), 0);
	c.clock_ns = test_clock;
	assert_true(turn_open(&c, link, UUID, "c", 0, now) < 0);
}

/* In a process of another user: 0, or the error that its record's opening gave. */
static int open_as_nobody(struct scratch *s, const char *slice)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (setgid(54321) < 0 || setuid(54321) < 0)
			_exit(200);
		_exit(-open_as(s, UUID, slice));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return -WEXITSTATUS(status);
}

static void what_belongs_to_another_user_does_not_count(void **state)
{
	struct scratch *s = *state;
	char device[400];

	if (geteuid() != 0)
		skip();
	open_one(&a, s, "a", 0);
	assert_int_equal(chmod(s->folder, 0755), 0);
	close(open(path_of(s, "c"), O_RDWR | O_CREAT, 0644));
	assert_int_equal(chown(path_of(s, "c"), 54321, 54321), 0);
	/* Whether it is open to all or to that one. */
	assert_int_equal(open_as(s, UUID, "c"), -EEXIST);
	assert_int_equal(chmod(path_of(s, "c"), 0600), 0);
	assert_int_equal(open_as_nobody(s, "e"), 0);
	assert_int_equal(open_as(s, UUID, "e"), -EEXIST);
	snprintf(device, sizeof(device), "%s/%s", folder_of(s), UUID);
	assert_int_equal(chown(device, 54321, 54321), 0);
	assert_int_equal(open_as(s, UUID, "d"), -EPERM);
	assert_int_equal(chown(device, 0, 0), 0);
	/* Where everybody may remove everything, too. */
	assert_int_equal(chmod(device, 0777), 0);
	assert_int_equal(open_as(s, UUID, "d"), -EPERM);
	assert_int_equal(chmod(device, 01777), 0);
	assert_int_equal(chown(folder_of(s), 54321, 54321), 0);
	assert_int_equal(open_as(s, UUID, "d"), -EPERM);
	assert_int_equal(chown(folder_of(s), 0, 0), 0);
	assert_int_equal(open_as(s, UUID, "d"), 0);
}

static void the_operators_record_is_for_whom_it_is_mounted(void **state)
{
	struct scratch *s = *state;
	char device[400];

	if (geteuid() != 0)
		skip();
	open_one(&a, s, "a", 0);
	snprintf(device, sizeof(device), "%s/%s", folder_of(s), UUID);
	assert_int_equal(chmod(s->folder, 0755), 0);
	close(open(path_of(s, "c"), O_RDWR | O_CREAT, 0600));
	assert_int_equal(chmod(path_of(s, "c"), 0666), 0);
	/* Where all make records, one of root's is none of another user's. */
	assert_int_equal(open_as_nobody(s, "c"), -EEXIST);
	assert_int_equal(chmod(device, 0755), 0);
	assert_int_equal(open_as_nobody(s, "c"), 0);
	/* A third user's there is not. */
	assert_int_equal(chown(path_of(s, "c"), 12345, 12345), 0);
	assert_int_equal(open_as_nobody(s, "c"), -EEXIST);
	assert_int_equal(open_as_nobody(s, "d"), -EACCES);
}

/* Root of a user namespace in which nobody else has a number, as in a container without root. */
static int become_mapped(void)
{
	int fd;

	if (setgid(54321) < 0 || setuid(54321) < 0 || prctl(PR_SET_DUMPABLE, 1) < 0 ||
		unshare(CLONE_NEWUSER) < 0)
		return -1;
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, "0 54321 1", 9) == 9 && geteuid() == 0 ? 0 : -1;
}

/* As open_as_nobody(), in such a namespace, with a path that is a mount of its own (or NULL). */
static int open_as_mapped(struct scratch *s, const char *slice, const char *mounted)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		if (mounted && (unshare(CLONE_NEWNS) < 0 ||
				       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
				       mount(mounted, mounted, NULL, MS_BIND, NULL) < 0))
			_exit(199);
		_exit(become_mapped() < 0 ? 199 : -open_as(s, UUID, slice));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return -WEXITSTATUS(status);
}

/* The folder and the device's in it; false where the machine has no such namespaces. */
static bool begin_mapped(struct scratch *s, char ret_device[400])
{
	if (geteuid() != 0)
		return false;
	open_one(&a, s, "a", 0);
	snprintf(ret_device, 400, "%s/%s", folder_of(s), UUID);
	assert_int_equal(chmod(s->folder, 0755), 0);
	return open_as_mapped(s, "none", ret_device) != -199;
}

static void mark(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	turn_place_mark(fd);
	close(fd);
}

/* Whoever the namespace does not know has the number that root has there. */
static void a_folder_that_a_user_can_have_made_is_not_roots_in_a_container(void **state)
{
	struct scratch *s = *state;
	char device[400];

	if (!begin_mapped(s, device))
		skip();
	assert_int_equal(open_as_mapped(s, "c", NULL), -EPERM);
	mark(folder_of(s));
	assert_int_equal(open_as_mapped(s, "c", NULL), -EPERM);
	mark(device);
	assert_int_equal(open_as_mapped(s, "c", NULL), 0);
	/* Another user's, in root's. */
	assert_int_equal(rename(device, path_of(s, "../other")), 0);
	assert_int_equal(mkdir(device, 0755), 0);
	assert_int_equal(chown(device, 12345, 12345), 0);
	assert_int_equal(chmod(device, 01777), 0);
	assert_int_equal(open_as_mapped(s, "d", NULL), -EPERM);
	/* What the container's maker has mounted there counts. */
	assert_int_equal(open_as_mapped(s, "d", device), 0);
	/* As do root's folders in one that is closed. */
	assert_int_equal(chmod(folder_of(s), 0755), 0);
	assert_int_equal(open_as_mapped(s, "e", NULL), 0);
}

static void a_record_that_is_not_mounted_is_not_the_operators_in_a_container(void **state)
{
	struct scratch *s = *state;
	char device[400], record[400];

	if (!begin_mapped(s, device))
		skip();
	mark(folder_of(s));
	mark(device);
	close(open(path_of(s, "c"), O_RDWR | O_CREAT, 0600));
	assert_int_equal(chmod(path_of(s, "c"), 0666), 0);
	assert_int_equal(chown(path_of(s, "c"), 12345, 12345), 0);
	assert_int_equal(chmod(device, 0755), 0);
	assert_int_equal(open_as_mapped(s, "c", NULL), -EEXIST);
	snprintf(record, sizeof(record), "%s", path_of(s, "c"));
	assert_int_equal(open_as_mapped(s, "c", record), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN_TEST(a_file_with_something_else_in_it_is_not_written_to),
		TURN_TEST(a_link_to_a_folder_is_not_followed),
		TURN_TEST(what_belongs_to_another_user_does_not_count),
		TURN_TEST(the_operators_record_is_for_whom_it_is_mounted),
		TURN_TEST(a_folder_that_a_user_can_have_made_is_not_roots_in_a_container),
		TURN_TEST(a_record_that_is_not_mounted_is_not_the_operators_in_a_container),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
