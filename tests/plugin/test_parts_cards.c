/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cards that are cut into instances, whole ones beside them, and those that are lost or fail, as the scheduler and the kubelet
 * are told of them. The arguments are those of test_parts.c.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/event.h"
#include "sim/machine/mig.h"
#include "sim/machine/presence.h"
#include "tests/plugin/cut_node.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

#define MIXED_NODE                                       \
	"{\"nodeconfig\":[{\"name\":\"" STAGE_NODE "\"," \
	"\"devicemodes\":{\"mig\":{\"index\":[1]}}}]}"

static json_t *registered(void)
{
	_cleanup_free_ char *text = NULL;

	for (unsigned i = 0; i < 1500 && !text; i++) {
		stage_run(20);
		text = apiserver_annotation(&stage.api, NULL, STAGE_REGISTER);
	}
	assert_non_null(text);
	return json_loads(text, 0, NULL);
}

static void assert_number(const json_t *object, const char *key, json_int_t expected)
{
	assert_int_equal(json_integer_value(json_object_get(object, key)), expected);
}

static void the_scheduler_is_told_profiles_and_places(void **state)
{
	static const char *const names[] = {"1g.18gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"};
	json_t *list;
	const json_t *device, *profiles, *first;
	struct mig_card card;

	stage_configure("nvidia:\n  deviceMemoryScaling: 2\n", CUT_NODE);
	stage_start(NULL);
	mig_read(cut.machine, 1, &card);
	assert_true(card.is_enabled);
	list = registered();
	assert_int_equal(json_array_size(list), 2);
	device = json_array_get(list, 1);
	assert_string_equal(json_string_value(json_object_get(device, "mode")), "mig");
	assert_true(json_is_true(json_object_get(device, "health")));
	assert_number(device, "count", 7);
	assert_number(device, "devcore", 100);
	assert_number(device, "devmem", 143771);
	profiles = json_object_get(device, "migProfiles");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		bool is_there = false;
		size_t at;

		json_array_foreach(profiles, at, first) is_there |=
			!strcmp(json_string_value(json_object_get(first, "name")), names[i]);
		assert_true(is_there);
	}
	first = json_array_get(profiles, 0);
	assert_string_equal(json_string_value(json_object_get(first, "name")), "1g.18gb");
	assert_number(first, "memoryMB", 16384);
	assert_number(first, "core", 13);
	assert_number(first, "sliceCount", 1);
	assert_int_equal(json_array_size(json_object_get(first, "placements")), 7);
	json_decref(list);
	/* the kubelet knows slices as of any device */
	stage_watch();
	assert_int_equal(stage.list->n_devices, 20);
}

static void the_allowlist_says_which_profiles(void **state)
{
	json_t *list;
	const json_t *profiles;

	stage_configure("nvidia:\n  migProfileAllowlist:\n"
			"  - {models: [A30], profiles: [1g.6gb]}\n"
			"  - {models: [H200], profiles: [1g.35gb, 3g.71gb]}\n",
		MIXED_NODE);
	stage_start(NULL);
	list = registered();
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(list, 0), "mode")), "hami-core");
	assert_null(json_object_get(json_array_get(list, 0), "migProfiles"));
	profiles = json_object_get(json_array_get(list, 1), "migProfiles");
	assert_int_equal(json_array_size(profiles), 2);
	assert_number(json_array_get(list, 1), "count", 4);
	json_decref(list);
}

static void cards_of_both_modes_are_handed_out_as_theirs(void **state)
{
	struct stage_answer answer;
	char slots[256];

	stage_configure("", MIXED_NODE);
	stage_start(NULL);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,3000,30:;", cut.gpus[0]);
	cut_bind_pod("a", cut_make_pod("a", slots, NULL, 1));
	cut_allocate(0, 1, &answer);
	cut_assert_list(&answer, cut.gpus[0]);
	assert_non_null(stage_mount(&answer, "/etc/vgpu"));
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, "a", "Running");
	stage_tell();
	cut_bind("b", 1, "1g.18gb", 2, 1);
	cut_serve("b", 1, "1g.18gb", 2);
}

