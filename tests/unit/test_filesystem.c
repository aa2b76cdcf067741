/* SPDX-License-Identifier: Apache-2.0 */
/* Where a region may lie: what the file system is called, and that one of several machines is refused. */
#include "region/filesystem.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/overlay.h"
#include "tests/unit/scratch.h"

/* What files are made to lie on; 0: on nothing known. */
static unsigned faked_magic;

/* The C library's, for this program. */
int fstatfs(int fd, struct statfs *ret_s)
{
	*ret_s = (struct statfs){.f_type = (long)faked_magic};
	return 0;
}

static void the_usual_ones_have_names(void **state)
{
	faked_magic = 0x794c7630;
	assert_string_equal(filesystem_of(0)->name, "overlayfs");
	assert_true(filesystem_of(0)->drops_locks);
	faked_magic = 0xff534d42;
	assert_string_equal(filesystem_of(0)->name, "cifs");
	assert_true(filesystem_of(0)->is_remote);
	faked_magic = 4711;
	assert_string_equal(filesystem_of(0)->name, "unknown");
	assert_false(filesystem_of(0)->is_remote);
	assert_false(filesystem_of(0)->drops_locks);
}

static void a_path_without_a_file_lies_where_its_folder_is(void **state)
{
	assert_string_equal(filesystem_at("/dev/shm")->name, "tmpfs");
	assert_string_equal(filesystem_at("/dev/shm/a/b/c")->name, "tmpfs");
	assert_string_equal(filesystem_at("/nothing/is/here")->name, filesystem_at("/")->name);
	assert_string_equal(filesystem_at("/proc/x")->name, "unknown");
	assert_string_equal(filesystem_at("")->name, "unknown");
	assert_string_equal(filesystem_at("nothing")->name, "unknown");
}

static void a_file_system_of_several_machines_is_refused(void **state)
{
	static const unsigned remote[] = {0x6969, 0xff534d42, 0xfe534d42, 0x00c36400, 0x0bd00bd0};
	struct scratch *s = *state;
	struct region region = REGION_NULL;

	for (size_t i = 0; i < ARRAY_SIZE(remote); i++) {
		faked_magic = remote[i];
		assert_int_equal(region_open(s->file, &region), REGION_E_REMOTE);
		assert_int_equal(access(s->file, F_OK), -1);
		/* nothing is left there */
		assert_int_equal(rmdir(s->folder), 0);
		assert_int_equal(mkdir(s->folder, 0755), 0);
	}
	faked_magic = 0;
	assert_int_equal(region_open(s->file, &region), 0);
	region_close(&region);
	faked_magic = 0x6969;
	assert_int_equal(region_open(s->file, &region), REGION_E_REMOTE);
	assert_string_not_equal(region_explain(REGION_E_REMOTE), "");
}

static void what_cannot_be_is_foreseen(void **state)
{
	struct scratch *s = *state;
	const char *why;

	assert_int_equal(region_foresee(s->file), 0);
	assert_int_equal(region_foresee("/nothing/is/here"), -ENOENT);
	assert_int_equal(region_foresee("region"), 0);
	if (!overlay_mount(s->folder, &why)) {
		print_message("skipped: %s\n", why);
		skip();
	}
	assert_false(filesystem_is_read_only(s->file));
	assert_int_equal(mount(NULL, s->folder, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	assert_true(filesystem_is_read_only(s->file));
	assert_string_equal(filesystem_at(s->file)->name, "overlayfs");
	assert_int_equal(region_foresee(s->file), -EROFS);
	while (umount2(s->folder, MNT_DETACH) == 0)
		;
}

static void every_refusal_has_a_remedy(void **state)
{
	static const int refusals[] = {
		-EROFS, -ENOENT, -EACCES, -ENOSPC, -ELOOP, REGION_E_REMOTE, REGION_E_FOREIGN};

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		assert_non_null(strstr(region_remedy(refusals[i]), "elsewhere"));
	assert_non_null(strstr(region_remedy(-EROFS), "--tmpfs"));
}

/* The slot's words and the locks, as a process has them that has closed its descriptor. */
static void claim(const char *path, struct region *ret_region, unsigned *ret_slot)
{
	*ret_region = REGION_NULL;
	assert_int_equal(region_open(path, ret_region), 0);
	assert_int_equal(slot_claim(ret_region, ret_slot), 0);
	region_drop_fd(ret_region);
}

static void where_locks_last_there_is_no_token(void **state)
{
	char path[] = "/dev/shm/vgpu-test-XXXXXX";
	struct region region;
	unsigned slot;

	faked_magic = 0;
	assert_true(mkstemp(path) >= 0 && unlink(path) == 0);
	claim(path, &region, &slot);
	assert_null(region.token_page);
	assert_int_equal(atomic_load(&region.file->own.slots[slot].token_place), 0);
	region_close(&region);
	unlink(path);
}

static void where_they_are_known_to_go_or_cannot_be_tried_there_is_one(void **state)
{
	struct scratch *s = *state;
	struct region region, other;
	unsigned slot, reaped;
	int fd;

	faked_magic = 0x794c7630;
	claim(s->file, &region, &slot);
	assert_non_null(region.token_page);
	assert_true(atomic_load(&region.file->own.slots[slot].token_place) != 0);
	/* somebody has locked what is tried */
	faked_magic = 0;
	assert_int_equal(region_reopen(&region, &fd), 0);
	assert_int_equal(file_lock_byte(fd, REGION_LOCK_TRIAL + slot + 1), 0);
	claim(s->file, &other, &slot);
	assert_non_null(other.token_page);
	close(fd);
	assert_int_equal(slot_reap(&region, &reaped), 0);
	assert_int_equal(reaped, 0);
	region_close(&other);
	assert_int_equal(slot_reap(&region, &reaped), 0);
	assert_int_equal(reaped, 1);
	region_close(&region);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_usual_ones_have_names),
		cmocka_unit_test(a_path_without_a_file_lies_where_its_folder_is),
		SCRATCH_TEST(a_file_system_of_several_machines_is_refused),
		SCRATCH_TEST(what_cannot_be_is_foreseen),
		cmocka_unit_test(every_refusal_has_a_remedy),
		cmocka_unit_test(where_locks_last_there_is_no_token),
		SCRATCH_TEST(where_they_are_known_to_go_or_cannot_be_tried_there_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
