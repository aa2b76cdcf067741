/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program on a simulated node whose cards are cut into instances, before a kubelet and an API server of the test's own: pods
 * come, go, and ask for what cannot be. The arguments are the program and a library to install.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/instances.h"
#include "net/rpc.h"
#include "tests/plugin/cut_node.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

static void an_instance_is_made_recorded_kept_and_removed(void **state)
{
	struct stage_answer answer;
	_cleanup_free_ char *now = NULL;
	char uuid[MACHINE_UUID_SIZE];
	json_t *pod;

	stage_start(NULL);
	cut_bind("a", 0, "3g.71gb", 4, 4);
	cut_allocate(0, 1, &answer);
	snprintf(uuid, sizeof(uuid), "%s", cut_instance(0, "3g.71gb", 4));
	cut_assert_list(&answer, uuid);
	assert_int_equal(answer.message->container_responses[0]->n_envs, 1);
	assert_int_equal(answer.message->container_responses[0]->n_mounts, 0);
	stage_answer_free(&answer);
	assert_int_equal(cut_count(0), 1);
	assert_true(cut_is_annotated("a", INSTANCES_ANNOTATION, uuid));
	assert_true(cut_is_annotated("a", INSTANCES_ANNOTATION, "\"gpuInstanceID\":"));
	assert_true(cut_is_annotated("a", CUT_PHASE, "success"));
	cut_await_annotation(NULL, STAGE_LOCK, NULL);
	apiserver_set_status(&stage.api, "a", "Running");
	/* while it is terminating, another gets its own */
	now = apiserver_annotation(&stage.api, "a", INSTANCES_ANNOTATION);
	pod = cut_make_pod("a", ";", now, 1);
	json_object_set_new(json_object_get(pod, "metadata"), "deletionTimestamp",
		json_string("2026-11-22T00:00:00Z"));
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", "Running", "startTime", "2026-11-22T00:00:00Z"));
	apiserver_put_pod(&stage.api, pod);
	cut_bind("b", 0, "1g.18gb", 0, 1);
	cut_serve("b", 0, "1g.18gb", 0);
	cut_bind("x", 0, "2g.35gb", 4, 2);
	cut_refuse(0, "another container was given MIG-");
	stage_unbind("x", "Failed");
	assert_int_equal(cut_count(0), 2);
	assert_string_equal(cut_instance(0, "3g.71gb", 4), uuid);
	apiserver_delete_pod(&stage.api, "a");
	cut_await_counts(1, 0, 30);
	apiserver_set_status(&stage.api, "b", "Succeeded");
	cut_await_counts(0, 0, 30);
}

/* Of its first container. */
static json_t *wants_two(json_t *pod)
{
	const json_t *container =
		json_array_get(json_object_get(json_object_get(pod, "spec"), "containers"), 0);

	json_object_set_new(json_object_get(json_object_get(container, "resources"), "limits"),
		"nvidia.com/gpu", json_string("2"));
	return pod;
}

static void several_instances_and_containers_are_as_reserved(void **state)
{
	char slots[512], text[2048] = "", list[256];
	struct stage_answer answer;

	stage_start(NULL);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,1,1:;%s,NVIDIA,1,1:;", cut.gpus[1], cut.gpus[1]);
	/* entries come in any order */
	cut_reserve(text, sizeof(text), 1, 0, 1, "2g.35gb", 2, 2);
	cut_reserve(text, sizeof(text), 0, 0, 1, "1g.18gb", 6, 1);
	cut_bind_pod("a", cut_make_pod("a", slots, text, 2));
	cut_allocate(1, 1, &answer);
	cut_assert_list(&answer, cut_instance(1, "1g.18gb", 6));
	stage_answer_free(&answer);
	assert_int_equal(cut_count(1), 1);
	cut_allocate(1, 1, &answer);
	cut_assert_list(&answer, cut_instance(1, "2g.35gb", 2));
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, "a", "Running");
	stage_tell();
	/* one container, two instances of two cards */
	snprintf(slots, sizeof(slots), "%s,NVIDIA,1,1:%s,NVIDIA,1,1:;", cut.gpus[1], cut.gpus[0]);
	text[0] = '\0';
	cut_reserve(text, sizeof(text), 0, 0, 1, "1g.18gb", 0, 1);
	cut_reserve(text, sizeof(text), 0, 1, 0, "7g.141gb", 0, 8);
	cut_bind_pod("b", wants_two(cut_make_pod("b", slots, text, 1)));
	cut_allocate(1, 2, &answer);
	snprintf(list, sizeof(list), "%s,", cut_instance(1, "1g.18gb", 0));
	strcat(list, cut_instance(0, "7g.141gb", 0));
	cut_assert_list(&answer, list);
	stage_answer_free(&answer);
	assert_int_equal(cut_count(1), 3);
}