static void a_card_that_cannot_be_cut_yet_is_not_offered(void **state)
{
	pid_t pid = cut_start_program(0, NULL);
	json_t *list;
	bool is_healthy = false;

	stage_start(NULL);
	list = registered();
	assert_null(json_object_get(json_array_get(list, 0), "health"));
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "health")));
	json_decref(list);
	cut_bind("a", 1, "1g.18gb", 2, 1);
	cut_serve("a", 1, "1g.18gb", 2);
	mig_program_end(pid);
	cut_bind("b", 1, "1g.18gb", 3, 1);
	cut_serve("b", 1, "1g.18gb", 3);
	for (unsigned i = 0; i < 600 && !is_healthy; i++) {
		stage_run(50);
		list = registered();
		is_healthy = json_is_true(json_object_get(json_array_get(list, 0), "health"));
		json_decref(list);
	}
	assert_true(is_healthy);
}

static void a_card_in_mig_mode_that_should_be_whole_is_not_offered(void **state)
{
	json_t *list;

	assert_int_equal(mig_set_mode(cut.machine, 0, true), 0);
	stage_configure("", NULL);
	stage_start(NULL);
	list = registered();
	assert_null(json_object_get(json_array_get(list, 0), "health"));
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "health")));
	json_decref(list);
}

static unsigned count_unhealthy(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < stage.list->n_devices; i++)
		count += !strcmp(stage.list->devices[i]->health, "Unhealthy");
	return count;
}

static bool half_is_unhealthy(void)
{
	return count_unhealthy() == 10;
}

static bool all_are_healthy(void)
{
	return count_unhealthy() == 0;
}

static bool is_missed(void)
{
	return stage_has_said("a device is missing");
}

static char wanted_uuid[MACHINE_UUID_SIZE];

/* It is whole a moment after it is there. */
static bool is_there_again(void)
{
	return cut_count(0) == 1 && !strcmp(cut_instance(0, "1g.18gb", 2), wanted_uuid);
}

static void a_card_that_returns_has_its_instances_again(void **state)
{
	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 2, 1);
	cut_serve("a", 0, "1g.18gb", 2);
	snprintf(wanted_uuid, sizeof(wanted_uuid), "%s", cut_instance(0, "1g.18gb", 2));
	stage_watch();
	assert_int_equal(presence_lose(cut.machine, 0), 0);
	/* the failure that it reports comes first; one that is back before it is missed is not known to be another */
	stage_await(half_is_unhealthy, 30);
	stage_await(is_missed, 30);
	cut_forget_instances(0);
	assert_int_equal(presence_return(cut.machine, 0), 0);
	stage_await(all_are_healthy, 30);
	stage_await(is_there_again, 30);
}

/* The driver tells those that listen by then. */
static bool fails_and_half_is_unhealthy(void)
{
	event_raise(cut.machine, 0, &(struct event_report){EVENT_ECC_UNCORRECTED, 0});
	stage_run(300);
	return half_is_unhealthy();
}

/* D25: a failure is told of the card, and counts for all that is cut of it. */
static void a_card_that_fails_gives_no_instance_and_keeps_those_it_has(void **state)
{
	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	stage_watch();
	stage_await(fails_and_half_is_unhealthy, 30);
	cut_bind("x", 0, "1g.18gb", 1, 1);
	cut_refuse(0, "is not healthy");
	stage_unbind("x", "Failed");
	assert_int_equal(cut_count(0), 1);
	cut_bind("b", 1, "1g.18gb", 1, 1);
	cut_serve("b", 1, "1g.18gb", 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cut_setup, cut_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_scheduler_is_told_profiles_and_places),
		TEST(the_allowlist_says_which_profiles),
		TEST(cards_of_both_modes_are_handed_out_as_theirs),
		TEST(a_card_that_cannot_be_cut_yet_is_not_offered),
		TEST(a_card_in_mig_mode_that_should_be_whole_is_not_offered),
		TEST(a_card_that_returns_has_its_instances_again),
		TEST(a_card_that_fails_gives_no_instance_and_keeps_those_it_has),
	};

	if (argc != 3)
		return 2;
	cut_set_files(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
