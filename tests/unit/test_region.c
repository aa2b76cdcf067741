/* SPDX-License-Identifier: Apache-2.0 */
/* The region file: it appears whole, and what is something else is refused and left as it is. */
#include "region/region.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <dirent.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "tests/unit/child.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define NOBODY		65534
#define CREATORS	16
#define HAMI_SIZE_BYTES 2008952

static void write_file(const char *path, const void *bytes, size_t count)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, count), count);
	close(fd);
}

/* The whole content, to be freed. */
static char *read_file(const char *path, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat info;
	char *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &info), 0);
	bytes = malloc((size_t)info.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)info.st_size), info.st_size);
	close(fd);
	*ret_size = (size_t)info.st_size;
	return bytes;
}

static unsigned files_in(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));)
		count += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(dir);
	return count;
}

/* Opens what is at path, which must be refused so and stay the same byte for byte. */
static void refuse(const char *path, int expected)
{
	struct region region = REGION_NULL;
	size_t size_before, size_after;
	char *before = read_file(path, &size_before), *after;

	assert_int_equal(region_open(path, &region), expected);
	assert_null(region.file);
	assert_int_equal(region.fd, -1);
	after = read_file(path, &size_after);
	assert_int_equal(size_before, size_after);
	assert_memory_equal(before, after, size_before);
	free(before);
	free(after);
}

/* The bytes of a right region, to be freed; the file is gone. */
static char *right_bytes(const struct scratch *s)
{
	struct region region = REGION_NULL;
	size_t size;
	char *bytes;

	assert_int_equal(region_open(s->file, &region), 0);
	region_close(&region);
	bytes = read_file(s->file, &size);
	assert_int_equal(size, sizeof(struct region_file));
	assert_int_equal(unlink(s->file), 0);
	return bytes;
}

static void a_region_is_made_once_and_then_shared(void **state)
{
	struct scratch *s = *state;
	struct region one = REGION_NULL, two = REGION_NULL;
	struct stat info;

	assert_int_equal(region_open(s->file, &one), 0);
	assert_int_equal(region_open(s->file, &two), 0);
	assert_int_equal(one.inode, two.inode);
	assert_int_equal(stat(s->file, &info), 0);
	assert_int_equal(info.st_ino, one.inode);
	assert_int_equal(info.st_size, sizeof(struct region_file));
	assert_true(one.fd >= 0);
	atomic_store(&one.file->own.devices[3].total, 77);
	assert_int_equal(atomic_load(&two.file->own.devices[3].total), 77);
	assert_int_equal(files_in(s->folder), 1);
	region_close(&one);
	region_close(&two);
}

