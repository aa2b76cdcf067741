/* SPDX-License-Identifier: Apache-2.0 */
/* What is left of pods, locks and registrations when the plugin, a pod or a call fails, in a cluster in memory. */
#include <stdio.h>
#include <string.h>

#include "net/rpc.h"
#include "plugin/cluster/node.h"
#include "plugin/cluster/pod.h"
#include "plugin/devices/score.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define ONE "GPU-a,NVIDIA,3000,30:"

static char given[512];

static void a_lock_of_a_pod_that_is_gone_is_released(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_run(10);
	town_delete("a");
	town_run(40000);
	assert_null(town_lock());
}

/* A pod that the scheduler is about to bind has its lock already. */
static void a_lock_of_a_pod_that_is_not_bound_yet_stays(void **state)
{
	json_t *pod = json_pack("{s:{s:s,s:s,s:s,s:{}},s:{s:[]},s:{s:s}}", "metadata", "namespace",
		"default", "name", "a", "uid", "x", "annotations", "spec", "containers", "status",
		"phase", "Pending");

	json_object_set_new(town.pods, "a", pod);
	town_set_lock("2026-11-22T00:00:00Z,default,a");
	town_run(100000);
	assert_non_null(town_lock());
}

static void a_plugin_that_was_killed_is_made_good(void **state)
{
	/* after the last slot, before the lock was released */
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	town_kill_plugin();
	town_set_lock("2026-11-22T00:00:00Z,default,a");
	town_set_status("a", "Running");
	town_start_plugin();
	town_run(1000);
	assert_null(town_lock());
	/* before the slot was taken */
	town_kill_plugin();
	town_bind("b", ONE ";", (unsigned[]){1}, 1);
	town_set_status("b", "Failed");
	town_start_plugin();
	town_run(1000);
	assert_null(town_lock());
	town_expect("b", POD_BIND_PHASE, "failed");
}

static void a_pod_that_is_deleted_meanwhile_leaves_nothing(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_run(10);
	town_delete("a");
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	town_run(40000);
	assert_null(town_lock());
}

/* D6: what has not changed is not written again. */
static void devices_are_registered_once(void **state)
{
	json_t *annotations = town_annotations(town.node);
	unsigned calls = town.calls, patches;

	agent_register(town.agent, strdup("[1]"), NULL);
	town_run(50);
	assert_string_equal(json_string_value(json_object_get(annotations, NODE_REGISTER)), "[1]");
	assert_null(json_object_get(annotations, SCORE_ANNOTATION));
	assert_int_equal(town.calls, calls + 1);
	agent_register(town.agent, strdup("[2]"), "scores");
	town_run(50);
	assert_string_equal(json_string_value(json_object_get(annotations, NODE_REGISTER)), "[2]");
	assert_string_equal(
		json_string_value(json_object_get(annotations, SCORE_ANNOTATION)), "scores");
	assert_int_equal(town.calls, calls + 2);
	/* without a change, an hour is reading alone: twice a minute */
	patches = town.patches;
	town_run(3600000);
	assert_in_range(town.calls, calls + 100, calls + 2 + 121);
	assert_int_equal(town.patches, patches);
	/* and what another has changed is put right */
	json_object_del(annotations, NODE_REGISTER);
	town_run(40000);
	assert_string_equal(json_string_value(json_object_get(annotations, NODE_REGISTER)), "[2]");
}

/* D8: it counts as written when it is. */
static void a_registration_that_fails_is_tried_again(void **state)
{
	json_t *annotations = town_annotations(town.node);

	town_run(50);
	town.fault_permille = 1000;
	agent_register(town.agent, strdup("[3]"), NULL);
	town_run(500);
	town.fault_permille = 0;
	json_object_del(annotations, NODE_REGISTER); /* where only the answer was lost */
	town_run(60000);
	assert_string_equal(json_string_value(json_object_get(annotations, NODE_REGISTER)), "[3]");
}

struct totals {
	unsigned pods, served, failed, containers;
};

