/* SPDX-License-Identifier: Apache-2.0 */
/* Which pod the kubelet's requests are for, what is written for them, and what a failure leaves, in a cluster in memory. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/rpc.h"
#include "plugin/node.h"
#include "plugin/pod.h"
#include "plugin/score.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define ONE "GPU-a,NVIDIA,3000,30:"
#define TWO "GPU-b,NVIDIA,4000,40:"

static char given[512];

static int setup(void **state)
{
	town_begin(1);
	town_run(100);
	return 0;
}

static int teardown(void **state)
{
	town_end();
	return 0;
}

static void assert_annotation(const char *pod, const char *key, const char *value)
{
	const char *is = town_annotation(pod, key);

	assert_non_null(is);
	assert_string_equal(is, value);
}

static void one_container_is_served_with_three_calls(void **state)
{
	unsigned before = town.calls;

	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
	town_run(50);
	assert_annotation("a", POD_TO_ALLOCATE, ";");
	assert_annotation("a", POD_BIND_PHASE, "success");
	assert_null(town_lock());
	assert_int_equal(town.calls - before, 3);
}

static void two_containers_are_served_in_order_with_four_calls(void **state)
{
	unsigned before = town.calls;

	town_bind("a", ONE ";" TWO TWO ";", (unsigned[]){1, 2}, 2);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
	town_run(5);
	assert_annotation("a", POD_TO_ALLOCATE, ";" TWO TWO ";");
	assert_annotation("a", POD_BIND_PHASE, "allocating");
	assert_non_null(town_lock());
	assert_int_equal(town_allocate(2, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c1 " TWO TWO);
	town_run(50);
	assert_annotation("a", POD_TO_ALLOCATE, ";;");
	assert_annotation("a", POD_BIND_PHASE, "success");
	assert_null(town_lock());
	assert_int_equal(town.calls - before, 4);
}

/* A scheduler that leaves empty slots out, and one that does not. */
static void slots_without_devices_say_nothing(void **state)
{
	town_bind("a", ";" ONE ";;" TWO ";", (unsigned[]){0, 1, 0, 1}, 4);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c1 " ONE);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c3 " TWO);
	town_run(50);
	town_set_status("a", "Running");
	town_bind("b", ONE ";", (unsigned[]){0, 1}, 2);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c1 " ONE);
}

static void a_wrong_count_is_refused_and_not_anothers(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){2}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	town_run(50);
	assert_non_null(town_lock()); /* nobody says that it was for this pod */
	town_set_status("a", "Failed");
	town_run(40000);
	assert_null(town_lock());
	assert_annotation("a", POD_BIND_PHASE, "failed");
}

/* What is asked for now was not written by the scheduler. */
static void a_slot_that_was_changed_is_refused(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	json_object_set_new(town_annotations(json_object_get(town.pods, "a")), POD_TO_ALLOCATE,
		json_string("GPU-0,NVIDIA,90000,0:;"));
	town_tell(json_object_get(town.pods, "a"), true);
	town_run(50);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
}