static void users_of_one_container_may_all_write_it_whatever_the_umask(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	mode_t mask = umask(0077);
	struct stat info;
	int r = region_open(s->file, &region);

	assert_int_equal(umask(mask), 0077);
	assert_int_equal(r, 0);
	assert_int_equal(stat(s->file, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0666);
	region_close(&region);
}

struct creation {
	const char *path;
	_Atomic unsigned *ready;
};

static int create_at_once(int fd, void *argument)
{
	struct creation *c = argument;
	struct region region = REGION_NULL;
	int r;

	atomic_fetch_add(c->ready, 1);
	while (atomic_load(c->ready) < CREATORS)
		sched_yield();
	r = region_open(c->path, &region);
	child_say(fd, r == 0 ? region.inode : 0);
	if (r == 0)
		atomic_fetch_add(&region.file->own.devices[0].total, 1);
	region_close(&region);
	return r == 0 ? 0 : 1;
}

static void sixteen_processes_that_create_it_at_once_get_the_same(void **state)
{
	struct scratch *s = *state;
	struct creation creation = {.path = s->file, .ready = child_shared_memory(4096)};
	struct child children[CREATORS];
	struct region region = REGION_NULL;
	uint64_t inodes[CREATORS];

	for (int round = 0; round < 10; round++) {
		atomic_store(creation.ready, 0);
		for (int i = 0; i < CREATORS; i++)
			children[i] = child_start(create_at_once, &creation);
		for (int i = 0; i < CREATORS; i++) {
			inodes[i] = child_hear(children[i].fd);
			assert_int_equal(child_wait(&children[i]), 0);
			assert_int_equal(inodes[i], inodes[0]);
		}
		assert_int_equal(files_in(s->folder), 1);
		assert_int_equal(region_open(s->file, &region), 0);
		assert_int_equal(atomic_load(&region.file->own.devices[0].total), CREATORS);
		region_close(&region);
		assert_int_equal(unlink(s->file), 0);
	}
	munmap(creation.ready, 4096);
}

static void a_foreign_file_is_refused_and_left_as_it_is(void **state)
{
	struct scratch *s = *state;
	size_t size = sizeof(struct region_file);
	char *bytes = calloc(1, size);

	assert_non_null(bytes);
	write_file(s->file, bytes, size);
	refuse(s->file, REGION_E_FOREIGN);
	memset(bytes, 0xff, size);
	write_file(s->file, bytes, size);
	refuse(s->file, REGION_E_FOREIGN);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	write_file(s->file, bytes, size);
	refuse(s->file, REGION_E_FOREIGN);
	assert_int_equal(files_in(s->folder), 1);
	free(bytes);
}

static void a_truncated_region_is_refused_and_left_as_it_is(void **state)
{
	static const size_t sizes[] = {0, 1, 4, 4096, HAMI_SIZE_BYTES - 1, HAMI_SIZE_BYTES + 2,
		offsetof(struct region_file, own), offsetof(struct region_file, own) + 64,
		sizeof(struct region_file) / 2, sizeof(struct region_file) - 1};
	struct scratch *s = *state;
	char *bytes = right_bytes(s);

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		write_file(s->file, bytes, sizes[i]);
		refuse(s->file, REGION_E_TRUNCATED);
	}
	free(bytes);
}

static void a_region_of_hamis_own_library_is_foreign(void **state)
{
	struct scratch *s = *state;
	char *bytes = right_bytes(s);

	write_file(s->file, bytes, HAMI_SIZE_BYTES);
	refuse(s->file, REGION_E_FOREIGN);
	write_file(s->file, bytes, HAMI_SIZE_BYTES + 1);
	refuse(s->file, REGION_E_FOREIGN);
	memset(bytes + HAMI_SIZE_BYTES, 0, sizeof(struct region_file) - HAMI_SIZE_BYTES);
	write_file(s->file, bytes, sizeof(struct region_file));
	refuse(s->file, REGION_E_FOREIGN);
	free(bytes);
}

static void a_region_of_another_version_is_refused_and_left_as_it_is(void **state)
{
	size_t own = offsetof(struct region_file, own);
	struct scratch *s = *state;
	char *bytes = right_bytes(s);
	size_t size = sizeof(struct region_file);

	/* our version, then our size */
	bytes[own + 8] = REGION_VERSION + 1;
	write_file(s->file, bytes, size);
	refuse(s->file, REGION_E_VERSION);
	bytes[own + 8] = 0;
	write_file(s->file, bytes, size);
	refuse(s->file, REGION_E_VERSION);
	bytes[own + 8] = REGION_VERSION;
	bytes[own + 12] ^= 64;
	write_file(s->file, bytes, size);
	refuse(s->file, REGION_E_VERSION);
	bytes[own + 12] ^= 64;
	/* HAMi's magic, then its major version, then our magic */
	for (int i = 0; i < 3; i++) {
		size_t at = i == 0 ? 0 : i == 1 ? 4 : own;

		bytes[at] ^= 2;
		write_file(s->file, bytes, size);
		refuse(s->file, REGION_E_FOREIGN);
		bytes[at] ^= 2;
	}
	free(bytes);
}

static void a_symbolic_link_is_refused(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	char link[320];

	snprintf(link, sizeof(link), "%s/link", s->folder);
	assert_int_equal(symlink(s->file, link), 0);
	assert_int_equal(region_open(link, &region), -ELOOP);
	assert_int_equal(files_in(s->folder), 1);
	assert_int_equal(region_open(s->file, &region), 0);
	region_close(&region);
	assert_int_equal(region_open(link, &region), -ELOOP);
}

