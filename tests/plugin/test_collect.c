/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long files of pods that are gone stay, in a cluster in memory.
 *
 * The plugin's timers are of the town's time. What is kept has the real time, so it is made older by a minute as the
 * town's time goes on by one.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "plugin/collect.h"
#include "tests/plugin/prepare_host.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define MOST_MINUTES 6 /* docs/plugin.md */

static struct collect collect;

static void start(void)
{
	host_restore();
	town_start_plugin();
	collect = (struct collect){.agent = NULL};
	collect_start(&collect, town.agent, &host.settings);
	town_run(100);
}

static void stop(void)
{
	collect_stop(&collect);
	town_kill_plugin();
}

static int setup(void **state)
{
	if (host_setup(state) || town_begin(state))
		return -1;
	town_kill_plugin();
	start();
	return 0;
}

static int teardown(void **state)
{
	collect_stop(&collect);
	return town_end(state) || host_teardown(state);
}

/* A pod that runs: what the plugin makes for it. */
static void run_pod(const char *name)
{
	struct share share;
	struct prepare_request request = {
		.container = "c0", .pod_space = "default", .pod_name = name, .share = &share};

	town_bind(name, NULL, (unsigned[]){1}, 1);
	request.pod_uid = town_uid(name);
	share = host_share(POD, name);
	host_prepare_as(&request);
	town_run(100);
}

static void age_by_a_minute(void)
{
	char path[192];
	DIR *folder;

	snprintf(path, sizeof(path), "%s/containers", host.state);
	folder = opendir(path);
	assert_non_null(folder);
	for (struct dirent *e = readdir(folder); e; e = readdir(folder)) {
		struct stat s;

		if (e->d_name[0] == '.')
			continue;
		assert_int_equal(fstatat(dirfd(folder), e->d_name, &s, 0), 0);
		s.st_mtim.tv_sec -= 60;
		assert_int_equal(utimensat(dirfd(folder), e->d_name,
					 (struct timespec[]){s.st_mtim, s.st_mtim}, 0),
			0);
	}
	closedir(folder);
}

static void a_minute_goes_on(void)
{
	age_by_a_minute();
	town_run(60000);
}

static unsigned count(void)
{
	unsigned containers = host_count("state/containers");

	assert_int_equal(host_count("state/shares"), containers);
	assert_int_equal(host_count("hook/vgpu/containers"), containers);
	return containers;
}

static void files_of_a_gone_pod_stay_six_minutes_at_the_most(void **state)
{
	run_pod("gone");
	run_pod("stays");
	for (unsigned i = 0; i < 10; i++)
		a_minute_goes_on();
	town_delete("gone");
	for (unsigned i = 0; i < 4; i++)
		a_minute_goes_on();
	assert_int_equal(count(), 2);
	for (unsigned i = 4; i < MOST_MINUTES; i++)
		a_minute_goes_on();
	assert_int_equal(count(), 1);
	for (unsigned i = 0; i < 10; i++)
		a_minute_goes_on();
	assert_int_equal(count(), 1);
}

static void a_plugin_that_begins_again_prolongs_nothing(void **state)
{
	run_pod("gone");
	town_delete("gone");
	for (unsigned i = 0; i < MOST_MINUTES; i++) {
		stop();
		start();
		a_minute_goes_on();
	}
	assert_int_equal(count(), 0);
}

static void a_pod_that_the_kubelet_alone_has_keeps_its_own_files(void **state)
{
	run_pod("gone");
	run_pod("stuck");
	town.record = json_pack("{s:b}", "stuck", 1);
	town_delete("gone");
	town_delete("stuck");
	for (unsigned i = 0; i < MOST_MINUTES; i++)
		a_minute_goes_on();
	assert_int_equal(count(), 1);
	json_object_clear(town.record);
	for (unsigned i = 0; i < 4; i++)
		a_minute_goes_on();
	assert_int_equal(count(), 1);
	for (unsigned i = 4; i < MOST_MINUTES; i++)
		a_minute_goes_on();
	assert_int_equal(count(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_of_a_gone_pod_stay_six_minutes_at_the_most),
		TEST(a_plugin_that_begins_again_prolongs_nothing),
		TEST(a_pod_that_the_kubelet_alone_has_keeps_its_own_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
