/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin makes on the host for a container, keeps, makes again and removes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/library.h"
#include "prepare_host.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/overlay.h"

static struct host host;

static int setup(void **state)
{
	host_make(&host);
	return 0;
}

static int teardown(void **state)
{
	host_remove(&host);
	return 0;
}

static struct prepared prepare(const char *pod_uid, const char *container)
{
	struct share share = host_share(&host, pod_uid, container);
	struct prepare_request request = {pod_uid, container, &share};
	struct prepared prepared;
	struct err err = ERR_NULL;

	if (prepare_container(&host.settings, &request, &prepared, &err) < 0)
		fail_msg("%s", err.text);
	return prepared;
}

static void restore(void)
{
	struct err err = ERR_NULL;
	unsigned failed;

	if (prepare_restore(&host.settings, &failed, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(failed, 0);
}

static void collect(const char *const *pod_uids, size_t count)
{
	static const char *const none[] = {NULL};
	struct err err = ERR_NULL;

	if (prepare_collect(&host.settings, pod_uids ? pod_uids : none, count, &err) < 0)
		fail_msg("%s", err.text);
}

static unsigned mode_of(const char *path)
{
	struct stat s;

	if (lstat(path, &s) < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(s.st_uid, geteuid());
	return s.st_mode;
}

static void all_that_is_mounted_is_there(void **state)
{
	struct prepared p = prepare(POD, "main");
	struct region opened = REGION_NULL;

	/* What is writable is a file, and no folder is anybody else's. */
	assert_int_equal(mode_of(p.library), S_IFREG | 0755);
	assert_int_equal(mode_of(p.preload), S_IFREG | 0644);
	assert_int_equal(mode_of(p.region_folder), S_IFDIR | 0755);
	assert_int_equal(mode_of(p.region_file), S_IFREG | 0666);
	assert_int_equal(mode_of(p.share_folder), S_IFDIR | 0755);
	assert_int_equal(mode_of(p.lock_folder), S_IFDIR | 0755);
	assert_int_equal(mode_of(p.turns_folder), S_IFDIR | 0755);
	assert_int_equal(mode_of(p.records[0]), S_IFREG | 0666);
	assert_int_equal(region_open_existing(p.region_file, &opened), 0);
	region_close(&opened);
}

static void the_share_is_there_for_the_library(void **state)
{
	struct share share, wanted = host_share(&host, POD, "main");
	struct prepared p = prepare(POD, "main");
	char path[600], text[SHARE_FILE_BYTES];
	struct share_fault fault;
	size_t length;

	snprintf(path, sizeof(path), "%s/share", p.share_folder);
	assert_int_equal(mode_of(path), S_IFREG | 0444);
	assert_int_equal(file_read(path, text, sizeof(text), &length), 0);
	assert_int_equal(share_parse(text, length, &share, &fault), 0);
	assert_int_equal(share_memory_bytes(&share, DEVICE_A), 1u << 30);
	assert_int_equal(share_memory_bytes(&share, DEVICE_B), 0);
	assert_string_equal(share.region, wanted.region);
	assert_string_equal(share.slice, wanted.slice);
}

static void a_second_call_finds_the_region_of_the_first(void **state)
{
	char unique[CONTAINER_CACHE_BYTES];
	struct prepared first, second;
	struct stat before, after;

	assert_int_equal(prepare_find_unique(&host.settings, POD, "main", unique), -ENOENT);
	first = prepare(POD, "main");
	assert_int_equal(stat(first.region_file, &before), 0);
	assert_int_equal(prepare_find_unique(&host.settings, POD, "main", unique), 0);
	assert_non_null(strstr(first.region_file, unique));
	second = prepare(POD, "main");
	assert_memory_equal(&first, &second, sizeof(first));
	assert_int_equal(stat(first.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void containers_have_nothing_in_common(void **state)
{
	struct prepared a = prepare(POD, "a"), b = prepare(POD, "b"), c = prepare(OTHER, "a");

	assert_string_not_equal(a.region_folder, b.region_folder);
	assert_string_not_equal(a.region_folder, c.region_folder);
	assert_string_not_equal(a.share_folder, b.share_folder);
	assert_string_not_equal(a.share_folder, c.share_folder);
	assert_string_not_equal(a.records[0], b.records[0]);
}

static void refuse(const char *pod_uid, const char *container, const struct share *share)
{
	struct prepare_request request = {pod_uid, container, share};
	struct prepared prepared;
	struct err err = ERR_NULL;

	assert_int_equal(prepare_container(&host.settings, &request, &prepared, &err), -EINVAL);
	assert_true(err.text[0]);
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *pod, *container;
	} wrong[] = {{"", "a"}, {POD, ""}, {"../../etc", "a"}, {POD, "a/b"}, {POD, ".."},
		{POD, "a_b"}, {".pod", "a"}, {POD, "a\nb"}};
	static const char *const uuids[] = {"../x", "*", "a b", ".x"};
	static const char *const regions[] = {"/etc/x.cache", "%s/../x.cache", "%s/.cache", "%s/x",
		"%sx/a.cache", "%s/.x.cache",
		"%s/0123456789-123456789-123456789-123456789-12.cache"};
	struct share right = host_share(&host, POD, "a"), share;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		refuse(wrong[i].pod, wrong[i].container, &right);
	for (size_t i = 0; i < sizeof(uuids) / sizeof(*uuids); i++) {
		share = right;
		strcpy(share.devices[0].uuid, uuids[i]);
		refuse(POD, "a", &share);
	}
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++) {
		const char *behind = strncmp(regions[i], "%s", 2) ? NULL : regions[i] + 2;

		share = right;
		snprintf(share.region, sizeof(share.region), "%s%s",
			behind ? host.hook : regions[i], behind ? behind : "");
		refuse(POD, "a", &share);
	}
	share = right;
	share.device_count = 0;
	refuse(POD, "a", &share);
	assert_int_equal(host_count(&host, "state/containers"), 0);
}

static void nothing_is_handed_out_without_the_library(void **state)
{
	static const char *const files[] = {"libvgpu.so.1", "ld.so.preload"};

	for (unsigned i = 0; i < 2; i++) {
		struct share share = host_share(&host, POD, "a");
		struct prepare_request request = {POD, "a", &share};
		struct prepared prepared;
		struct err err = ERR_NULL;
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", host.hook, files[i]);
		assert_int_equal(unlink(path), 0);
		assert_int_equal(
			prepare_container(&host.settings, &request, &prepared, &err), -ENOENT);
		/* what a runtime makes of a file that it misses */
		assert_int_equal(mkdir(path, 0755), 0);
		assert_int_equal(
			prepare_container(&host.settings, &request, &prepared, &err), -EPERM);
		assert_int_equal(
			library_install(host.state, host.hook, "1", host.library, &err), 0);
		prepare(POD, "a");
	}
}

static void all_is_made_again_after_a_restart_of_the_machine(void **state)
{
	struct prepared p = prepare(POD, "main");
	char command[512];

	snprintf(command, sizeof(command), "rm -rf %s/run %s/hook/vgpu/containers %s/shares",
		host.root, host.root, host.state);
	assert_int_equal(system(command), 0);
	restore();
	mode_of(p.region_file);
	mode_of(p.records[0]);
	mode_of(p.share_folder);
}

static void what_is_in_the_place_of_a_file_goes(void **state)
{
	struct prepared p = prepare(POD, "main");
	const char *region = p.region_file;
	char share[600];
	int fd;

	snprintf(share, sizeof(share), "%s/share", p.share_folder);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(mkdir(region, 0777), 0);
	assert_int_equal(unlink(share), 0);
	assert_int_equal(symlink(host.library, share), 0);
	restore();
	assert_int_equal(mode_of(region), S_IFREG | 0666);
	assert_int_equal(mode_of(share), S_IFREG | 0444);
	assert_int_equal(unlink(region), 0);
	assert_int_equal(mkfifo(region, 0666), 0);
	restore();
	assert_int_equal(mode_of(region), S_IFREG | 0666);
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
	struct prepared p = prepare(POD, "main");
	struct region region = REGION_NULL;
	static char junk[100000];

	memset(junk, 0xa5, sizeof(junk));
	overwrite(p.region_file, 0, junk, sizeof(junk));
	overwrite(p.records[0], 0, junk, 4096);
	collect(live, 1);
	restore();
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	region_close(&region);
	assert_int_equal(truncate(p.region_file, 77), 0);
	assert_int_equal(truncate(p.records[0], 1), 0);
	prepare(POD, "main");
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	region_close(&region);
}

/* Its container has the library of that version mounted, which reads no other. */
static void a_region_of_another_version_stays(void **state)
{
	static const uint32_t version = 77;
	struct prepared p = prepare(POD, "main");
	struct stat before, after;

	overwrite(p.region_file, offsetof(struct region_file, own.version), &version,
		sizeof(version));
	assert_int_equal(stat(p.region_file, &before), 0);
	host_forget_boot(&host);
	restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void books_are_begun_anew_when_the_machine_was_restarted(void **state)
{
	struct prepared p = prepare(POD, "main");
	struct region region = REGION_NULL;
	struct stat before, after;
	unsigned slot;

	assert_int_equal(stat(p.region_file, &before), 0);
	restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	/* Not under a process that began before this plugin. */
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	host_forget_boot(&host);
	restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	region_close(&region);
	host_forget_boot(&host);
	restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
}

static void what_lies_in_the_folder_is_not_followed(void **state)
{
	struct prepared p = prepare(POD, "main");
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
	prepare(POD, "main");
	assert_int_equal(mode_of(p.records[0]), S_IFREG | 0666);
	assert_int_equal(unlink(p.records[0]), 0);
	assert_int_equal(link(host.library, p.records[0]), 0);
	prepare(POD, "main");
	assert_int_equal(symlink("/", path), 0);
	host_age(&host, PREPARE_YOUNG_S + 1);
	collect(NULL, 0);
	assert_int_equal(host_count(&host, "hook/vgpu/containers"), 0);
	assert_int_equal(stat(host.library, &after), 0);
	assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
	assert_int_equal(before.st_size, after.st_size);
	assert_int_equal(before.st_mode, after.st_mode);
	assert_int_equal(after.st_nlink, 1);
}

/* On an overlay, in a process of its own, which has the mount alone. */
static int restore_on_overlay(void)
{
	struct err err = ERR_NULL;
	const char *why;
	unsigned failed;

	if (!overlay_mount(host.hook, &why))
		return OVERLAY_SKIPPED;
	return prepare_restore(&host.settings, &failed, &err) == -EOPNOTSUPP && err.text[0] ? 0 : 1;
}

static void a_place_that_drops_locks_is_refused(void **state)
{
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(restore_on_overlay());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == OVERLAY_SKIPPED)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void what_belongs_to_pods_that_are_gone_goes(void **state)
{
	static const char *const live[] = {OTHER};
	struct err err = ERR_NULL;

	prepare(POD, "main");
	prepare(OTHER, "main");
	collect(live, 1); /* too young */
	assert_int_equal(host_count(&host, "state/containers"), 2);
	host_age(&host, PREPARE_YOUNG_S + 1);
	/* nobody knows which pods there are */
	assert_int_equal(prepare_collect(&host.settings, NULL, 0, &err), 0);
	assert_int_equal(host_count(&host, "state/containers"), 2);
	host_age(&host, PREPARE_YOUNG_S + 1);
	collect(live, 1);
	/* listed just now, so the list may be older than its end */
	collect(NULL, 0);
	assert_int_equal(host_count(&host, "state/containers"), 1);
	assert_int_equal(host_count(&host, "state/shares"), 1);
	assert_int_equal(host_count(&host, "hook/vgpu/containers"), 1);
	assert_int_equal(host_count(&host, "run/turns/" DEVICE_A), 1);
}

static void a_container_with_a_living_process_stays(void **state)
{
	struct prepared p = prepare(POD, "main");
	struct region region = REGION_NULL;
	unsigned slot;

	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	host_age(&host, PREPARE_YOUNG_S + 1);
	collect(NULL, 0);
	assert_int_equal(host_count(&host, "hook/vgpu/containers"), 1);
	region_close(&region);
	host_age(&host, PREPARE_YOUNG_S + 1);
	collect(NULL, 0);
	assert_int_equal(host_count(&host, "hook/vgpu/containers"), 0);
	assert_int_equal(host_count(&host, "state/containers"), 0);
}

static void what_is_too_large_is_cut(void **state)
{
	static const char *const live[] = {POD};
	struct prepared p = prepare(POD, "main");
	struct region region = REGION_NULL;
	struct stat region_file, record;

	assert_int_equal(truncate(p.region_file, (off_t)1 << 30), 0);
	assert_int_equal(truncate(p.records[0], (off_t)1 << 30), 0);
	collect(live, 1);
	assert_int_equal(stat(p.region_file, &region_file), 0);
	assert_int_equal(stat(p.records[0], &record), 0);
	assert_in_range(region_file.st_size, sizeof(struct region_file), 16 << 20);
	assert_in_range(record.st_size, 12288, 1 << 20);
	/* and what is in it stays */
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	region_close(&region);
}

static unsigned mode_below(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", host.root, folder);
	return mode_of(path);
}

static void users_of_the_host_reach_no_file_that_a_container_can_write_to(void **state)
{
	prepare(POD, "main");
	assert_int_equal(mode_below("hook/vgpu/containers"), S_IFDIR | 0700);
	assert_int_equal(mode_below("run"), S_IFDIR | 0700);
	/* nor is anything closed that is not ours */
	assert_int_equal(mode_below("hook"), S_IFDIR | 0755);
}

/* Whoever is root in a container may make a program of root's of its files. */
static void a_container_leaves_no_program_of_roots(void **state)
{
	static const char *const live[] = {POD};
	struct prepared p = prepare(POD, "main");

	assert_int_equal(chmod(p.region_file, 06755), 0);
	assert_int_equal(chmod(p.records[0], 06755), 0);
	collect(live, 1);
	assert_int_equal(mode_of(p.region_file), S_IFREG | 0666);
	assert_int_equal(mode_of(p.records[0]), S_IFREG | 0666);
}

static void no_path_in_a_region_is_read(void **state)
{
	struct prepared p = prepare(POD, "main");
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
	collect(NULL, 0);
	assert_int_equal(read(watch, events, sizeof(events)), -1);
	assert_int_equal(errno, EAGAIN);
	region_close(&region);
	close(watch);
}

static void a_library_stays_while_a_container_has_it(void **state)
{
	static const char *const live[] = {POD};
	struct err err = ERR_NULL;

	prepare(POD, "main");
	host.settings.version = "2";
	assert_int_equal(library_install(host.state, host.hook, "2", host.library, &err), 0);
	collect(live, 1);
	assert_int_equal(host_count(&host, "state/libraries"), 2);
	host_age(&host, PREPARE_YOUNG_S + 1);
	collect(NULL, 0);
	assert_int_equal(host_count(&host, "state/libraries"), 1);
	/* version 2, ld.so.preload and the containers' folder */
	assert_int_equal(host_count(&host, "hook/vgpu"), 3);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_that_is_mounted_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_share_is_there_for_the_library, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_second_call_finds_the_region_of_the_first, setup, teardown),
		cmocka_unit_test_setup_teardown(containers_have_nothing_in_common, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_is_handed_out_without_the_library, setup, teardown),
		cmocka_unit_test_setup_teardown(
			all_is_made_again_after_a_restart_of_the_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_is_in_the_place_of_a_file_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_a_tenant_has_broken_is_made_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(a_region_of_another_version_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(
			books_are_begun_anew_when_the_machine_was_restarted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_lies_in_the_folder_is_not_followed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_place_that_drops_locks_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_belongs_to_pods_that_are_gone_goes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_container_with_a_living_process_stays, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_too_large_is_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(
			users_of_the_host_reach_no_file_that_a_container_can_write_to, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_container_leaves_no_program_of_roots, setup, teardown),
		cmocka_unit_test_setup_teardown(no_path_in_a_region_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_library_stays_while_a_container_has_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_version_with_another_content_is_replaced_by_the_images, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
