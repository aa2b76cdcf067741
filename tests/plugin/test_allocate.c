/* SPDX-License-Identifier: Apache-2.0 */
/* Which pod the kubelet's requests are for, and what is written for them, in a cluster in memory. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "net/rpc.h"
#include "plugin/cluster/pod.h"
#include "tests/plugin/town.h"
#include "tests/unit/cmocka_ready.h"

#define ONE "GPU-a,NVIDIA,3000,30:"
#define TWO "GPU-b,NVIDIA,4000,40:"

static char given[512];

static void one_container_is_served_with_three_calls(void **state)
{
	unsigned before = town.calls;

	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " ONE);
	town_run(50);
	town_expect("a", POD_TO_ALLOCATE, ";");
	town_expect("a", POD_BIND_PHASE, "success");
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
	town_expect("a", POD_TO_ALLOCATE, ";" TWO TWO ";");
	town_expect("a", POD_BIND_PHASE, "allocating");
	assert_non_null(town_lock());
	assert_int_equal(town_allocate(2, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c1 " TWO TWO);
	town_run(50);
	town_expect("a", POD_TO_ALLOCATE, ";;");
	town_expect("a", POD_BIND_PHASE, "success");
	assert_null(town_lock());
	assert_int_equal(town.calls - before, 4);
}

/* D1: a scheduler that leaves empty slots out, and one that does not. */
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

