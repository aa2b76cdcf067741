/* SPDX-License-Identifier: Apache-2.0 */
/* What of a container's files stays, is put right and goes, whatever was done to them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/host/library.h"
#include "prepare_host.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/cmocka_ready.h"

static void what_is_in_the_place_of_a_file_goes(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	const char *region = p.region_file;
	char share[600];
	int fd;

	snprintf(share, sizeof(share), "%s/share", p.share_folder);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(mkdir(region, 0777), 0);
	assert_int_equal(unlink(share), 0);
	assert_int_equal(symlink(host.library, share), 0);
	host_restore();
	assert_int_equal(host_mode(region), S_IFREG | 0666);
	assert_int_equal(host_mode(share), S_IFREG | 0444);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(mkfifo(region, 0666), 0);
	host_restore();
	assert_int_equal(host_mode(region), S_IFREG | 0666);
	fd = open(host.library, O_RDONLY);
	assert_true(fd >= 0);
	close(fd);
}

static void overwrite(const char *path, off_t at, const void *bytes, size_t count)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, count, at), count);
	close(fd);
}

static void what_a_tenant_has_broken_is_made_anew(void **state)
{
	static const char *const live[] = {POD};
	struct prepared p = host_prepare(POD, "main");
	struct region region = REGION_NULL;
	static char junk[100000];

	memset(junk, 0xa5, sizeof(junk));
	overwrite(p.region_file, 0, junk, sizeof(junk));
	overwrite(p.records[0], 0, junk, 4096);
	host_collect(live, 1);
	host_restore();
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	region_close(&region);
	assert_int_equal(truncate(p.region_file, 77), 0);
	assert_int_equal(truncate(p.records[0], 1), 0);
	host_prepare(POD, "main");
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	region_close(&region);
}

/* Its container has the library of that version mounted, which reads no other. */
static void a_region_of_another_version_stays(void **state)
{
	static const uint32_t version = 77;
	struct prepared p = host_prepare(POD, "main");
	struct stat before, after;

	overwrite(p.region_file, offsetof(struct region_file, own.version), &version,
		sizeof(version));
	assert_int_equal(stat(p.region_file, &before), 0);
	host_forget_boot();
	host_restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void what_lies_in_the_folder_is_not_followed(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	struct stat before, after;
	char path[700];

	assert_int_equal(stat(host.library, &before), 0);
	snprintf(path, sizeof(path), "%s/link.cache", p.region_folder);
	assert_int_equal(symlink(host.library, path), 0);
	snprintf(path, sizeof(path), "%s/hard", p.region_folder);
	assert_int_equal(link(host.library, path), 0);
	snprintf(path, sizeof(path), "%s/fifo", p.region_folder);
	assert_int_equal(mkfifo(path, 0666), 0);
	assert_int_equal(unlink(p.records[0]), 0);
	assert_int_equal(symlink(host.library, p.records[0]), 0);
	host_prepare(POD, "main");
	assert_int_equal(host_mode(p.records[0]), S_IFREG | 0666);
	assert_int_equal(unlink(p.records[0]), 0);
	assert_int_equal(link(host.library, p.records[0]), 0);
	host_prepare(POD, "main");
	assert_int_equal(symlink("/", path), 0);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	assert_int_equal(host_count("hook/vgpu/containers"), 0);
	assert_int_equal(stat(host.library, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mode, after.st_mode);
	assert_int_equal(after.st_nlink, 1);
}

static void what_belongs_to_pods_that_are_gone_goes(void **state)
{
	static const char *const live[] = {OTHER};

	host_prepare(POD, "main");
	host_prepare(OTHER, "main");
	host_collect(live, 1); /* too young */
	assert_int_equal(host_count("state/containers"), 2);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(live, 1);
	/* listed just now, so the list may be older than its end */
	host_collect(NULL, 0);
	assert_int_equal(host_count("state/containers"), 1);
	assert_int_equal(host_count("state/shares"), 1);
	assert_int_equal(host_count("hook/vgpu/containers"), 1);
	assert_int_equal(host_count("run/turns/" DEVICE_A), 1);
}

/* The kubelet's record has names alone. */
static void what_the_kubelet_alone_knows_stays(void **state)
{
	static const struct prepare_name others = {"default", "another"};
	const struct prepare_pods of_another = {.names = &others, .name_count = 1};
	const struct prepare_pods of_it = {.names = &host_name, .name_count = 1};

	host_prepare(POD, "main");
	host_age(PREPARE_YOUNG_S + 1);
	host_collect_pods(&of_it);
	host_collect(NULL, 0); /* the kubelet had it just now */
	assert_int_equal(host_count("state/containers"), 1);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect_pods(&of_another);
	assert_int_equal(host_count("state/containers"), 0);
}

/* An earlier version has kept no name: it may be the pod that the kubelet has. */
static void one_whose_name_is_not_known_may_be_any(void **state)
{
	static const struct prepare_name others = {"default", "another"};
	const struct prepare_pods of_another = {.names = &others, .name_count = 1};

	host_prepare(POD, "main");
	host_forget_name();
	host_age(PREPARE_YOUNG_S + 1);
	host_collect_pods(&of_another);
	assert_int_equal(host_count("state/containers"), 1);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	assert_int_equal(host_count("state/containers"), 0);
}

static void a_start_of_the_plugin_prolongs_nothing(void **state)
{
	host_prepare(POD, "main");
	host_age(PREPARE_YOUNG_S + 1);
	host_restore();
	host_collect(NULL, 0);
	assert_int_equal(host_count("state/containers"), 0);
}

static void a_container_with_a_living_process_stays(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	struct region region = REGION_NULL;
	unsigned slot;

	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	assert_int_equal(host_count("hook/vgpu/containers"), 1);
	region_close(&region);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	assert_int_equal(host_count("hook/vgpu/containers"), 0);
	assert_int_equal(host_count("state/containers"), 0);
}

static void what_is_too_large_is_cut(void **state)
{
	static const char *const live[] = {POD};
	struct prepared p = host_prepare(POD, "main");
	struct region region = REGION_NULL;
	struct stat region_file, record;

	assert_int_equal(truncate(p.region_file, (off_t)1 << 30), 0);
	assert_int_equal(truncate(p.records[0], (off_t)1 << 30), 0);
	host_collect(live, 1);
	assert_int_equal(stat(p.region_file, &region_file), 0);
	assert_int_equal(stat(p.records[0], &record), 0);
	assert_in_range(region_file.st_size, sizeof(struct region_file), 16 << 20);
	assert_in_range(record.st_size, 12288, 1 << 20);
	/* and what is in it stays */
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	region_close(&region);
}

/* Whoever is root in a container may make a program of root's of its files. */
static void a_container_leaves_no_program_of_roots(void **state)
{
	static const char *const live[] = {POD};
	struct prepared p = host_prepare(POD, "main");

	assert_int_equal(chmod(p.region_file, 06755), 0);
	assert_int_equal(chmod(p.records[0], 06755), 0);
	host_collect(live, 1);
	assert_int_equal(host_mode(p.region_file), S_IFREG | 0666);
	assert_int_equal(host_mode(p.records[0]), S_IFREG | 0666);
}

static void no_path_in_a_region_is_read(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	struct region region = REGION_NULL;
	struct region_own *own;
	struct stat s;
	char events[1024];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	assert_int_equal(stat(host.library, &s), 0);
	own = &region.file->own;
	snprintf(own->shared_path, sizeof(own->shared_path), "%s", host.library);
	own->shared[0].file_device = s.st_dev;
	own->shared[0].file_inode = s.st_ino;
	own->shared[0].mark = own->shared[0].word = 1;
	own->shared_high = 1;
	assert_true(inotify_add_watch(watch, host.library, IN_OPEN) >= 0);
	host_collect(NULL, 0);
	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(errno, EAGAIN);
	region_close(&region);
	close(watch);
}

static void a_library_stays_while_a_container_has_it(void **state)
{
	static const char *const live[] = {POD};
	struct err err = ERR_NULL;

	host_prepare(POD, "main");
	host.settings.version = "2";
	assert_int_equal(library_install(host.state, host.hook, "2", host.library, &err), 0);
	host_collect(live, 1);
	assert_int_equal(host_count("state/libraries"), 2);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	assert_int_equal(host_count("state/libraries"), 1);
	/* version 2, ld.so.preload and the containers' folder */
	assert_int_equal(host_count("hook/vgpu"), 3);
}

static void a_version_with_another_content_is_replaced_by_the_images(void **state)
{
	struct err err = ERR_NULL;
	char path[256], text[64];
	struct stat before, after;
	size_t length;
	FILE *file;
	int fd;

	snprintf(path, sizeof(path), "%s/libvgpu.so.1", host.hook);
	fd = open(path, O_RDONLY);
	assert_int_equal(fstat(fd, &before), 0);
	file = fopen(host.library, "w");
	fputs("\177ELF of another image", file);
	fclose(file);
	assert_int_equal(library_install(host.state, host.hook, "1", host.library, &err), 0);
	assert_int_equal(file_read(path, text, sizeof(text), &length), 0);
	assert_string_equal(text, "\177ELF of another image");
	/* and who has the old one keeps it */
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	assert_int_equal(after.st_size, before.st_size);
	close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_in_the_place_of_a_file_goes),
		TEST(what_a_tenant_has_broken_is_made_anew),
		TEST(a_region_of_another_version_stays),
		TEST(what_lies_in_the_folder_is_not_followed),
		TEST(what_belongs_to_pods_that_are_gone_goes),
		TEST(what_the_kubelet_alone_knows_stays),
		TEST(one_whose_name_is_not_known_may_be_any),
		TEST(a_start_of_the_plugin_prolongs_nothing),
		TEST(a_container_with_a_living_process_stays),
		TEST(what_is_too_large_is_cut),
		TEST(a_container_leaves_no_program_of_roots),
		TEST(no_path_in_a_region_is_read),
		TEST(a_library_stays_while_a_container_has_it),
		TEST(a_version_with_another_content_is_replaced_by_the_images),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