struct preferred {
	char ids[4][128];
	size_t count;
	bool is_done;
};

static void take_preferred(void *context, const void *message, size_t bytes)
{
	struct preferred *preferred = context;
	V1beta1__PreferredAllocationResponse *answer =
		v1beta1__preferred_allocation_response__unpack(NULL, bytes, message);

	assert_non_null(answer);
	if (answer->n_container_responses == 1)
		preferred->count = answer->container_responses[0]->n_deviceids;
	assert_true(preferred->count <= ARRAY_SIZE(preferred->ids));
	for (size_t i = 0; i < preferred->count; i++)
		snprintf(preferred->ids[i], sizeof(preferred->ids[i]), "%s",
			answer->container_responses[0]->deviceids[i]);
	v1beta1__preferred_allocation_response__free_unpacked(answer, NULL);
}

static void preferred_ends(void *context, int status, const char *words)
{
	((struct preferred *)context)->is_done = true;
}

/* Two instances of one card are two of its slices in the kubelet's books. */
static void the_kubelet_is_told_which_slices_instances_are(void **state)
{
	static const struct rpc_listener listener = {take_preferred, preferred_ends};
	V1beta1__ContainerPreferredAllocationRequest container =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
	V1beta1__PreferredAllocationRequest message = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
	static struct preferred preferred;
	char slots[512], text[2048] = "", ids[20][128], *list[20];
	struct rpc_request *call;
	uint8_t packed[4096];

	stage_start(NULL);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,1,1:%s,NVIDIA,1,1:;", cut.gpus[1], cut.gpus[1]);
	cut_reserve(text, sizeof(text), 0, 0, 1, "1g.18gb", 6, 1);
	cut_reserve(text, sizeof(text), 0, 1, 1, "1g.18gb", 5, 1);
	cut_bind_pod("a", wants_two(cut_make_pod("a", slots, text, 1)));
	for (unsigned i = 0; i < 20; i++) {
		list[i] = ids[i];
		snprintf(ids[i], sizeof(ids[i]), "%s-%u", cut.gpus[i / 10], i % 10);
	}
	container.available_deviceids = list;
	container.n_available_deviceids = 20;
	container.allocation_size = 2;
	message.container_requests = containers;
	message.n_container_requests = 1;
	assert_int_equal(rpc_send(stage.rpc, stage_path(stage.endpoint),
				 "/v1beta1.DevicePlugin/GetPreferredAllocation", packed,
				 v1beta1__preferred_allocation_request__pack(&message, packed),
				 20000000000ull, &listener, &preferred, &call),
		0);
	stage_wait(&preferred.is_done, 30);
	assert_int_equal(preferred.count, 2);
	assert_string_equal(preferred.ids[0], ids[10]);
	assert_string_equal(preferred.ids[1], ids[11]);
}

/* A program in the first place of the first card, whose pod is gone. */
static pid_t outlive_pod(void)
{
	pid_t pid;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	pid = cut_start_program(0, cut_instance(0, "1g.18gb", 0));
	apiserver_delete_pod(&stage.api, "a");
	return pid;
}

static void a_program_that_outlives_its_pod_stops_nobody_else(void **state)
{
	pid_t pid = outlive_pod();

	cut_bind("b", 0, "1g.18gb", 1, 1);
	cut_serve("b", 0, "1g.18gb", 1);
	/* it is not given to another with the program in it */
	cut_bind("x", 0, "1g.18gb", 0, 1);
	cut_refuse(0, "is in the way of 1g.18gb at 0:1");
	stage_unbind("x", "Failed");
	assert_int_equal(cut_count(0), 2);
	mig_program_end(pid);
	cut_await_counts(1, 0, 30);
	cut_bind("d", 0, "1g.18gb", 0, 1);
	cut_serve("d", 0, "1g.18gb", 0);
}

