/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program on a simulated node whose cards are cut into instances, before a kubelet and an API server of the test's own. The
 * arguments are the program, a library to install and a scheduler's recordings.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/instances.h"
#include "net/rpc.h"
#include "sim/machine/event.h"
#include "sim/machine/mig.h"
#include "tests/plugin/stage.h"
#include "tests/unit/cmocka_ready.h"

#define UID	 "8f3c1f0e-2b7a-4a61-9d0f-0d5b6f3a9c0"
#define PHASE	 "hami.io/bind-phase"
#define ONE	 "{\"nvidia.com/gpu\":\"1\"}"
#define MIG_NODE "{\"nodeconfig\":[{\"name\":\"" STAGE_NODE "\",\"operatingmode\":\"mig\"}]}"
#define MIXED_NODE                                       \
	"{\"nodeconfig\":[{\"name\":\"" STAGE_NODE "\"," \
	"\"devicemodes\":{\"mig\":{\"index\":[1]}}}]}"

static const char *program, *library, *recordings;
static struct machine *machine;
static char gpus[2][MACHINE_UUID_SIZE];

/* ----- the node ----- */

static void take_machine(const char *board)
{
	uint8_t uuid[16];

	setenv("VGPU_SIM_BOARD", board, 1);
	assert_int_equal(machine_open(NULL, NULL, &machine, NULL, 0), 0);
	for (int i = 0; i < 2; i++) {
		board_uuid(machine_board(machine), i, uuid);
		machine_uuid_text(uuid, gpus[i]);
	}
}

static int setup(void **state)
{
	int result = stage_begin(state, program, library);

	stage_configure("", MIG_NODE);
	take_machine("h200x2");
	return result;
}

static int teardown(void **state)
{
	stage_stop(SIGTERM);
	machine_close(machine);
	return stage_end(state);
}

static unsigned count_on(int gpu)
{
	struct mig_card card;
	unsigned count = 0;

	mig_read(machine, gpu, &card);
	for (int i = 0; i < MIG_INSTANCES_MAX; i++)
		count += card.instance[i].is_used;
	return count;
}

/* The name of the instance at exactly this place, "" where there is none. */
static const char *instance_at(int gpu, const char *profile, unsigned start)
{
	static char uuid[MACHINE_UUID_SIZE];
	struct mig_card card;

	uuid[0] = '\0';
	mig_read(machine, gpu, &card);
	for (int i = 0; i < MIG_INSTANCES_MAX; i++) {
		const struct mig_instance *one = &card.instance[i];

		if (one->is_used && one->start == start && one->compute[0].is_used &&
			!strcmp(mig_profile_of_id(machine_board(machine), one->profile_id)->name,
				profile))
			mig_uuid_text(machine_board(machine), gpu, one->id, 0, uuid);
	}
	return uuid;
}

