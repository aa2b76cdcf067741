/* SPDX-License-Identifier: Apache-2.0 */
/* Which file an address lies in, and whose it is. */
#include "tenant/driver/own_nvml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tenant/driver/symbols.h"
#include "tests/unit/cmocka_ready.h"

/* Only own_nvml_open() asks for it. */
struct libc_symbols symbols_found;
_Atomic bool symbols_are_found;

bool symbols_find_libc(void)
{
	return false;
}

static void a_mapped_file_is_found_by_its_own_name(void **state)
{
	char path[PATH_MAX], whole[PATH_MAX], found[PATH_MAX], link_path[PATH_MAX];
	const char *tmp = getenv("TMPDIR");
	int fd, probe = 0;
	char *at;

	assert_non_null(realpath("/proc/self/exe", whole));
	assert_int_equal(own_nvml_find_file((void *)(uintptr_t)symbols_find_libc, found), 0);
	assert_string_equal(found, whole);
	assert_int_equal(own_nvml_find_file(&probe, found), -ESRCH);
	assert_int_equal(own_nvml_find_file(NULL, found), -ESRCH);
	/* mapped by a link, which then is not there */
	snprintf(path, sizeof(path), "%s/own_nvml.%d", tmp ? tmp : "/tmp", getpid());
	snprintf(link_path, sizeof(link_path), "%.4000s.link", path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	assert_int_equal(symlink(path, link_path), 0);
	fd = open(link_path, O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED && close(fd) == 0 && unlink(link_path) == 0);
	assert_int_equal(own_nvml_find_file(at, found), 0);
	assert_non_null(realpath(path, whole));
	assert_string_equal(found, whole);
	assert_int_equal(unlink(path), 0);
	munmap(at, 1);
}

static void what_others_may_write_to_is_not_roots(void **state)
{
	char libc[PATH_MAX], kept[PATH_MAX], path[PATH_MAX];
	const char *tmp = getenv("TMPDIR");
	int fd;

	assert_int_equal(own_nvml_find_file((void *)(uintptr_t)strlen, libc), 0);
	strcpy(kept, libc);
	assert_true(own_nvml_is_roots(libc));
	assert_string_equal(libc, kept);
	snprintf(path, sizeof(path), "%s/own_nvml.%d", tmp ? tmp : "/tmp", getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && fchmod(fd, 0620) == 0 && close(fd) == 0);
	assert_false(own_nvml_is_roots(path));
	assert_int_equal(unlink(path), 0);
	assert_false(own_nvml_is_roots(path));
	strcpy(path, "relative");
	assert_false(own_nvml_is_roots(path));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapped_file_is_found_by_its_own_name),
		cmocka_unit_test(what_others_may_write_to_is_not_roots),
	};

	return cmocka_run_group_tests_name("own_nvml", tests, NULL, NULL);
}
