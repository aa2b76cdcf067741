/* SPDX-License-Identifier: Apache-2.0 */
/* Instances when the program ends, or the node: the arguments are those of test_parts.c. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "kube/instances.h"
#include "net/rpc.h"
#include "sim/machine/mig.h"
#include "tests/plugin/cut_node.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

static bool one_is_made(void)
{
	return cut_count(0) == 1;
}

static bool has_heard(void)
{
	return apiserver_has_heard(&stage.api);
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
	stage_await(has_heard, 30); /* what it has sent is lost, too */
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
	stage_tell();
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

/* D23: one that has nothing yet is no reason to stop. */
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
	stage_tell();
	stage_run(300);
	assert_string_equal(cut_instance(0, "1g.18gb", 3), uuid);
	cut_bind("b", 0, "1g.18gb", 4, 1);
	cut_serve("b", 0, "1g.18gb", 4);
	mig_program_end(pid);
	apiserver_delete_pod(&stage.api, "a");
	cut_await_counts(1, 0, 30);
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
		cut_forget_instances(gpu);
	apiserver_delete_pod(&stage.api, "b");
	stage_start(NULL);
	assert_string_equal(cut_instance(0, "3g.71gb", 0), uuids[0]);
	assert_int_equal(cut_count(1), 0);
}

static void make_instance(int gpu, const char *profile, int start)
{
	const struct board *board = machine_board(cut.machine);
	unsigned id, compute;

	for (unsigned i = 0;; i++) {
		const struct mig_profile *at = mig_profile_at(board, i);

		assert_non_null(at);
		if (strcmp(at->name, profile) != 0)
			continue;
		assert_int_equal(mig_create(cut.machine, gpu, at, start, &id), 0);
		assert_int_equal(
			mig_create_compute(cut.machine, gpu, id, at->slices, -1, &compute), 0);
		return;
	}
}

/* HAMi's plugin up to 2.9 has made it; which one a pod has only that plugin knew. */
static void instances_of_another_version_s_pods_stay(void **state)
{
	char slots[128];
	json_t *pod;

	for (int gpu = 0; gpu < 2; gpu++) {
		assert_int_equal(mig_set_mode(cut.machine, gpu, true), 0);
		make_instance(gpu, "1g.18gb", 0);
	}
	snprintf(slots, sizeof(slots), "%s[1g.18gb-0],NVIDIA,16384,13:;", cut.gpus[0]);
	pod = cut_make_pod("a", slots, NULL, 1);
	json_object_set_new(json_object_get(json_object_get(pod, "metadata"), "annotations"),
		CUT_PHASE, json_string("success"));
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", "Running", "startTime", "2026-11-22T00:00:00Z"));
	apiserver_put_pod(&stage.api, pod);
	stage_start(NULL);
	cut_await_counts(1, 0, 30);
	/* also when others come and go there */
	cut_bind("b", 1, "1g.18gb", 1, 1);
	cut_serve("b", 1, "1g.18gb", 1);
	apiserver_delete_pod(&stage.api, "b");
	cut_await_counts(1, 0, 30);
	apiserver_delete_pod(&stage.api, "a");
	cut_await_counts(0, 0, 30);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, cut_setup, cut_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(killed_between_making_and_recording_nothing_is_left_over),
		TEST(a_plugin_that_restarts_adopts_what_pods_have),
		TEST(a_node_that_restarts_has_its_instances_before_the_kubelet_asks),
		TEST(instances_of_another_version_s_pods_stay),
	};

	if (argc != 3)
		return 2;
	cut_set_files(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