/* A program in a container. */
static pid_t start_program(int gpu, const char *uuid)
{
	struct mig_card card;
	char other[MACHINE_UUID_SIZE];
	int ready[2];
	char byte;
	pid_t pid;

	mig_read(machine, gpu, &card);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct machine *own;

		if (machine_open(NULL, NULL, &own, NULL, 0) || machine_join(own))
			_exit(1);
		for (int i = 0; uuid && i < MIG_INSTANCES_MAX; i++) {
			mig_uuid_text(machine_board(own), gpu, card.instance[i].id, 0, other);
			if (card.instance[i].is_used && !strcmp(uuid, other))
				mig_use(own, gpu, card.instance[i].id, 0);
		}
		machine_set_contexts(own, gpu, 1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_program(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ----- pods ----- */

/* A reservation of one instance, for a text of them. */
static void reserve(char *text, size_t size, unsigned container, unsigned device, int gpu,
	const char *profile, unsigned start, unsigned places)
{
	size_t used = strlen(text);

	if (used)
		text[--used] = '\0';
	snprintf(text + used, size - used,
		"%s{\"containerIndex\":%u,\"deviceIndex\":%u,\"gpuUUID\":\"%s\",\"profile\":\"%s\","
		"\"placement\":{\"start\":%u,\"size\":%u}}]",
		used ? "," : "[", container, device, gpus[gpu], profile, start, places);
}

static json_t *make_pod(const char *name, const char *slots, const char *instances, unsigned count)
{
	char uid[64];
	json_t *containers = json_array(), *annotations, *pod;

	snprintf(uid, sizeof(uid), "%s%.1s", UID, name);
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(
			containers, json_pack("{s:s+,s:{s:o}}", "name", "c", i ? "b" : "a",
					    "resources", "limits", json_loads(ONE, 0, NULL)));
	annotations = json_pack("{s:s,s:s,s:s,s:s,s:s}", "hami.io/vgpu-node", STAGE_NODE,
		"hami.io/bind-time", "1", PHASE, "allocating", "hami.io/vgpu-devices-allocated",
		slots, "hami.io/vgpu-devices-to-allocate", slots);
	if (instances)
		json_object_set_new(annotations, INSTANCES_ANNOTATION, json_string(instances));
	pod = json_pack("{s:{s:s,s:s,s:s,s:s,s:o},s:{s:s,s:o},s:{s:s}}", "metadata", "name", name,
		"namespace", "default", "uid", uid, "creationTimestamp", "2026-11-22T00:00:00Z",
		"annotations", annotations, "spec", "nodeName", STAGE_NODE, "containers",
		containers, "status", "phase", "Pending");
	assert_non_null(pod);
	return pod;
}

static void bind_pod(const char *name, json_t *pod)
{
	char lock[STAGE_PATH_BYTES];

	snprintf(lock, sizeof(lock), "2026-11-22T00:00:00Z,default,%s", name);
	apiserver_annotate_node(&stage.api, STAGE_LOCK, lock);
	apiserver_put_pod(&stage.api, pod);
}

/* A pod of one container with one instance. */
static void bind_one(
	const char *name, int gpu, const char *profile, unsigned start, unsigned places)
{
	char slots[256], text[1024] = "";

	snprintf(slots, sizeof(slots), "%s,NVIDIA,1000,10:;", gpus[gpu]);
	reserve(text, sizeof(text), 0, 0, gpu, profile, start, places);
	bind_pod(name, make_pod(name, slots, text, 1));
}

static void allocate(int gpu, unsigned count, struct stage_answer *answer)
{
	static char texts[8][128];
	const char *ids[8];

	for (unsigned i = 0; i < count; i++) {
		snprintf(texts[i], sizeof(texts[i]), "%s-%u", gpus[gpu], i);
		ids[i] = texts[i];
	}
	stage_allocate(ids, count, answer);
}

static void has_list(const struct stage_answer *answer, const char *expected)
{
	if (answer->status)
		fail_msg("refused: %s", answer->words);
	assert_string_equal(stage_env(answer, "NVIDIA_VISIBLE_DEVICES"), expected);
}

/* The kubelet asks, and the pod runs with the instance that it has reserved. */
static void serve_one(const char *name, int gpu, const char *profile, unsigned start)
{
	struct stage_answer answer;

	allocate(gpu, 1, &answer);
	has_list(&answer, instance_at(gpu, profile, start));
	assert_memory_equal(stage_env(&answer, "NVIDIA_VISIBLE_DEVICES"), "MIG-", 4);
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, name, "Running");
	stage_run(50);
}

static void refuse_one(int gpu, const char *words)
{
	struct stage_answer answer;

	allocate(gpu, 1, &answer);
	assert_int_equal(answer.status, RPC_FAILED_PRECONDITION);
	if (!strstr(answer.words, words))
		fail_msg("'%s' is not in: %s", words, answer.words);
	stage_answer_free(&answer);
}

static bool is_annotated(const char *pod, const char *key, const char *expected)
{
	_cleanup_free_ char *text = apiserver_annotation(&stage.api, pod, key);

	return text && expected ? strstr(text, expected) != NULL : !text && !expected;
}

static const char *awaited_pod, *awaited_key, *awaited_text;

static bool awaited_is_annotated(void)
{
	return is_annotated(awaited_pod, awaited_key, awaited_text);
}

static void await_annotation(const char *pod, const char *key, const char *expected)
{
	awaited_pod = pod;
	awaited_key = key;
	awaited_text = expected;
	stage_await(awaited_is_annotated, 5);
}

static unsigned wanted_on[2];

static bool counts_are_right(void)
{
	return count_on(0) == wanted_on[0] && count_on(1) == wanted_on[1];
}

static void await_counts(unsigned first, unsigned second, unsigned most_s)
{
	wanted_on[0] = first;
	wanted_on[1] = second;
	stage_await(counts_are_right, most_s);
}

/* ----- what the node is ----- */

static json_t *registered(void)
{
	_cleanup_free_ char *text = NULL;

	for (unsigned i = 0; i < 100 && !text; i++) {
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

	stage_configure("nvidia:\n  deviceMemoryScaling: 2\n", MIG_NODE);
	stage_start(NULL);
	mig_read(machine, 1, &card);
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
	bind_one("a", 0, "3g.71gb", 4, 4);
	allocate(0, 1, &answer);
	snprintf(uuid, sizeof(uuid), "%s", instance_at(0, "3g.71gb", 4));
	has_list(&answer, uuid);
	assert_int_equal(answer.message->container_responses[0]->n_envs, 1);
	assert_int_equal(answer.message->container_responses[0]->n_mounts, 0);
	stage_answer_free(&answer);
	assert_int_equal(count_on(0), 1);
	assert_true(is_annotated("a", INSTANCES_ANNOTATION, uuid));
	assert_true(is_annotated("a", INSTANCES_ANNOTATION, "\"gpuInstanceID\":"));
	assert_true(is_annotated("a", PHASE, "success"));
	await_annotation(NULL, STAGE_LOCK, NULL);
	apiserver_set_status(&stage.api, "a", "Running");
	/* while it is terminating, another gets its own */
	now = apiserver_annotation(&stage.api, "a", INSTANCES_ANNOTATION);
	pod = make_pod("a", ";", now, 1);
	json_object_set_new(json_object_get(pod, "metadata"), "deletionTimestamp",
		json_string("2026-11-22T00:00:00Z"));
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", "Running", "startTime", "2026-11-22T00:00:00Z"));
	apiserver_put_pod(&stage.api, pod);
	bind_one("b", 0, "1g.18gb", 0, 1);
	serve_one("b", 0, "1g.18gb", 0);
	bind_one("x", 0, "2g.35gb", 4, 2);
	refuse_one(0, "another container was given MIG-");
	stage_unbind("x", "Failed");
	assert_int_equal(count_on(0), 2);
	assert_string_equal(instance_at(0, "3g.71gb", 4), uuid);
	apiserver_delete_pod(&stage.api, "a");
	await_counts(1, 0, 3);
	apiserver_set_status(&stage.api, "b", "Succeeded");
	await_counts(0, 0, 3);
}

static void several_instances_and_containers_are_as_reserved(void **state)
{
	char slots[512], text[2048] = "", list[256];
	struct stage_answer answer;

	stage_start(NULL);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,1,1:;%s,NVIDIA,1,1:;", gpus[1], gpus[1]);
	/* entries come in any order */
	reserve(text, sizeof(text), 1, 0, 1, "2g.35gb", 2, 2);
	reserve(text, sizeof(text), 0, 0, 1, "1g.18gb", 6, 1);
	bind_pod("a", make_pod("a", slots, text, 2));
	allocate(1, 1, &answer);
	has_list(&answer, instance_at(1, "1g.18gb", 6));
	stage_answer_free(&answer);
	assert_int_equal(count_on(1), 1);
	allocate(1, 1, &answer);
	has_list(&answer, instance_at(1, "2g.35gb", 2));
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, "a", "Running");
	stage_run(50);
	/* one container, two instances of two cards */
	snprintf(slots, sizeof(slots), "%s,NVIDIA,1,1:%s,NVIDIA,1,1:;", gpus[1], gpus[0]);
	text[0] = '\0';
	reserve(text, sizeof(text), 0, 0, 1, "1g.18gb", 0, 1);
	reserve(text, sizeof(text), 0, 1, 0, "7g.141gb", 0, 8);
	{
		json_t *pod = make_pod("b", slots, text, 1);

		json_object_set_new(
			json_object_get(
				json_object_get(
					json_array_get(json_object_get(json_object_get(pod, "spec"),
							       "containers"),
						0),
					"resources"),
				"limits"),
			"nvidia.com/gpu", json_string("2"));
		bind_pod("b", pod);
	}
	allocate(1, 2, &answer);
	snprintf(list, sizeof(list), "%s,", instance_at(1, "1g.18gb", 0));
	strcat(list, instance_at(0, "7g.141gb", 0));
	has_list(&answer, list);
	stage_answer_free(&answer);
	assert_int_equal(count_on(1), 3);
}

/* ----- what ends in between ----- */

static bool one_is_made(void)
{
	return count_on(0) == 1;
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

	snprintf(id, sizeof(id), "%s-0", gpus[0]);
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
	stage_await(one_is_made, 5);
	rpc_request_free(call);
	assert_int_equal(stage_stop(SIGKILL), -1);
	stage_run(200); /* what it has sent is lost, too */
	apiserver_lose_patches(&stage.api, false);
	assert_false(is_annotated("a", INSTANCES_ANNOTATION, "migUUID"));
}

static void killed_between_making_and_recording_nothing_is_left_over(void **state)
{
	stage_start(NULL);
	bind_one("a", 0, "2g.35gb", 2, 2);
	ask_and_kill();
	/* the kubelet asks again: it is this pod's still */
	stage_start(NULL);
	stage_run(300);
	assert_int_equal(count_on(0), 1);
	serve_one("a", 0, "2g.35gb", 2);
	assert_int_equal(count_on(0), 1);
	assert_true(is_annotated("a", INSTANCES_ANNOTATION, instance_at(0, "2g.35gb", 2)));
	apiserver_delete_pod(&stage.api, "a");
	await_counts(0, 0, 3);
	/* the kubelet gives it up */
	bind_one("a", 0, "2g.35gb", 2, 2);
	ask_and_kill();
	apiserver_set_status(&stage.api, "a", "Failed");
	stage_start(NULL);
	await_counts(0, 0, 3);
}

static void a_plugin_that_restarts_adopts_what_pods_have(void **state)
{
	char uuid[MACHINE_UUID_SIZE];
	pid_t pid;

	stage_start(NULL);
	bind_one("a", 0, "1g.18gb", 3, 1);
	serve_one("a", 0, "1g.18gb", 3);
	snprintf(uuid, sizeof(uuid), "%s", instance_at(0, "1g.18gb", 3));
	pid = start_program(0, uuid);
	assert_int_equal(stage_stop(SIGKILL), -1);
	stage_start(NULL);
	stage_run(300);
	assert_string_equal(instance_at(0, "1g.18gb", 3), uuid);
	bind_one("b", 0, "1g.18gb", 4, 1);
	serve_one("b", 0, "1g.18gb", 4);
	end_program(pid);
	apiserver_delete_pod(&stage.api, "a");
	await_counts(1, 0, 3);
}

/* It has no instances then, and the kubelet starts the containers with what they had. */
static void a_node_that_restarts_has_its_instances_before_the_kubelet_asks(void **state)
{
	char uuids[2][MACHINE_UUID_SIZE];
	struct mig_card card;

	stage_start(NULL);
	bind_one("a", 0, "3g.71gb", 0, 4);
	serve_one("a", 0, "3g.71gb", 0);
	bind_one("b", 1, "1g.18gb", 5, 1);
	serve_one("b", 1, "1g.18gb", 5);
	snprintf(uuids[0], MACHINE_UUID_SIZE, "%s", instance_at(0, "3g.71gb", 0));
	snprintf(uuids[1], MACHINE_UUID_SIZE, "%s", instance_at(1, "1g.18gb", 5));
	assert_int_equal(stage_stop(SIGTERM), 0);
	for (int gpu = 0; gpu < 2; gpu++) {
		mig_read(machine, gpu, &card);
		for (int i = 0; i < MIG_INSTANCES_MAX; i++)
			if (card.instance[i].is_used) {
				mig_destroy_compute(machine, gpu, card.instance[i].id, 0);
				assert_int_equal(mig_destroy(machine, gpu, card.instance[i].id), 0);
			}
		mig_set_mode(machine, gpu, false);
	}
	apiserver_delete_pod(&stage.api, "b");
	stage_start(NULL);
	assert_string_equal(instance_at(0, "3g.71gb", 0), uuids[0]);
	assert_int_equal(count_on(1), 0);
}

/* ----- what stands in the way ----- */

static void a_program_that_outlives_its_pod_stops_nobody_else(void **state)
{
	pid_t pid;

	stage_start(NULL);
	bind_one("a", 0, "1g.18gb", 0, 1);
	serve_one("a", 0, "1g.18gb", 0);
	pid = start_program(0, instance_at(0, "1g.18gb", 0));
	apiserver_delete_pod(&stage.api, "a");
	bind_one("b", 0, "1g.18gb", 1, 1);
	serve_one("b", 0, "1g.18gb", 1);
	/* it is not given to another with the program in it */
	bind_one("x", 0, "1g.18gb", 0, 1);
	refuse_one(0, "is in the way of 1g.18gb at 0:1");
	stage_unbind("x", "Failed");
	assert_int_equal(count_on(0), 2);
	end_program(pid);
	await_counts(1, 0, 8);
	bind_one("d", 0, "1g.18gb", 0, 1);
	serve_one("d", 0, "1g.18gb", 0);
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
	bind_one("a", 0, "1g.18gb", 0, 1);
	serve_one("a", 0, "1g.18gb", 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_free_ char *text = NULL;
		const char *at = rows[i].instances ? strchr(rows[i].instances, '@') : NULL;
		char slots[256];

		snprintf(slots, sizeof(slots), "%s,NVIDIA,1000,10:;", gpus[0]);
		if (at && asprintf(&text, "%.*s%s%s", (int)(at - rows[i].instances),
				  rows[i].instances, gpus[0], at + 1) < 0)
			fail();
		bind_pod("x", make_pod("x", slots, text ? text : rows[i].instances, 1));
		refuse_one(0, rows[i].why);
		await_annotation("x", PHASE, "failed");
		await_annotation(NULL, STAGE_LOCK, NULL);
		stage_unbind("x", "Failed");
		assert_int_equal(count_on(0), 1);
	}
	/* and the next is served */
	bind_one("b", 0, "3g.71gb", 4, 4);
	serve_one("b", 0, "3g.71gb", 4);
}

/* What a tenant writes on a pod that runs takes nothing from another, and a text that is broken only its own. */
static void a_pod_with_a_forged_annotation_harms_only_itself(void **state)
{
	json_t *pod;

	stage_start(NULL);
	bind_one("a", 0, "1g.18gb", 0, 1);
	serve_one("a", 0, "1g.18gb", 0);
	bind_one("b", 0, "1g.18gb", 1, 1);
	serve_one("b", 0, "1g.18gb", 1);
	pod = make_pod("b", ";", "[{\"containerIndex\":", 1);
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", "Running", "startTime", "2026-11-22T00:00:00Z"));
	apiserver_put_pod(&stage.api, pod);
	await_counts(1, 0, 3);
	assert_string_not_equal(instance_at(0, "1g.18gb", 0), "");
	bind_one("d", 0, "1g.18gb", 1, 1);
	serve_one("d", 0, "1g.18gb", 1);
}

/* ----- cards of other kinds ----- */

static void cards_of_both_modes_are_handed_out_as_theirs(void **state)
{
	struct stage_answer answer;
	char slots[256];

	stage_configure("", MIXED_NODE);
	stage_start(NULL);
	snprintf(slots, sizeof(slots), "%s,NVIDIA,3000,30:;", gpus[0]);
	bind_pod("a", make_pod("a", slots, NULL, 1));
	allocate(0, 1, &answer);
	has_list(&answer, gpus[0]);
	assert_non_null(stage_mount(&answer, "/etc/vgpu"));
	stage_answer_free(&answer);
	apiserver_set_status(&stage.api, "a", "Running");
	stage_run(50);
	bind_one("b", 1, "1g.18gb", 2, 1);
	serve_one("b", 1, "1g.18gb", 2);
}

static void a_card_that_cannot_be_cut_yet_is_not_offered(void **state)
{
	pid_t pid = start_program(0, NULL);
	json_t *list;
	bool is_healthy = false;

	stage_start(NULL);
	list = registered();
	assert_null(json_object_get(json_array_get(list, 0), "health"));
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "health")));
	json_decref(list);
	bind_one("a", 1, "1g.18gb", 2, 1);
	serve_one("a", 1, "1g.18gb", 2);
	end_program(pid);
	bind_one("b", 1, "1g.18gb", 3, 1);
	serve_one("b", 1, "1g.18gb", 3);
	for (unsigned i = 0; i < 50 && !is_healthy; i++) {
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

	assert_int_equal(mig_set_mode(machine, 0, true), 0);
	stage_configure("", NULL);
	stage_start(NULL);
	list = registered();
	assert_null(json_object_get(json_array_get(list, 0), "health"));
	assert_true(json_is_true(json_object_get(json_array_get(list, 1), "health")));
	json_decref(list);
}