static void end_program(void *context)
{
	mig_program_end(*(pid_t *)context);
}

/* A pod that is deleted by force is gone before its program. */
static void a_program_that_is_about_to_end_is_waited_for(void **state)
{
	struct loop_timer end = {.due = end_program};
	pid_t pid = outlive_pod();

	cut_bind("b", 0, "2g.35gb", 0, 2);
	end.context = &pid;
	loop_timer_set(stage.loop, &end, clock_now_ns() + 300 * UINT64_C(1000000));
	cut_serve("b", 0, "2g.35gb", 0);
	assert_int_equal(cut_count(0), 1);
}

static void what_does_not_fit_is_refused_with_a_sentence(void **state)
{
#define AT(gpu, profile, start, size)                                                             \
	"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"" gpu "\",\"profile\":\"" profile \
	"\",\"placement\":{\"start\":" start ",\"size\":" size "}}]"
	static const struct {
		const char *instances, *why;
	} rows[] = {{NULL, "0 instances are reserved for the container, and 1 are assigned"},
		{"nonsense", "no list of instances"}, {"[{}]", "entry 0 has no containerIndex"},
		{AT("GPU-other", "1g.18gb", "1", "1"), "an instance of GPU-other is reserved"},
		{AT("@", "1g.10gb", "1", "1"), "no place for 1g.10gb at 1:1"},
		{AT("@", "1g.18gb", "7", "1"), "no place for 1g.18gb at 7:1"},
		{AT("@", "2g.35gb", "1", "2"), "no place for 2g.35gb at 1:2"},
		{AT("@", "7g.141gb", "0", "8"), "another container was given MIG-"},
		{AT("@", "1g.18gb", "0", "1"), "another container was given MIG-"}};

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *text = NULL;
		const char *at = rows[i].instances ? strchr(rows[i].instances, '@') : NULL;
		char slots[256];

		snprintf(slots, sizeof(slots), "%s,NVIDIA,1000,10:;", cut.gpus[0]);
		if (at && asprintf(&text, "%.*s%s%s", (int)(at - rows[i].instances),
				  rows[i].instances, cut.gpus[0], at + 1) < 0)
			fail();
		cut_bind_pod("x", cut_make_pod("x", slots, text ? text : rows[i].instances, 1));
		cut_refuse(0, rows[i].why);
		cut_await_annotation("x", CUT_PHASE, "failed");
		cut_await_annotation(NULL, STAGE_LOCK, NULL);
		stage_unbind("x", "Failed");
		assert_int_equal(cut_count(0), 1);
	}
	/* and the next is served */
	cut_bind("b", 0, "3g.71gb", 4, 4);
	cut_serve("b", 0, "3g.71gb", 4);
}

/* What a tenant writes on a pod that runs takes nothing from another, and a text that is broken only its own. */
static void a_pod_with_a_forged_annotation_harms_only_itself(void **state)
{
	json_t *pod;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	cut_bind("b", 0, "1g.18gb", 1, 1);
	cut_serve("b", 0, "1g.18gb", 1);
	pod = cut_make_pod("b", ";", "[{\"containerIndex\":", 1);
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", "Running", "startTime", "2026-11-22T00:00:00Z"));
	apiserver_put_pod(&stage.api, pod);
	cut_await_counts(1, 0, 30);
	assert_string_not_equal(cut_instance(0, "1g.18gb", 0), "");
	cut_bind("d", 0, "1g.18gb", 1, 1);
	cut_serve("d", 0, "1g.18gb", 1);
}

/* Of two pods with places the first is gone, and the plugin has not heard of it. */
static void start_with_one_gone(void)
{
	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	cut_bind("b", 0, "1g.18gb", 1, 1);
	cut_serve("b", 0, "1g.18gb", 1);
	apiserver_delay_watch(&stage.api, true);
	apiserver_delete_pod(&stage.api, "a");
}

/* The scheduler has heard that they are gone, and the plugin has not. */
static void the_place_of_pods_that_are_gone_is_given_before_the_watch_says_so(void **state)
{
	start_with_one_gone();
	apiserver_set_status(&stage.api, "b", "Succeeded");
	cut_bind("d", 0, "2g.35gb", 0, 2);
	cut_serve("d", 0, "2g.35gb", 0);
	assert_int_equal(cut_count(0), 1);
	apiserver_delay_watch(&stage.api, false);
	apiserver_delete_pod(&stage.api, "d");
	cut_await_counts(0, 0, 30);
}

