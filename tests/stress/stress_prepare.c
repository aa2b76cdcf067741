/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plugin makes on the host, when it is killed at each step and at any moment, twice at once, and where the disk is
 * full. STRESS_SECONDS lengthens the part of chance.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "plugin/host/library.h"
#include "region/region.h"
#include "tests/plugin/prepare_host.h"
#include "tests/stress/random.h"
#include "tests/unit/cmocka_ready.h"

#define STEPS_MOST 2000
#define PODS	   4

static const char *const pods[PODS] = {
	POD, OTHER, "0b5e7d7a-4f39-4d0c-9d3e-0f6a9a7b1c33", "0b5e7d7a-4f39-4d0c-9d3e-0f6a9a7b1c44"};

static unsigned steps_left; /* until this process is killed; 0: it is not */

void fault_hit(const char *place)
{
	if (steps_left && --steps_left == 0)
		raise(SIGKILL);
}

bool fault_is_out_of_memory(void)
{
	return false;
}

static int prepare_one(const char *pod_uid, struct prepared *ret_prepared)
{
	struct share share = host_share(pod_uid, "main");
	struct prepare_request request = {.pod_uid = pod_uid, .container = "main", .share = &share};
	struct err err = ERR_NULL;
	int r = prepare_container(&host.settings, &request, ret_prepared, &err);

	assert_true(r == 0 || err.text[0]);
	return r;
}

static void is_absent_or(const char *path, const char *content)
{
	char text[SHARE_FILE_BYTES];
	size_t length;
	int r = file_read(path, text, sizeof(text), &length);

	if (r == -ENOENT)
		return;
	assert_int_equal(r, 0);
	assert_string_equal(text, content);
}

/* What a container may be started with at any moment: it is not there, or whole. */
static void nothing_is_half_made(void)
{
	char path[700], text[SHARE_FILE_BYTES];
	size_t length;

	for (unsigned i = 0; i < PODS; i++) {
		struct share share = host_share(pods[i], "main");
		struct region region = REGION_NULL;
		int r;

		assert_int_equal(share_format(&share, text, sizeof(text), &length), 0);
		snprintf(path, sizeof(path), "%s/%s_main/share", host.shares, pods[i]);
		is_absent_or(path, text);
		snprintf(path, sizeof(path), "%s/containers/%s_main%s", host.hook, pods[i],
			share.region + strlen(host.hook));
		r = region_open_existing(path, &region);
		assert_true(r == 0 || r == -ENOENT);
		region_close(&region);
	}
	snprintf(path, sizeof(path), "%s/libvgpu.so.1", host.hook);
	is_absent_or(path, "\177ELF of the image");
	snprintf(path, sizeof(path), "%s/libvgpu.so.2", host.hook);
	is_absent_or(path, "\177ELF of the image");
}

/* What is on the host is what is kept, and nothing else. */
static void all_is_in_order(void)
{
	unsigned count;

	host_restore();
	host_collect(pods, PODS);
	nothing_is_half_made();
	count = host_count("state/containers");
	assert_int_equal(host_count("state/shares"), count);
	assert_int_equal(host_count("hook/vgpu/containers"), count);
	assert_int_equal(host_count("run/turns/" DEVICE_A), count);
}

/* The life of a plugin: it begins, is upgraded, prepares two containers, of which one goes, and begins again. */
static void live(void)
{
	struct err err = ERR_NULL;
	struct prepared prepared;

	if (library_install(host.state, host.hook, "2", host.library, &err) < 0)
		fail_msg("%s", err.text);
	host.settings.version = "2";
	host_restore();
	assert_int_equal(prepare_one(pods[0], &prepared), 0);
	assert_int_equal(prepare_one(pods[1], &prepared), 0);
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(pods, 1);
	/* the machine is restarted */
	host_forget_boot();
	host_restore();
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
}

static bool is_killed_at(unsigned step)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		steps_left = step;
		live();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGKILL);
	else
		assert_int_equal(status, 0);
	return WIFSIGNALED(status);
}

static void a_kill_at_each_step_leaves_nothing_half_made(void **state)
{
	struct prepared other;
	bool was_killed = true;
	unsigned step;

	for (step = 1; was_killed; step++) {
		assert_true(step < STEPS_MOST);
		assert_int_equal(prepare_one(pods[2], &other), 0);
		was_killed = is_killed_at(step);
		nothing_is_half_made();
		all_is_in_order();
		host_remove();
		host_make();
	}
	print_message("%u steps\n", step);
	assert_true(step > 90);
}