static bool half_is_unhealthy(void)
{
	unsigned count = 0;

	for (size_t i = 0; i < stage.list->n_devices; i++)
		count += !strcmp(stage.list->devices[i]->health, "Unhealthy");
	return count == 10;
}

static void a_card_that_fails_gives_no_instance_and_keeps_those_it_has(void **state)
{
	stage_start(NULL);
	bind_one("a", 0, "1g.18gb", 0, 1);
	serve_one("a", 0, "1g.18gb", 0);
	stage_watch();
	stage_run(300);
	event_raise(machine, 0, &(struct event_report){EVENT_ECC_UNCORRECTED, 0});
	stage_await(half_is_unhealthy, 5);
	bind_one("x", 0, "1g.18gb", 1, 1);
	refuse_one(0, "is not healthy");
	stage_unbind("x", "Failed");
	assert_int_equal(count_on(0), 1);
	bind_one("b", 1, "1g.18gb", 1, 1);
	serve_one("b", 1, "1g.18gb", 1);
}

/* ----- what a scheduler has written ----- */

/* The instance of each entry is exactly where the entry says. */
static void assert_places(const char *text)
{
	struct instances list;
	struct err err = ERR_NULL;

	assert_int_equal(instances_decode(text, &list, &err), 0);
	for (size_t i = 0; i < list.count; i++)
		if (!*instance_at(0, list.at[i].profile, list.at[i].start))
			fail_msg("there is no instance %zu of %s", i, text);
	assert_int_equal(count_on(0), list.count);
	instances_deinit(&list);
}