static void a_missing_annotation_fails_and_releases(void **state)
{
	town_bind("a", "", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_string_equal(given, "device request not found");
	town_run(50);
	assert_null(town_lock());
	assert_annotation("a", POD_BIND_PHASE, "failed");
}

static void a_pod_that_was_not_scheduled_gets_nothing(void **state)
{
	town_bind("stray", NULL, (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	town_run(50);
	assert_null(town_annotation("stray", POD_BIND_PHASE));
}

/* The request is for the first that waits, whatever the lock says. */
static void under_the_lock_of_another_a_stray_gets_nothing(void **state)
{
	town_bind("stray", NULL, (unsigned[]){1}, 1);
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	town_set_status("stray", "Failed");
	assert_annotation("a", POD_TO_ALLOCATE, ONE ";");
	assert_non_null(town_lock());
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
}

static void a_stray_behind_it_does_not_hold_a_pod_up(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_bind("stray", NULL, (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
	town_set_status("a", "Running");
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
}

/* What a tenant can write on his own pod is not enough. */
static void a_pod_with_forged_annotations_gets_nothing_of_another(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_bind("forged", TWO ";", (unsigned[]){1}, 1);
	town_set_lock("2026-11-22T00:00:00Z,default,a");
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
}

static void a_pod_without_a_lock_is_found(void **state)
{
	static const char *const locks[] = {
		"", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z,default,nobody", "nonsense"};

	for (unsigned i = 0; i < 4; i++) {
		town_bind("a", ONE ";", (unsigned[]){1}, 1);
		town_set_lock(locks[i]);
		assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
		assert_string_equal(given, "a/c0 " ONE);
		town_set_status("a", "Running");
		town_run(40000);
		if (i)
			assert_null(town_lock());
		town_delete("a");
		town_run(50);
	}
}

/* D11: where the scheduler always locks, a pod's annotations are no word at all. */
static void without_the_lock_that_is_required_a_pod_gets_nothing(void **state)
{
	static const char *const locks[] = {
		"", "2026-11-22T00:00:00Z", "2026-11-22T00:00:00Z,default,b"};

	town.config.requires_lock = true;
	for (unsigned i = 0; i < 3; i++) {
		town_bind("a", ONE ";", (unsigned[]){1}, 1);
		town_set_lock(locks[i]);
		assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
		assert_string_equal(given, "no pod that waits on this node has its lock");
		assert_annotation("a", POD_TO_ALLOCATE, ONE ";");
		town_set_lock("2026-11-22T00:00:00Z,default,a");
		assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
		assert_string_equal(given, "a/c0 " ONE);
		town_delete("a");
		town_run(50);
	}
	/* the next request finds it changed */
	town.config.requires_lock = false;
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_set_lock("");
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
}

static void bind_b(void *context)
{
	town_bind("b", ONE ";", (unsigned[]){1}, 1);
}

/* D12: the scheduler has given the lock of one that still waits to another; neither gets what is the other's. */
static void a_lock_that_was_handed_over_changes_nobodys_devices(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_run(50);
	town_bind("b", TWO ";", (unsigned[]){1}, 1);
	town_run(50);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_annotation("b", POD_TO_ALLOCATE, TWO ";");
	assert_non_null(town_lock());
	town_set_status("a", "Failed");
	town_run(50);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c0 " TWO);
}

static void set_record(const char *name, bool has_slices)
{
	if (!town.record)
		town.record = json_object();
	json_object_set_new(town.record, name, json_boolean(has_slices));
}

/* It is bound, and the kubelet has not heard of it: what it asks for is another's. */
static void a_pod_that_the_kubelet_does_not_list_is_not_served(void **state)
{
	set_record("other", true);
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_annotation("a", POD_TO_ALLOCATE, ONE ";");
	assert_annotation("a", POD_BIND_PHASE, "allocating");
	assert_non_null(town_lock());
	set_record("a", false);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
}

/* The kubelet has not heard of the lock's pod yet: that makes nothing of another's own word. */
static void a_forged_pod_gets_nothing_while_anothers_lock_is_held(void **state)
{
	town_bind("forged", TWO ";", (unsigned[]){1}, 1);
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_run(50);
	set_record("forged", false);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_annotation("forged", POD_TO_ALLOCATE, TWO ";");
	assert_non_null(town_lock());
	town_set_status("forged", "Failed");
	town_run(50);
	set_record("a", false);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
}

/* Of two that wait the record says whom the kubelet asks for; so nobody is waited for. */
static void the_record_says_who_is_asked_for(void **state)
{
	uint64_t began_ns;

	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_bind("b", TWO ";", (unsigned[]){1}, 1);
	town_run(50);
	set_record("b", false);
	began_ns = clock_now_ns();
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c0 " TWO);
	assert_true(clock_now_ns() - began_ns < 500000000);
	assert_annotation("a", POD_TO_ALLOCATE, ONE ";");
}

/* Its annotations were written anew by who may; the kubelet has given it slices. */
static void a_pod_with_slices_by_the_record_gets_no_more(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	set_record("a", true);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_annotation("a", POD_TO_ALLOCATE, ONE ";");
}

/* The watch is behind the kubelet's. */
static void a_pod_that_becomes_known_after_the_record_is_served(void **state)
{
	town_run(50);
	set_record("b", false);
	bind_b(NULL);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c0 " ONE);
}

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
	assert_annotation("b", POD_BIND_PHASE, "failed");
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

/* It is bound while the kubelet still waits for another, which was deleted before anybody looked. */
static void a_pod_that_is_bound_later_does_not_pay_for_one_that_is_gone(void **state)
{
	struct loop_timer later = {.due = bind_b};

	town_bind("a", TWO ";", (unsigned[]){1}, 1);
	town_run(10);
	town_delete("a");
	town_run(40000);
	assert_null(town_lock());
	loop_timer_set(town.loop, &later, clock_now_ns() + 300000000);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_annotation("b", POD_TO_ALLOCATE, ONE ";");
	assert_non_null(town_lock());
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c0 " ONE);
}

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

/* ----- many, with faults ----- */

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_container_is_served_with_three_calls),
		TEST(two_containers_are_served_in_order_with_four_calls),
		TEST(slots_without_devices_say_nothing),
		TEST(a_slot_that_was_changed_is_refused),
		TEST(a_wrong_count_is_refused_and_not_anothers),
		TEST(a_missing_annotation_fails_and_releases),
		TEST(a_pod_that_was_not_scheduled_gets_nothing),
		TEST(under_the_lock_of_another_a_stray_gets_nothing),
		TEST(a_stray_behind_it_does_not_hold_a_pod_up),
		TEST(a_pod_with_forged_annotations_gets_nothing_of_another),
		TEST(a_pod_that_is_bound_later_does_not_pay_for_one_that_is_gone),
		TEST(a_pod_without_a_lock_is_found),
		TEST(without_the_lock_that_is_required_a_pod_gets_nothing),
		TEST(a_lock_that_was_handed_over_changes_nobodys_devices),
		TEST(a_pod_that_the_kubelet_does_not_list_is_not_served),
		TEST(a_forged_pod_gets_nothing_while_anothers_lock_is_held),
		TEST(the_record_says_who_is_asked_for),
		TEST(a_pod_with_slices_by_the_record_gets_no_more),
		TEST(a_pod_that_becomes_known_after_the_record_is_served),
		TEST(a_lock_of_a_pod_that_is_gone_is_released),
		TEST(a_lock_of_a_pod_that_is_not_bound_yet_stays),
		TEST(a_plugin_that_was_killed_is_made_good),
		TEST(a_pod_that_is_deleted_meanwhile_leaves_nothing),
		TEST(devices_are_registered_once),
		TEST(a_registration_that_fails_is_tried_again),
		TEST(each_call_may_fail_in_each_way),
		TEST(nothing_is_left_of_many_with_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
