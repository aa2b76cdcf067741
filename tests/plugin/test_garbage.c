/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that no kubelet sends, and who may send any. The arguments are the program and a library to install. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/plugin/stage.h"
#include "tests/unit/cmocka_ready.h"

#define LIMITS \
	"{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"3000\",\"nvidia.com/gpucores\":\"30\"}"
#define DEADLINE_NS (20ull * 1000000000)
#define MOST_BYTES  (5u << 20)
#define ROUNDS	    200

static const char *program, *library;

struct end {
	bool is_done;
	int status;
};

static void take_message(void *context, const void *message, size_t bytes)
{
}

static void take_end(void *context, int status, const char *words)
{
	struct end *end = context;

	end->is_done = true;
	end->status = status;
}

static int call(const char *method, const void *message, size_t bytes)
{
	static const struct rpc_listener listener = {take_message, take_end};
	struct rpc_request *request;
	struct end end = {false, 0};
	char path[64];

	snprintf(path, sizeof(path), "/v1beta1.DevicePlugin/%s", method);
	assert_int_equal(rpc_send(stage.rpc, stage_path(stage.endpoint), path, message, bytes,
				 DEADLINE_NS, &listener, &end, &request),
		0);
	stage_wait(&end.is_done, 25);
	return end.status;
}

static void one_pod_is_served(const char *name, const char *uid)
{
	const char *first = stage.list->devices[0]->id, *ids[] = {first};
	struct stage_answer answer;
	char slot[128];

	snprintf(slot, sizeof(slot), "%.*s,NVIDIA,3000,30:;", (int)(strrchr(first, '-') - first),
		first);
	stage_bind(name, uid, slot, LIMITS);
	stage_tell();
	stage_allocate(ids, 1, &answer);
	if (answer.status)
		fail_msg("%s", answer.words);
	stage_answer_free(&answer);
	stage_unbind(name, "Succeeded");
}

static void random_bytes_are_refused(void **state)
{
	static const char *const methods[] = {"GetDevicePluginOptions", "Allocate",
		"GetPreferredAllocation", "PreStartContainer", "NoSuchMethod"};
	unsigned char bytes[96];

	srand(1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t count = (size_t)rand() % sizeof(bytes);

		for (size_t j = 0; j < count; j++)
			bytes[j] = (unsigned char)rand();
		/* the first is often what begins a list of containers */
		bytes[0] = i % 2 ? 0x0a : bytes[0];
		call(methods[i % ARRAY_SIZE(methods)], bytes, count);
	}
	one_pod_is_served("after", "8f3c1f0e-2b7a-4a61-9d0f-000000000001");
}

static int allocate(char *const *ids, size_t count)
{
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest message = V1BETA1__ALLOCATE_REQUEST__INIT;
	static uint8_t packed[MOST_BYTES + 64];

	container.devices_ids = (char **)ids;
	container.n_devices_ids = count;
	message.container_requests = containers;
	message.n_container_requests = 1;
	assert_true(v1beta1__allocate_request__get_packed_size(&message) <= sizeof(packed));
	return call("Allocate", packed, v1beta1__allocate_request__pack(&message, packed));
}

/* And what is nothing (D39). */
static void what_is_far_too_much_is_refused(void **state)
{
	static char *many[10000], large[MOST_BYTES];
	char *one[] = {large}, nothing[] = "", *empty[] = {nothing};

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = stage.list->devices[0]->id;
	assert_int_not_equal(allocate(many, ARRAY_SIZE(many)), 0);
	assert_int_not_equal(allocate(empty, 1), 0);
	assert_int_not_equal(allocate(NULL, 0), 0);
	memset(large, 'x', 1u << 20);
	assert_int_not_equal(allocate(one, 1), 0);
	memset(large, 'x', MOST_BYTES - 1); /* more than gRPC takes */
	assert_int_not_equal(allocate(one, 1), 0);
	one_pod_is_served("after", "8f3c1f0e-2b7a-4a61-9d0f-000000000002");
}

static void prefer(int size)
{
	V1beta1__ContainerPreferredAllocationRequest container =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
	V1beta1__PreferredAllocationRequest message = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
	char nothing[] = "", word[] = "x",
	     *ids[] = {nothing, word, stage.list->devices[0]->id, stage.list->devices[0]->id};
	uint8_t packed[512];

	container.available_deviceids = ids;
	container.n_available_deviceids = ARRAY_SIZE(ids);
	container.must_include_deviceids = ids;
	container.n_must_include_deviceids = ARRAY_SIZE(ids);
	container.allocation_size = size;
	message.container_requests = containers;
	message.n_container_requests = 1;
	call("GetPreferredAllocation", packed,
		v1beta1__preferred_allocation_request__pack(&message, packed));
}

static void a_preference_for_anything_ends_nothing(void **state)
{
	static const int sizes[] = {-1, INT32_MIN, 0, 1, 2, 5, 100000, INT32_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		prefer(sizes[i]);
	one_pod_is_served("after", "8f3c1f0e-2b7a-4a61-9d0f-000000000003");
}

/* Whoever could would be given the slices of the pod that waits. */
static void no_other_user_of_the_node_is_listened_to(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct stat info;
	int status, fd;
	pid_t child;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", stage_path(stage.endpoint));
	assert_int_equal(stat(address.sun_path, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	if (geteuid() != 0)
		return;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 &&
					errno == EACCES
				? 0
				: 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int setup(void **state)
{
	if (stage_begin(state, program, library))
		return -1;
	umask(0); /* as a container's may be */
	stage_start(NULL);
	stage_watch();
	return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, stage_end)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(random_bytes_are_refused),
		TEST(what_is_far_too_much_is_refused),
		TEST(a_preference_for_anything_ends_nothing),
		TEST(no_other_user_of_the_node_is_listened_to),
	};

	if (argc != 3)
		return 2;
	program = argv[1];
	library = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