static void replace_all(char *text, const char *what, const char *by)
{
	assert_int_equal(strlen(what), strlen(by));
	for (char *at = text; (at = strstr(at, what)); at += strlen(by))
		memcpy(at, by, strlen(by));
}

static json_t *pod_of(const json_t *row, const json_t *annotations)
{
	json_t *pod = json_deep_copy(json_object_get(row, "pod"));
	json_t *metadata = json_object_get(pod, "metadata");

	json_object_set_new(metadata, "uid", json_string(UID "r"));
	json_object_set_new(metadata, "namespace", json_string("default"));
	json_object_set_new(metadata, "name", json_string("r"));
	json_object_set_new(metadata, "creationTimestamp", json_string("2026-11-22T00:00:00Z"));
	json_object_set_new(metadata, "annotations",
		json_pack("{s:s,s:s,s:s,s:O,s:O,s:O}", "hami.io/vgpu-node", STAGE_NODE,
			"hami.io/bind-time", "1", PHASE, "allocating",
			"hami.io/vgpu-devices-allocated",
			json_object_get(annotations, "hami.io/vgpu-devices-allocated"),
			"hami.io/vgpu-devices-to-allocate",
			json_object_get(annotations, "hami.io/vgpu-devices-to-allocate"),
			INSTANCES_ANNOTATION, json_object_get(annotations, INSTANCES_ANNOTATION)));
	json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(STAGE_NODE));
	json_object_set_new(pod, "status", json_pack("{s:s}", "phase", "Pending"));
	return pod;
}