static void what_is_no_regular_file_is_refused_without_waiting(void **state)
{
	struct scratch *s = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct region region = REGION_NULL;
	int fd;

	assert_int_equal(mkfifo(s->file, 0666), 0);
	assert_int_equal(region_open(s->file, &region), REGION_E_FOREIGN);
	assert_int_equal(unlink(s->file), 0);
	assert_int_equal(region_open("/dev/null", &region), REGION_E_FOREIGN);
	assert_int_equal(region_open(s->folder, &region), -EISDIR);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(strlen(s->file) < sizeof(address.sun_path));
	memcpy(address.sun_path, s->file, strlen(s->file));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(region_open(s->file, &region), -ENXIO);
	close(fd);
	assert_null(region.file);
}

static int open_as_nobody(int fd, void *argument)
{
	struct region region = REGION_NULL;

	if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
		return 1;
	child_say(fd, (uint64_t)-region_open(argument, &region));
	region_close(&region);
	return 0;
}

/* What another user's region_open() returns, as -errno. */
static int opened_as_nobody(const struct scratch *s)
{
	struct child c = child_start(open_as_nobody, (void *)(uintptr_t)s->file);
	int r = -(int)child_hear(c.fd);

	assert_int_equal(child_wait(&c), 0);
	return r;
}

static void a_folder_that_cannot_be_written_is_an_error(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;

	if (getuid() == 0) {
		assert_int_equal(opened_as_nobody(s), -EACCES);
	} else {
		assert_int_equal(chmod(s->folder, 0500), 0);
		assert_int_equal(region_open(s->file, &region), -EACCES);
		assert_int_equal(chmod(s->folder, 0700), 0);
	}
	assert_int_equal(files_in(s->folder), 0);
}

static void another_user_may_open_it_but_not_if_it_is_read_only(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;

	if (getuid() != 0) {
		print_message("skipped: only root can become another user\n");
		skip();
	}
	assert_int_equal(region_open(s->file, &region), 0);
	region_close(&region);
	assert_int_equal(opened_as_nobody(s), 0);
	assert_int_equal(chmod(s->file, 0644), 0);
	assert_int_equal(opened_as_nobody(s), -EACCES);
}

static void a_missing_folder_and_a_long_path_are_errors(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	char path[5000];

	snprintf(path, sizeof(path), "%s/none/region", s->folder);
	assert_int_equal(region_open(path, &region), -ENOENT);
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(region_open(path, &region), -ENAMETOOLONG);
	assert_int_equal(region_open("", &region), -ENOENT);
	assert_int_equal(files_in(s->folder), 0);
}

static int open_on_full_file_system(int fd, void *argument)
{
	struct scratch *s = argument;
	struct region region = REGION_NULL;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", s->folder, "tmpfs", 0, "size=4k") < 0)
		return 77;
	return region_open(s->file, &region) < 0 ? 0 : 1;
}