static void wait_for_lock(void)
{
	for (unsigned i = 0; i < 1200 && town_lock(); i++)
		town_run(100);
	assert_null(town_lock());
}

/* One pod's life as far as its slices; each slot names its pod and container. */
static void live(unsigned number, struct totals *totals)
{
	char name[32], slots[512] = "", expected[300];
	unsigned slices[3], count = 1 + town_random(3);
	bool is_alive = true;

	snprintf(name, sizeof(name), "p%u", number);
	for (unsigned i = 0; i < count; i++) {
		slices[i] = 1 + town_random(2);
		for (unsigned j = 0; j < slices[i]; j++)
			snprintf(slots + strlen(slots), sizeof(slots) - strlen(slots),
				"GPU-%u.%u,NVIDIA,%u,0:", number, i, j + 1);
		strcat(slots, ";");
	}
	wait_for_lock();
	town_bind(name, slots, slices, count);
	for (unsigned i = 0; i < count && is_alive; i++) {
		if (town_random(1000) < town.fault_permille / 4)
			town_delete(name);
		is_alive = !town_allocate(slices[i], given, sizeof(given));
		snprintf(expected, sizeof(expected), "%s/c%u GPU-%u.%u,", name, i, number, i);
		if (is_alive)
			assert_memory_equal(given, expected, strlen(expected));
		totals->containers += is_alive;
	}
	town_set_status(name, is_alive ? "Running" : "Failed");
	totals->pods++;
	totals->served += is_alive;
	totals->failed += !is_alive;
}

/* Nothing is half written of any pod that is still there. */
static void assert_books(unsigned first, unsigned last)
{
	char name[32];

	for (unsigned i = first; i < last; i++) {
		const char *phase, *left;

		snprintf(name, sizeof(name), "p%u", i);
		if (!json_object_get(town.pods, name))
			continue;
		phase = town_annotation(name, POD_BIND_PHASE);
		left = town_annotation(name, POD_TO_ALLOCATE);
		assert_non_null(phase);
		assert_string_not_equal(phase, "allocating");
		if (!strcmp(phase, "success"))
			assert_int_equal(strspn(left, ";"), strlen(left));
		town_delete(name);
	}
}

static void nothing_is_left_of_many_with_faults(void **state)
{
	struct totals totals = {0};

	town.fault_permille = 40;
	for (unsigned round = 0; round < 130; round++) {
		for (unsigned i = 0; i < 50; i++)
			live(round * 50 + i, &totals);
		town_run(60000);
		assert_null(town_lock());
		assert_books(round * 50, round * 50 + 50);
	}
	print_message("%u pods, %u containers served, %u pods failed, %u calls, %u faults\n",
		totals.pods, totals.containers, totals.failed, town.calls, town.faults);
	assert_true(totals.served > 3000);
	assert_true(totals.containers + totals.failed > 10000);
	assert_true(town.faults > 1000);
}

/* The first call after the pod is bound, the second, and so on, each in each way. */
static void each_call_may_fail_in_each_way(void **state)
{
	for (unsigned i = 0; i < 3 * 5; i++) {
		struct totals totals = {0};

		town_run(50);
		town.fault = (enum town_fault)(TOWN_CALL_LOST + i % 3);
		town.fault_in = 1 + i / 3;
		live(i, &totals);
		town_run(60000);
		town.fault_in = 0;
		assert_null(town_lock());
		assert_books(i, i + 1);
	}
	assert_int_equal(town.faults, 3 * 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		town_test(a_lock_of_a_pod_that_is_gone_is_released),
		town_test(a_lock_of_a_pod_that_is_not_bound_yet_stays),
		town_test(a_plugin_that_was_killed_is_made_good),
		town_test(a_pod_that_is_deleted_meanwhile_leaves_nothing),
		town_test(devices_are_registered_once),
		town_test(a_registration_that_fails_is_tried_again),
		town_test(each_call_may_fail_in_each_way),
		town_test(nothing_is_left_of_many_with_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