/* All containers in the kubelet's order. */
static void allocate_all(const json_t *pod)
{
	static const char *const lists[] = {"initContainers", "containers"};
	const json_t *spec = json_object_get(pod, "spec"), *container;
	size_t at;

	for (unsigned i = 0; i < 2; i++)
		json_array_foreach(json_object_get(spec, lists[i]), at, container)
		{
			const char *count = json_string_value(json_object_get(
				json_object_get(json_object_get(container, "resources"), "limits"),
				"nvidia.com/gpu"));
			struct stage_answer answer;

			if (!count)
				continue;
			allocate(0, (unsigned)strtoul(count, NULL, 10), &answer);
			if (answer.status)
				fail_msg("%s", answer.words);
			stage_answer_free(&answer);
		}
}

/* Of one card that this board has, too. */
static bool is_for_us(const char *text)
{
	struct instances list;
	struct err err = ERR_NULL;
	bool is = text && !instances_decode(text, &list, &err);

	for (size_t i = 0; is && i < list.count; i++)
		is = strcmp(list.at[i].gpu, list.at[0].gpu) == 0 &&
		     (strstr(list.at[i].profile, "g.10gb") ||
			     strstr(list.at[i].profile, "g.20gb") ||
			     strstr(list.at[i].profile, "g.40gb") ||
			     strstr(list.at[i].profile, "g.80gb"));
	if (text)
		instances_deinit(&list);
	return is;
}