/* It does not say which instance it has, so that none of the card was removed. */
static void the_card_of_a_pod_that_is_gone_is_cut_anew_before_the_watch_says_so(void **state)
{
	char slots[256];
	json_t *pod;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,1000,10:;", cut.gpus[0]);
	pod = cut_make_pod("u", slots, NULL, 1);
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", "Running", "startTime", "2026-11-22T00:00:00Z"));
	apiserver_put_pod(&stage.api, pod);
	apiserver_delete_pod(&stage.api, "a");
	stage_tell();
	apiserver_delay_watch(&stage.api, true);
	apiserver_delete_pod(&stage.api, "u");
	cut_bind("b", 0, "2g.35gb", 0, 2);
	cut_serve("b", 0, "2g.35gb", 0);
	assert_int_equal(cut_count(0), 1);
}

/* One that is there ends it, so many pods that claim a place by a forged annotation cost one read, and others none. */
static void who_claims_a_place_is_read_once_and_delays_nobody_else(void **state)
{
	char uuid[MACHINE_UUID_SIZE], text[512], name[] = "1";
	unsigned reads;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	snprintf(uuid, sizeof(uuid), "%s", cut_instance(0, "1g.18gb", 0));
	snprintf(text, sizeof(text),
		"[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"%s\",\"profile\":"
		"\"7g.141gb\",\"placement\":{\"start\":0,\"size\":8},\"gpuInstanceID\":0,"
		"\"computeInstanceID\":0,\"migUUID\":\"%s\"}]",
		cut.gpus[0], uuid);
	for (; name[0] < '9'; name[0]++) {
		json_t *pod = cut_make_pod(name, ";", text, 1);

		json_object_set_new(pod, "status",
			json_pack("{s:s,s:s}", "phase", "Running", "startTime",
				"2026-11-22T00:00:00Z"));
		apiserver_put_pod(&stage.api, pod);
	}
	cut_bind("b", 0, "1g.18gb", 1, 1);
	stage_tell();
	reads = apiserver_reads(&stage.api);
	cut_refuse(0, "another container was given MIG-");
	assert_int_equal(apiserver_reads(&stage.api) - reads, 1);
	cut_await_annotation("b", CUT_PHASE, "failed");
	cut_await_annotation(NULL, STAGE_LOCK, NULL);
	stage_unbind("b", "Failed");
	cut_bind("d", 1, "1g.18gb", 1, 1);
	stage_tell();
	reads = apiserver_reads(&stage.api);
	cut_serve("d", 1, "1g.18gb", 1);
	assert_int_equal(apiserver_reads(&stage.api), reads);
	assert_string_equal(cut_instance(0, "1g.18gb", 0), uuid);
}

/* The watch says nothing of it, and the server has it. */
static void who_is_there_keeps_its_place_while_the_watch_is_late(void **state)
{
	start_with_one_gone();
	cut_bind("x", 0, "2g.35gb", 0, 2);
	cut_refuse(0, "another container was given MIG-");
	assert_string_not_equal(cut_instance(0, "1g.18gb", 1), "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cut_setup, cut_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(an_instance_is_made_recorded_kept_and_removed),
		TEST(several_instances_and_containers_are_as_reserved),
		TEST(the_kubelet_is_told_which_slices_instances_are),
		TEST(a_program_that_outlives_its_pod_stops_nobody_else),
		TEST(a_program_that_is_about_to_end_is_waited_for),
		TEST(what_does_not_fit_is_refused_with_a_sentence),
		TEST(a_pod_with_a_forged_annotation_harms_only_itself),
		TEST(the_place_of_pods_that_are_gone_is_given_before_the_watch_says_so),
		TEST(the_card_of_a_pod_that_is_gone_is_cut_anew_before_the_watch_says_so),
		TEST(who_is_there_keeps_its_place_while_the_watch_is_late),
		TEST(who_claims_a_place_is_read_once_and_delays_nobody_else),
	};

	if (argc != 3)
		return 2;
	cut_set_files(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
