/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration that changes under the running program. The arguments are the program and a library to install. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/plugin/stage.h"
#include "tests/unit/cmocka_ready.h"

#define SPLIT(n) "nvidia:\n  deviceSplitCount: " #n "\n"
#define NODE(x)	 "{\"nodeconfig\":[{\"name\":\"node1\"," x "}]}"

static const char *program, *library;
static const char *awaited;
static size_t awaited_count;

static bool is_listed(void)
{
	return stage.list && stage.list->n_devices == awaited_count;
}

static void await_slices(size_t count)
{
	awaited_count = count;
	stage_await(is_listed, 30);
}

static bool is_registered_so(void)
{
	_cleanup_free_ char *text = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);

	return text && strstr(text, awaited);
}

static bool is_said(void)
{
	return stage_has_said(awaited);
}

static void await_said(const char *words)
{
	awaited = words;
	stage_await(is_said, 30);
}

static void begin(const char *device)
{
	stage_configure(device, NULL);
	stage_start(NULL);
	stage_watch();
}

static void numbers_change_in_the_list_that_is_followed(void **state)
{
	begin(SPLIT(3));
	assert_int_equal(stage.list->n_devices, 6);
	stage_configure(SPLIT(4), NULL);
	await_slices(8);
	assert_non_null(stage.watch);
	awaited = "\"count\":4";
	stage_await(is_registered_so, 30);
	stage_configure(SPLIT(4) "  deviceMemoryScaling: 2\n", NODE("\"devicesplitcount\":5"));
	await_slices(10);
	awaited = "\"devmem\":287542";
	stage_await(is_registered_so, 30);
	assert_int_equal(stage.registrations, 1);
}

static void a_file_that_is_not_understood_changes_nothing(void **state)
{
	begin(SPLIT(3));
	stage_configure("nvidia:\n  deviceSplitCount: many\n", NULL);
	await_said("the one before stays in force");
	assert_true(stage_has_said("line 2: nvidia.deviceSplitCount"));
	stage_run(700);
	assert_int_equal(stage.list->n_devices, 6);
	stage_write("device-config.yaml", NULL);
	stage_run(1500);
	assert_int_equal(stage.list->n_devices, 6);
	stage_configure(SPLIT(2), NULL);
	await_slices(4);
	assert_int_equal(stage.registrations, 1);
}

/* As the kubelet writes a ConfigMap: the files are links through a link to a folder. */
static void put_map(const char *folder, const char *text)
{
	char name[STAGE_PATH_BYTES];

	mkdir(stage_path(folder), 0755);
	snprintf(name, sizeof(name), "%s/config.json", folder);
	stage_write(name, text);
	if (symlink(folder, stage_path("..data_tmp")))
		fail();
	snprintf(name, sizeof(name), "%s/..data", stage.folder);
	assert_int_equal(rename(stage_path("..data_tmp"), name), 0);
}

static void a_config_map_is_followed_through_its_links(void **state)
{
	stage_configure(SPLIT(3), NULL);
	put_map("..1", NODE("\"devicesplitcount\":4"));
	assert_int_equal(symlink("..data/config.json", stage_path("config.json")), 0);
	stage_start(NULL);
	stage_watch();
	assert_int_equal(stage.list->n_devices, 8);
	put_map("..2", NODE("\"devicesplitcount\":5"));
	await_slices(10);
	assert_int_equal(stage.registrations, 1);
}

/* D7: what registers is begun anew, and not once more. */
static void a_hangup_reads_again(void **state)
{
	unsigned registrations;

	begin(SPLIT(3));
	registrations = stage.registrations;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(kill(stage.plugin, SIGHUP), 0);
		stage_run(100);
	}
	await_said("the configuration was read again");
	assert_int_equal(stage.list->n_devices, 6);
	assert_int_equal(stage.registrations, registrations);
	assert_non_null(stage.watch);
}