static void a_full_file_system_is_an_error_and_not_a_signal(void **state)
{
	struct child c = child_start(open_on_full_file_system, *state);
	int status = child_wait(&c);

	if (status == 77) {
		print_message("skipped: no right to mount\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* No page of the file is there, and the file system has none left: an access of a mapping would be a signal. */
static int open_what_cannot_be_touched(int fd, void *argument)
{
	struct scratch *s = argument;
	struct region region = REGION_NULL;
	_cleanup_fd_ int file = -1, filler = -1;
	char path[600];

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("none", s->folder, "tmpfs", 0, "size=64k") < 0)
		return 77;
	snprintf(path, sizeof(path), "%s/filler", s->folder);
	file = open(s->file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	filler = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (file < 0 || filler < 0 || ftruncate(file, sizeof(struct region_file)) < 0 ||
		fallocate(filler, 0, 0, 65536) < 0)
		return 2;
	return region_open_existing(s->file, &region) == REGION_E_FOREIGN ? 0 : 1;
}

static void opening_touches_no_page_that_another_may_take_away(void **state)
{
	struct child c = child_start(open_what_cannot_be_touched, *state);
	int status = child_wait(&c);

	if (status == 77) {
		print_message("skipped: no right to mount\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* Whether a file of this name is mapped. */
static int is_mapped(int fd, void *argument)
{
	_cleanup_file_ FILE *maps = fopen("/proc/self/maps", "re");
	char line[1024];

	if (!maps)
		return 2;
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, argument))
			return 1;
	return 0;
}

static void the_mapping_is_not_inherited_by_fork(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	struct child c;

	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(is_mapped(-1, s->file), 1);
	c = child_start(is_mapped, s->file);
	assert_int_equal(child_wait(&c), 0);
	region_close(&region);
}

static void a_file_that_was_replaced_is_noticed(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL, other = REGION_NULL;
	int fd = -1;

	assert_int_equal(region_open(s->file, &region), 0);
	assert_int_equal(region_reopen(&region, &fd), 0);
	assert_true(fd >= 0 && fd != region.fd);
	close(fd);
	assert_int_equal(unlink(s->file), 0);
	fd = -1;
	assert_int_equal(region_reopen(&region, &fd), -ENOENT);
	assert_int_equal(region_open(s->file, &other), 0);
	assert_int_equal(region_reopen(&region, &fd), -ESTALE);
	assert_int_equal(fd, -1);
	region_close(&region);
	region_close(&other);
}

static void closing_twice_and_closing_nothing_is_fine(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;

	region_close(&region);
	assert_int_equal(region_open(s->file, &region), 0);
	region_drop_fd(&region);
	region_drop_fd(&region);
	assert_int_equal(region.fd, -1);
	assert_int_equal(region.file->own.version, REGION_VERSION);
	region_close(&region);
	region_close(&region);
	assert_null(region.file);
}

static void every_outcome_has_a_sentence(void **state)
{
	for (int r = REGION_E_FOREIGN; r <= REGION_E_VERSION; r++)
		assert_true(strlen(region_explain(r)) > 20);
	assert_string_equal(region_explain(-EACCES), strerror(EACCES));
	assert_string_equal(region_explain(0), "");
}

/* Who knows that a region is being made can be there first, and keep its maker from it. */
static void what_is_being_made_tells_nothing_of_its_name(void **state)
{
	struct scratch *s = *state;
	struct region region = REGION_NULL;
	union {
		struct inotify_event first;
		char bytes[4096];
	} buffer;
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), seen = 0;
	const char *name = strrchr(s->file, '/') + 1;
	ssize_t length;

	assert_true(inotify_add_watch(watch, s->folder, IN_CREATE) >= 0);
	assert_int_equal(region_open(s->file, &region), 0);
	region_close(&region);
	length = read(watch, &buffer, sizeof(buffer));
	assert_true(length > 0);
	for (ssize_t at = 0; at < length;) {
		const struct inotify_event *event =
			(const struct inotify_event *)(const void *)(buffer.bytes + at);

		if (strcmp(event->name, name) == 0)
			seen++;
		else
			assert_null(strstr(event->name, name));
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	assert_int_equal(seen, 1);
	close(watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCRATCH_TEST(a_region_is_made_once_and_then_shared),
		SCRATCH_TEST(users_of_one_container_may_all_write_it_whatever_the_umask),
		SCRATCH_TEST(sixteen_processes_that_create_it_at_once_get_the_same),
		SCRATCH_TEST(a_foreign_file_is_refused_and_left_as_it_is),
		SCRATCH_TEST(a_truncated_region_is_refused_and_left_as_it_is),
		SCRATCH_TEST(a_region_of_hamis_own_library_is_foreign),
		SCRATCH_TEST(a_region_of_another_version_is_refused_and_left_as_it_is),
		SCRATCH_TEST(a_symbolic_link_is_refused),
		SCRATCH_TEST(what_is_no_regular_file_is_refused_without_waiting),
		SCRATCH_TEST(a_folder_that_cannot_be_written_is_an_error),
		SCRATCH_TEST(another_user_may_open_it_but_not_if_it_is_read_only),
		SCRATCH_TEST(a_missing_folder_and_a_long_path_are_errors),
		SCRATCH_TEST(a_full_file_system_is_an_error_and_not_a_signal),
		SCRATCH_TEST(opening_touches_no_page_that_another_may_take_away),
		SCRATCH_TEST(the_mapping_is_not_inherited_by_fork),
		SCRATCH_TEST(a_file_that_was_replaced_is_noticed),
		SCRATCH_TEST(what_is_being_made_tells_nothing_of_its_name),
		SCRATCH_TEST(closing_twice_and_closing_nothing_is_fine),
		cmocka_unit_test(every_outcome_has_a_sentence),
	};

	return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