static unsigned replay(char *line)
{
	json_t *row = json_loads(line, 0, NULL), *pod;
	const json_t *annotations = json_object_get(json_object_get(row, "result"), "annotations");
	const char *text = json_string_value(json_object_get(annotations, INSTANCES_ANNOTATION));
	struct instances list;
	struct err err = ERR_NULL;
	bool is = is_for_us(text);

	if (is) {
		assert_int_equal(instances_decode(text, &list, &err), 0);
		replace_all(line, list.at[0].gpu, gpus[0]);
		instances_deinit(&list);
		json_decref(row);
		row = json_loads(line, 0, NULL);
		annotations = json_object_get(json_object_get(row, "result"), "annotations");
		pod = pod_of(row, annotations);
		bind_pod("r", json_deep_copy(pod));
		allocate_all(pod);
		json_decref(pod);
		assert_places(
			json_string_value(json_object_get(annotations, INSTANCES_ANNOTATION)));
		assert_true(is_annotated("r", PHASE, "success"));
		apiserver_delete_pod(&stage.api, "r");
		await_counts(0, 0, 3);
	}
	json_decref(row);
	return is;
}

static void what_was_recorded_is_made_as_it_says(void **state)
{
	_cleanup_file_ FILE *file = fopen(recordings, "re");
	_cleanup_free_ char *line = NULL;
	unsigned count = 0;
	size_t size = 0;

	machine_close(machine);
	stage_write("machine", NULL);
	take_machine("h100");
	stage_start(NULL);
	assert_non_null(file);
	while (getline(&line, &size, file) > 0)
		count += replay(line);
	assert_true(count >= 7);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(the_scheduler_is_told_profiles_and_places),
		TEST(the_allowlist_says_which_profiles),
		TEST(an_instance_is_made_recorded_kept_and_removed),
		TEST(several_instances_and_containers_are_as_reserved),
		TEST(killed_between_making_and_recording_nothing_is_left_over),
		TEST(a_plugin_that_restarts_adopts_what_pods_have),
		TEST(a_node_that_restarts_has_its_instances_before_the_kubelet_asks),
		TEST(a_program_that_outlives_its_pod_stops_nobody_else),
		TEST(what_does_not_fit_is_refused_with_a_sentence),
		TEST(a_pod_with_a_forged_annotation_harms_only_itself),
		TEST(cards_of_both_modes_are_handed_out_as_theirs),
		TEST(a_card_that_cannot_be_cut_yet_is_not_offered),
		TEST(a_card_in_mig_mode_that_should_be_whole_is_not_offered),
		TEST(a_card_that_fails_gives_no_instance_and_keeps_those_it_has),
		TEST(what_was_recorded_is_made_as_it_says),
	};

	if (argc != 4)
		return 2;
	program = argv[1];
	library = argv[2];
	recordings = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