static int do_anything(struct random *random)
{
	struct prepared prepared;
	struct err err = ERR_NULL;
	unsigned failed;

	switch (random_below(random, 5)) {
	case 0:
		return prepare_restore(&host.settings, &failed, &err);
	case 1:
		host_age(PREPARE_YOUNG_S + 1);
		return prepare_collect(&host.settings,
			&(struct prepare_pods){
				.uids = pods, .uid_count = random_below(random, PODS)},
			&err);
	case 2:
		return library_install(host.state, host.hook, "1", host.library, &err);
	default:
		return prepare_one(pods[random_below(random, PODS)], &prepared);
	}
}

/* A plugin that ends by itself has failed; the test sees that it was not killed. */
static pid_t start_anything(uint64_t seed)
{
	struct random random = {seed};
	pid_t child = fork();

	assert_true(child >= 0);
	while (child == 0)
		if (do_anything(&random) != 0)
			_exit(1);
	return child;
}

static unsigned seconds(void)
{
	const char *text = getenv("STRESS_SECONDS");

	return text ? (unsigned)atoi(text) : 2;
}

static void end(pid_t child)
{
	int status;

	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void two_plugins_that_are_killed_at_any_moment_leave_nothing_half_made(void **state)
{
	uint64_t until_ns = clock_now_ns() + seconds() * UINT64_C(1000000000);
	struct random random = {7};
	unsigned rounds = 0;

	for (; clock_now_ns() < until_ns; rounds++) {
		pid_t first = start_anything(2 * rounds + 1),
		      second = start_anything(2 * rounds + 2);

		usleep((useconds_t)random_below(&random, 6000));
		end(first);
		nothing_is_half_made();
		usleep((useconds_t)random_below(&random, 3000));
		end(second);
		nothing_is_half_made();
		all_is_in_order();
	}
	print_message("%u rounds\n", rounds);
}

/* Where such a one may be mounted; it goes with the process. */
static bool mount_small(const char *path, const char *size)
{
	char options[32];

	snprintf(options, sizeof(options), "size=%s", size);
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tmpfs", path, "tmpfs", 0, options) == 0;
}

/* 0: done; 77: not to be had here. */
static int fill(const char *folder, const char *size)
{
	char path[128], pod_uid[40];
	struct prepared prepared;
	struct err err = ERR_NULL;
	unsigned count = 0;
	int r;

	snprintf(path, sizeof(path), "%s/%s", host.root, folder);
	if (!mount_small(path, size))
		return 77;
	if (library_install(host.state, host.hook, "1", host.library, &err) < 0)
		return 2;
	for (r = 0; r == 0 && count < 1000; count++) {
		snprintf(pod_uid, sizeof(pod_uid), "0b5e7d7a-4f39-4d0c-9d3e-%012u", count);
		r = prepare_one(pod_uid, &prepared);
	}
	if (r != -ENOSPC || count < 2)
		return 3;
	/* The one before is whole, and when the pods have gone there is room again. */
	snprintf(pod_uid, sizeof(pod_uid), "0b5e7d7a-4f39-4d0c-9d3e-%012u", 0);
	if (prepare_one(pod_uid, &prepared) != 0)
		return 4;
	host_age(PREPARE_YOUNG_S + 1);
	host_collect(NULL, 0);
	return prepare_one(pod_uid, &prepared) == 0 ? 0 : 5;
}

static void a_full_disk_refuses_and_harms_no_other(void **state)
{
	static const char *const places[][2] = {{"hook", "12m"}, {"state", "64k"}};

	for (unsigned i = 0; i < 2; i++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			_exit(fill(places[i][0], places[i][1]));
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_kill_at_each_step_leaves_nothing_half_made, host_setup, host_teardown),
		cmocka_unit_test_setup_teardown(
			two_plugins_that_are_killed_at_any_moment_leave_nothing_half_made,
			host_setup, host_teardown),
		cmocka_unit_test_setup_teardown(
			a_full_disk_refuses_and_harms_no_other, host_setup, host_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