/* As those of the first versions have been written. */
static void slots_of_old_writers_are_empty(void **state)
{
	town_bind("a", ",,0,0:;" ONE ";", (unsigned[]){0, 1}, 2);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c1 " ONE);
	town_run(50);
	town_expect("a", POD_TO_ALLOCATE, ",,0,0:;;");
	town_expect("a", POD_BIND_PHASE, "success");
	assert_null(town_lock());
	town_set_status("a", "Running");
	town_bind("b", ":;x:;" ONE TWO ";,,0,0:;", (unsigned[]){0, 0, 2, 0}, 4);
	assert_int_equal(town_allocate(2, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c2 " ONE TWO);
}

/* A pod with the lock whose reservation cannot be: what its status says, and that nothing of it stays. */
static void what_is_wrong_with_a_reservation_is_said(void **state)
{
	static const struct {
		const char *slots;
		unsigned slices;
		const char *words;
	} rows[] = {
		{"", 1, "no pending device allocation found"},
		{";", 1, "no pending device allocation found"},
		{";;", 1, "no pending device allocation found"},
		{"x:y:;", 1, "no pending device allocation found"},
		{ONE ";", 2, "device number not matched"},
		{ONE TWO ";", 1, "device number not matched"},
		{";;;" ONE ";", 1, "device number not matched"},
		{"GPU-a,NVIDIA,3g,30:;", 1, "is no number"},
		{"GPU-a,NVIDIA, 3000,30:;", 1, "is no number"},
		{"GPU-a,NVIDIA,3e3,30:;", 1, "is no number"},
		{"GPU-a,NVIDIA,0x10,30:;", 1, "is no number"},
		{"GPU-a,NVIDIA,,30:;", 1, "is no number"},
		{"GPU-a,NVIDIA,4294967296,30:;", 1, "is too large"},
		{"GPU-a,NVIDIA,-5,30:;", 1, "is below 0"},
		{"GPU-a,NVIDIA,3000,-1:;", 1, "is below 0"},
		{"GPU-a,NVIDIA,3000:;", 1, "fewer than four fields"},
		{"GPU-a,NVIDIA,3000,30:;GPU-b;GPU-c,NVIDIA:;", 1, "fewer than four fields"},
		{"../../x,NVIDIA,3000,30:GPU-$(a),NVIDIA,1,1:;", 1, "no name has"},
	};
	char name[8];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(name, sizeof(name), "p%zu", i);
		town_bind(name, rows[i].slots, &rows[i].slices, 1);
		assert_int_equal(town_allocate(rows[i].slices, given, sizeof(given)),
			RPC_FAILED_PRECONDITION);
		if (!strstr(given, rows[i].words))
			fail_msg("'%s': %s", rows[i].slots, given);
		town_run(50);
		town_expect(name, POD_BIND_PHASE, "failed");
		assert_null(town_lock());
		town_set_status(name, "Failed");
	}
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
	town_expect("a", POD_BIND_PHASE, "failed");
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

/* What the kubelet would hand out again after a power cut must be on the disk. */
static void a_disk_that_fails_is_no_answer(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town.disk_fails = true;
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_non_null(strstr(given, "to the disk"));
	town_run(50);
	assert_null(town_lock());
	town_expect("a", POD_BIND_PHASE, "failed");
}

static void a_missing_annotation_fails_and_releases(void **state)
{
	town_bind("a", "", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	assert_string_equal(given, "no pending device allocation found");
	town_run(50);
	assert_null(town_lock());
	town_expect("a", POD_BIND_PHASE, "failed");
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
	town_expect("a", POD_TO_ALLOCATE, ONE ";");
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

/* D11: what a tenant can write on his own pod is not enough. */
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
		town_expect("a", POD_TO_ALLOCATE, ONE ";");
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
	town_expect("b", POD_TO_ALLOCATE, TWO ";");
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
	town_expect("a", POD_TO_ALLOCATE, ONE ";");
	town_expect("a", POD_BIND_PHASE, "allocating");
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
	town_expect("forged", POD_TO_ALLOCATE, TWO ";");
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
	town_expect("a", POD_TO_ALLOCATE, ONE ";");
}

/* Its annotations were written anew by who may; the kubelet has given it slices. */
static void a_pod_with_slices_by_the_record_gets_no_more(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	set_record("a", true);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	town_expect("a", POD_TO_ALLOCATE, ONE ";");
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
	town_expect("b", POD_TO_ALLOCATE, ONE ";");
	assert_non_null(town_lock());
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "b/c0 " ONE);
}

/* The scheduler has heard of it, and has given the lock to another. */
static void who_waited_before_and_is_gone_holds_nobody_up(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_bind("b", ONE ";", (unsigned[]){1}, 1);
	town_delay_watch(true);
	town_delete("a");
	town_set_status("b", "Failed");
	town_bind("d", TWO ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "d/c0 " TWO);
	town_delay_watch(false);
	town_run(50);
	assert_null(town_lock());
}

static void who_waits_before_it_is_there_by_the_servers_word(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	town_delay_watch(true);
	town_bind("b", TWO ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), RPC_FAILED_PRECONDITION);
	town_expect("b", POD_TO_ALLOCATE, TWO ";");
}

/* As those of a StatefulSet have. */
static void a_pod_with_the_name_of_one_that_is_gone_is_served(void **state)
{
	town_bind("a", ONE ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	town_set_status("a", "Running");
	town_delay_watch(true);
	town_delete("a");
	town_bind("a", TWO ";", (unsigned[]){1}, 1);
	assert_int_equal(town_allocate(1, given, sizeof(given)), 0);
	assert_string_equal(given, "a/c0 " TWO);
	town_delay_watch(false);
	town_run(50);
	assert_null(town_lock());
	town_expect("a", POD_BIND_PHASE, "success");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		town_test(one_container_is_served_with_three_calls),
		town_test(two_containers_are_served_in_order_with_four_calls),
		town_test(slots_without_devices_say_nothing),
		town_test(slots_of_old_writers_are_empty),
		town_test(what_is_wrong_with_a_reservation_is_said),
		town_test(a_slot_that_was_changed_is_refused),
		town_test(a_wrong_count_is_refused_and_not_anothers),
		town_test(a_disk_that_fails_is_no_answer),
		town_test(a_missing_annotation_fails_and_releases),
		town_test(a_pod_that_was_not_scheduled_gets_nothing),
		town_test(under_the_lock_of_another_a_stray_gets_nothing),
		town_test(a_stray_behind_it_does_not_hold_a_pod_up),
		town_test(a_pod_with_forged_annotations_gets_nothing_of_another),
		town_test(a_pod_that_is_bound_later_does_not_pay_for_one_that_is_gone),
		town_test(a_pod_without_a_lock_is_found),
		town_test(without_the_lock_that_is_required_a_pod_gets_nothing),
		town_test(a_lock_that_was_handed_over_changes_nobodys_devices),
		town_test(a_pod_that_the_kubelet_does_not_list_is_not_served),
		town_test(a_forged_pod_gets_nothing_while_anothers_lock_is_held),
		town_test(the_record_says_who_is_asked_for),
		town_test(a_pod_with_slices_by_the_record_gets_no_more),
		town_test(a_pod_that_becomes_known_after_the_record_is_served),
		town_test(who_waited_before_and_is_gone_holds_nobody_up),
		town_test(who_waits_before_it_is_there_by_the_servers_word),
		town_test(a_pod_with_the_name_of_one_that_is_gone_is_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
