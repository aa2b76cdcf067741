/* SPDX-License-Identifier: Apache-2.0 */
/* Instances when the program ends, or the node: the arguments are those of test_parts.c. */
#include <signal.h>
#include <stdio.h>

#include "kube/instances.h"
#include "net/rpc.h"
#include "tests/plugin/cut_node.h"
#include "tests/plugin/mig_program.h"
#include "tests/unit/cmocka_ready.h"

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

#define TEST(f) cmocka_unit_test_setup_teardown(f, cut_setup, cut_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(killed_between_making_and_recording_nothing_is_left_over),
		TEST(a_plugin_that_restarts_adopts_what_pods_have),
		TEST(a_node_that_restarts_has_its_instances_before_the_kubelet_asks),
	};

	if (argc != 3)
		return 2;
	cut_set_files(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
