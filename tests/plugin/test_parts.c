/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program on a simulated node whose cards are cut into instances, before a kubelet and an API server of the test's own. The
 * arguments are the program and a library to install.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/instances.h"
#include "net/rpc.h"
#include "sim/machine/event.h"
#include "sim/machine/mig.h"
#include "sim/machine/presence.h"
#include "tests/plugin/cut_node.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

#define MIXED_NODE                                       \
	"{\"nodeconfig\":[{\"name\":\"" STAGE_NODE "\"," \
	"\"devicemodes\":{\"mig\":{\"index\":[1]}}}]}"

/* ----- what the node is ----- */

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

/* ----- one pod's life ----- */

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
	stage_run(50);
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

/* ----- what ends in between ----- */

static bool one_is_made(void)
{
	return cut_count(0) == 1;
}

/* Sends a request whose answer nobody waits for. */
static void ask_and_kill(void)
{
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest message = V1BETA1__ALLOCATE_REQUEST__INIT;
	static const struct rpc_listener none = {NULL, NULL};
	struct rpc_request *call;
	char id[128], *ids[] = {id};
	uint8_t packed[512];

	snprintf(id, sizeof(id), "%s-0", cut.gpus[0]);
	container.devices_ids = ids;
	container.n_devices_ids = 1;
	message.container_requests = containers;
	message.n_container_requests = 1;
	apiserver_lose_patches(&stage.api, true);
	assert_int_equal(
		rpc_send(stage.rpc, stage_path(stage.endpoint), "/v1beta1.DevicePlugin/Allocate",
			packed, v1beta1__allocate_request__pack(&message, packed), 20000000000ull,
			&none, NULL, &call),
		0);
	stage_await(one_is_made, 30);
	rpc_request_free(call);
	assert_int_equal(stage_stop(SIGKILL), -1);
	stage_run(200); /* what it has sent is lost, too */
	apiserver_lose_patches(&stage.api, false);
	assert_false(cut_is_annotated("a", INSTANCES_ANNOTATION, "migUUID"));
}

static void killed_between_making_and_recording_nothing_is_left_over(void **state)
{
	stage_start(NULL);
	cut_bind("a", 0, "2g.35gb", 2, 2);
	ask_and_kill();
	/* the kubelet asks again: it is this pod's still */
	stage_start(NULL);
	stage_run(300);
	assert_int_equal(cut_count(0), 1);
	cut_serve("a", 0, "2g.35gb", 2);
	assert_int_equal(cut_count(0), 1);
	assert_true(cut_is_annotated("a", INSTANCES_ANNOTATION, cut_instance(0, "2g.35gb", 2)));
	apiserver_delete_pod(&stage.api, "a");
	cut_await_counts(0, 0, 30);
	/* the kubelet gives it up */
	cut_bind("a", 0, "2g.35gb", 2, 2);
	ask_and_kill();
	apiserver_set_status(&stage.api, "a", "Failed");
	stage_start(NULL);
	cut_await_counts(0, 0, 30);
}

static void a_plugin_that_restarts_adopts_what_pods_have(void **state)
{
	char uuid[MACHINE_UUID_SIZE];
	pid_t pid;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 3, 1);
	cut_serve("a", 0, "1g.18gb", 3);
	snprintf(uuid, sizeof(uuid), "%s", cut_instance(0, "1g.18gb", 3));
	pid = cut_start_program(0, uuid);
	assert_int_equal(stage_stop(SIGKILL), -1);
	stage_start(NULL);
	stage_run(300);
	assert_string_equal(cut_instance(0, "1g.18gb", 3), uuid);
	cut_bind("b", 0, "1g.18gb", 4, 1);
	cut_serve("b", 0, "1g.18gb", 4);
	mig_program_end(pid);
	apiserver_delete_pod(&stage.api, "a");
	cut_await_counts(1, 0, 30);
}

static void forget_instances(int gpu)
{
	struct mig_card card;

	mig_read(cut.machine, gpu, &card);
	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		if (card.instance[i].is_used) {
			mig_destroy_compute(cut.machine, gpu, card.instance[i].id, 0);
			assert_int_equal(mig_destroy(cut.machine, gpu, card.instance[i].id), 0);
		}
	assert_int_equal(mig_set_mode(cut.machine, gpu, false), 0);
}

/* It has no instances then, and the kubelet starts the containers with what they had. */
static void a_node_that_restarts_has_its_instances_before_the_kubelet_asks(void **state)
{
	char uuids[2][MACHINE_UUID_SIZE];

	stage_start(NULL);
	cut_bind("a", 0, "3g.71gb", 0, 4);
	cut_serve("a", 0, "3g.71gb", 0);
	cut_bind("b", 1, "1g.18gb", 5, 1);
	cut_serve("b", 1, "1g.18gb", 5);
	snprintf(uuids[0], MACHINE_UUID_SIZE, "%s", cut_instance(0, "3g.71gb", 0));
	snprintf(uuids[1], MACHINE_UUID_SIZE, "%s", cut_instance(1, "1g.18gb", 5));
	assert_int_equal(stage_stop(SIGTERM), 0);
	for (int gpu = 0; gpu < 2; gpu++)
		forget_instances(gpu);
	apiserver_delete_pod(&stage.api, "b");
	stage_start(NULL);
	assert_string_equal(cut_instance(0, "3g.71gb", 0), uuids[0]);
	assert_int_equal(cut_count(1), 0);
}

/* ----- what stands in the way ----- */

static void a_program_that_outlives_its_pod_stops_nobody_else(void **state)
{
	pid_t pid;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	pid = cut_start_program(0, cut_instance(0, "1g.18gb", 0));
	apiserver_delete_pod(&stage.api, "a");
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
	pid_t pid;

	stage_start(NULL);
	cut_bind("a", 0, "1g.18gb", 0, 1);
	cut_serve("a", 0, "1g.18gb", 0);
	pid = cut_start_program(0, cut_instance(0, "1g.18gb", 0));
	apiserver_delete_pod(&stage.api, "a");
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

/* ----- cards of other kinds ----- */

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
	stage_run(50);
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
	forget_instances(0);
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
		TEST(an_instance_is_made_recorded_kept_and_removed),
		TEST(several_instances_and_containers_are_as_reserved),
		TEST(the_kubelet_is_told_which_slices_instances_are),
		TEST(killed_between_making_and_recording_nothing_is_left_over),
		TEST(a_plugin_that_restarts_adopts_what_pods_have),
		TEST(a_node_that_restarts_has_its_instances_before_the_kubelet_asks),
		TEST(a_program_that_outlives_its_pod_stops_nobody_else),
		TEST(a_program_that_is_about_to_end_is_waited_for),
		TEST(what_does_not_fit_is_refused_with_a_sentence),
		TEST(a_pod_with_a_forged_annotation_harms_only_itself),
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
