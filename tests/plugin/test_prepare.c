/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin makes on the host for a container, changes, and makes again after a restart. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/host/library.h"
#include "prepare_host.h"
#include "region/region.h"
#include "region/slot.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/overlay.h"

static void all_that_is_mounted_is_there(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	struct region opened = REGION_NULL;

	/* What is writable is a file, and no folder is anybody else's. */
	assert_int_equal(host_mode(p.library), S_IFREG | 0755);
	assert_int_equal(host_mode(p.preload), S_IFREG | 0644);
	assert_int_equal(host_mode(p.region_folder), S_IFDIR | 0755);
	assert_int_equal(host_mode(p.region_file), S_IFREG | 0666);
	assert_int_equal(host_mode(p.share_folder), S_IFDIR | 0755);
	assert_int_equal(host_mode(p.lock_folder), S_IFDIR | 0755);
	assert_int_equal(host_mode(p.turns_folder), S_IFDIR | 0755);
	assert_int_equal(host_mode(p.records[0]), S_IFREG | 0666);
	assert_int_equal(region_open_existing(p.region_file, &opened), 0);
	region_close(&opened);
}

static void the_share_is_there_for_the_library(void **state)
{
	struct share share, wanted = host_share(POD, "main");
	struct prepared p = host_prepare(POD, "main");
	char path[600], text[SHARE_FILE_BYTES];
	struct share_fault fault;
	size_t length;

	snprintf(path, sizeof(path), "%s/share", p.share_folder);
	assert_int_equal(host_mode(path), S_IFREG | 0444);
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
	first = host_prepare(POD, "main");
	assert_int_equal(stat(first.region_file, &before), 0);
	assert_int_equal(prepare_find_unique(&host.settings, POD, "main", unique), 0);
	assert_non_null(strstr(first.region_file, unique));
	second = host_prepare(POD, "main");
	assert_memory_equal(&first, &second, sizeof(first));
	assert_int_equal(stat(first.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void containers_have_nothing_in_common(void **state)
{
	struct prepared a = host_prepare(POD, "a"), b = host_prepare(POD, "b"),
			c = host_prepare(OTHER, "a");

	assert_string_not_equal(a.region_folder, b.region_folder);
	assert_string_not_equal(a.region_folder, c.region_folder);
	assert_string_not_equal(a.share_folder, b.share_folder);
	assert_string_not_equal(a.share_folder, c.share_folder);
	assert_string_not_equal(a.records[0], b.records[0]);
}

static void refuse(const char *pod_uid, const char *container, const struct share *share)
{
	struct prepare_request request = {
		.pod_uid = pod_uid, .container = container, .share = share};
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
	struct share right = host_share(POD, "a"), share;

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
	assert_int_equal(host_count("state/containers"), 0);
}

static void nothing_is_handed_out_without_the_library(void **state)
{
	static const char *const files[] = {"libvgpu.so.1", "ld.so.preload"};

	for (unsigned i = 0; i < 2; i++) {
		struct share share = host_share(POD, "a");
		struct prepare_request request = {
			.pod_uid = POD, .container = "a", .share = &share};
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
		host_prepare(POD, "a");
	}
}

static void all_is_made_again_after_a_restart_of_the_machine(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	char command[512];

	snprintf(command, sizeof(command), "rm -rf %s/run %s/hook/vgpu/containers %s/shares",
		host.root, host.root, host.state);
	assert_int_equal(system(command), 0);
	host_restore();
	host_mode(p.region_file);
	host_mode(p.records[0]);
	host_mode(p.share_folder);
}

/* Of an Allocate that was not answered before a power cut, the file may be empty. */
static void what_a_power_cut_has_left_goes(void **state)
{
	char command[512];

	host_prepare(POD, "main");
	snprintf(command, sizeof(command), ": > %s/containers/" POD "_main.json", host.state);
	assert_int_equal(system(command), 0);
	host_restore();
	assert_int_equal(host_count("state/containers"), 0);
	assert_int_equal(host_count("state/shares"), 0);
	assert_int_equal(host_count("hook/vgpu/containers"), 0);
	host_prepare(POD, "main");
	host_restore();
	assert_int_equal(host_count("state/containers"), 1);
}

static void books_are_begun_anew_when_the_machine_was_restarted(void **state)
{
	struct prepared p = host_prepare(POD, "main");
	struct region region = REGION_NULL;
	struct stat before, after;
	unsigned slot;

	assert_int_equal(stat(p.region_file, &before), 0);
	host_restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	/* Not under a process that began before this plugin. */
	assert_int_equal(region_open_existing(p.region_file, &region), 0);
	assert_int_equal(slot_claim(&region, &slot), 0);
	host_forget_boot();
	host_restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	region_close(&region);
	host_forget_boot();
	host_restore();
	assert_int_equal(stat(p.region_file, &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
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

static unsigned mode_below(const char *folder)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", host.root, folder);
	return host_mode(path);
}

static void users_of_the_host_reach_no_file_that_a_container_can_write_to(void **state)
{
	host_prepare(POD, "main");
	assert_int_equal(mode_below("hook/vgpu/containers"), S_IFDIR | 0700);
	assert_int_equal(mode_below("run"), S_IFDIR | 0700);
	/* nor is anything closed that is not ours */
	assert_int_equal(mode_below("hook"), S_IFDIR | 0755);
}

/* The share alone changes, for processes that have it mounted, and what is made of it again. */
static void a_slice_that_runs_is_resized(void **state)
{
	struct prepared prepared = host_prepare(POD, "main");
	struct share_device device = {.uuid = DEVICE_A,
		.memory_bytes = 1u << 29,
		.compute = {.cores_permille = 300, .cap_permille = 300}};
	struct prepare_resized resized = {POD, "main", &device, 1};
	struct err err = ERR_NULL;
	struct file_identity region, now;
	struct share_fault fault;
	struct share share;
	char path[600], text[SHARE_FILE_BYTES];
	bool has_changed;
	size_t length;

	snprintf(path, sizeof(path), "%s/share", prepared.share_folder);
	assert_int_equal(file_identify_path(prepared.region_file, &region), 0);
	assert_int_equal(prepare_resize(&host.settings, &resized, &has_changed, &err), 0);
	assert_true(has_changed);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(file_read(path, text, sizeof(text), &length), 0);
		assert_int_equal(share_parse(text, length, &share, &fault), 0);
		assert_int_equal(share_memory_bytes(&share, DEVICE_A), 1u << 29);
		assert_int_equal(share.devices[0].compute.cap_permille, 300);
		assert_int_equal(unlink(path), 0);
		host_restore();
	}
	assert_int_equal(file_identify_path(prepared.region_file, &now), 0);
	assert_int_equal(region.inode, now.inode);
	assert_int_equal(prepare_resize(&host.settings, &resized, &has_changed, &err), 0);
	assert_false(has_changed);
	strcpy(device.uuid, DEVICE_B);
	assert_int_equal(prepare_resize(&host.settings, &resized, &has_changed, &err), -EINVAL);
	resized.container = "other";
	assert_int_equal(prepare_resize(&host.settings, &resized, &has_changed, &err), -ENOENT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, host_setup, host_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_power_cut_has_left_goes),
		TEST(all_that_is_mounted_is_there),
		TEST(a_slice_that_runs_is_resized),
		TEST(the_share_is_there_for_the_library),
		TEST(a_second_call_finds_the_region_of_the_first),
		TEST(containers_have_nothing_in_common),
		TEST(what_cannot_be_is_refused),
		TEST(nothing_is_handed_out_without_the_library),
		TEST(all_is_made_again_after_a_restart_of_the_machine),
		TEST(books_are_begun_anew_when_the_machine_was_restarted),
		TEST(a_place_that_drops_locks_is_refused),
		TEST(users_of_the_host_reach_no_file_that_a_container_can_write_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