static void what_cannot_change_under_way_begins_anew(void **state)
{
	begin(SPLIT(3));
	stage.was_registered = false;
	stage_configure(SPLIT(3), NODE("\"filterdevices\":{\"index\":[1]}"));
	stage_wait(&stage.was_registered, 30);
	stage_watch();
	assert_int_equal(stage.list->n_devices, 3);
	stage.was_registered = false;
	stage_configure(SPLIT(3) "  resourceCountName: example.com/slice\n", NULL);
	stage_wait(&stage.was_registered, 30);
	assert_string_equal(stage.resource, "example.com/slice");
	stage_watch();
	assert_int_equal(stage.list->n_devices, 6);
	/* what does not go is taken back */
	stage.was_registered = false;
	stage_configure(SPLIT(3) "  resourceCountName: example.com/slice\nflags:\n  plugin:\n    "
				 "deviceListStrategy: cdi-cri\n",
		NULL);
	stage_wait(&stage.was_registered, 30);
	assert_true(stage_has_said("the plugin does not start; the one before stays in force"));
	stage_watch();
	assert_int_equal(stage.list->n_devices, 6);
	assert_int_equal(stage_stop(SIGTERM), 0);
}

static void a_driver_that_is_not_there_is_waited_for_where_that_is_wanted(void **state)
{
	setenv("VGPU_SIM_BOARD", "none-such", 1);
	stage_spawn((const char *const[]){"--fail-on-init-error=false", NULL});
	await_said("the devices cannot be read; it is tried again");
	assert_int_equal(stage_stop(SIGTERM), 0);
	stage_spawn(NULL);
	assert_int_equal(stage_stop(0), 1);
}

static void a_channel_that_is_missing_is_refused_where_it_is_required(void **state)
{
	stage_spawn((const char *const[]){"--imex-channel-ids=7", "--imex-required", NULL});
	assert_int_equal(stage_stop(0), 1);
	assert_true(stage_has_said("channel7, which --imex-required wants"));
	stage_start((const char *const[]){"--imex-channel-ids=7", NULL});
}

static int setup(void **state)
{
	return stage_begin(state, program, library);
}

static bool is_near(size_t at, long node)
{
	const V1beta1__TopologyInfo *topology = stage.list->devices[at]->topology;

	return topology && topology->n_nodes == 1 && topology->nodes[0]->id == node;
}

static bool nodes_are_told(void)
{
	return is_near(0, 0) && is_near(stage.list->n_devices - 1, 1);
}

/* It may be said under way, too. */
static void the_hosts_node_of_a_device_is_told_where_that_is_wanted(void **state)
{
	setenv("VGPU_SIM_BOARD", "h200x8", 1);
	begin(SPLIT(2));
	assert_int_equal(stage.list->n_devices, 16);
	for (size_t i = 0; i < stage.list->n_devices; i++)
		assert_null(stage.list->devices[i]->topology);
	stage_configure("nvidia:\n  enableNumaTopology: true\n  deviceSplitCount: 2\n", NULL);
	stage_await(nodes_are_told, 30);
}

static void do_sim(const char *words)
{
	char command[4096];

	snprintf(command, sizeof(command), "%s %s >/dev/null", getenv("VGPU_SIM"), words);
	assert_int_equal(system(command), 0);
}

static void a_device_that_was_lost_when_it_began_is_handed_out_when_it_is_there(void **state)
{
	do_sim("card --device 1 lose");
	begin(SPLIT(2));
	assert_int_equal(stage.list->n_devices, 2);
	do_sim("card --device 1 return");
	stage.was_registered = false;
	stage_wait(&stage.was_registered, 30);
	stage_watch();
	await_slices(4);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, stage_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(numbers_change_in_the_list_that_is_followed),
		TEST(a_file_that_is_not_understood_changes_nothing),
		TEST(a_config_map_is_followed_through_its_links),
		TEST(a_hangup_reads_again),
		TEST(what_cannot_change_under_way_begins_anew),
		TEST(the_hosts_node_of_a_device_is_told_where_that_is_wanted),
		TEST(a_driver_that_is_not_there_is_waited_for_where_that_is_wanted),
		TEST(a_device_that_was_lost_when_it_began_is_handed_out_when_it_is_there),
		TEST(a_channel_that_is_missing_is_refused_where_it_is_required),
	};

	if (argc != 3)
		return 2;
	program = argv[1];
	library = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
