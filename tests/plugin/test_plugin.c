/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device plugin on the simulated node, before a kubelet of the test's own, which comes, goes and refuses.
 * The first argument is the program.
 */
#include <device_plugin.pb-c.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/rpc.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/looping.h"
#include "tests/unit/scratch.h"

#define SECOND_NS    1000000000ull
#define METHOD(name) "/v1beta1.DevicePlugin/" name

static const char *program;
static struct loop *loop;
static struct rpc *rpc;
static struct rpc_server *kubelet;
static pid_t plugin;
static char kubelet_path[300], plugin_path[300];

/* The last registration. */
static unsigned registrations, refusals;
static bool was_registered;
static char endpoint[64], resource[64], version[64];

static void take_registration(
	void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	V1beta1__RegisterRequest *request = v1beta1__register_request__unpack(NULL, bytes, message);

	assert_non_null(request);
	snprintf(endpoint, sizeof(endpoint), "%s", request->endpoint);
	snprintf(resource, sizeof(resource), "%s", request->resource_name);
	snprintf(version, sizeof(version), "%s", request->version);
	v1beta1__register_request__free_unpacked(request, NULL);
	if (refusals) {
		refusals--;
		rpc_refuse(call, RPC_INTERNAL, "not today");
		return;
	}
	registrations++;
	was_registered = true;
	rpc_answer(call, "", 0);
}

static void gone(void *context, struct rpc_call *call)
{
}

static const struct rpc_method methods[] = {{"/v1beta1.Registration/Register", take_registration}};
static const struct rpc_service service = {methods, 1, gone};

static void start_kubelet(void)
{
	struct err err = ERR_NULL;

	was_registered = false;
	if (rpc_serve(rpc, kubelet_path, &service, NULL, &kubelet, &err))
		fail_msg("%s", err.text);
}

static void stop_kubelet(void)
{
	rpc_server_free(kubelet);
	kubelet = NULL;
}

static void start_plugin(void)
{
	plugin = fork();
	assert_true(plugin >= 0);
	if (!plugin) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(program, program, "--kubelet-socket", kubelet_path, (char *)NULL);
		_exit(127);
	}
}

/* Its exit code, after so polite a request. */
static int stop_plugin(void)
{
	int status;

	assert_return_code(kill(plugin, SIGTERM), 0);
	assert_int_equal(waitpid(plugin, &status, 0), plugin);
	plugin = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int setup(void **state)
{
	struct scratch *s;

	if (scratch_setup(state) || loop_new(&loop) || rpc_new(loop, &rpc))
		return -1;
	s = *state;
	registrations = refusals = 0;
	snprintf(kubelet_path, sizeof(kubelet_path), "%s/kubelet.sock", s->folder);
	snprintf(plugin_path, sizeof(plugin_path), "%s/nvidia-gpu.sock", s->folder);
	snprintf(s->file, sizeof(s->file), "%s/machine", s->folder);
	setenv("VGPU_SIM_STATE", s->file, 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	return 0;
}

static int teardown(void **state)
{
	if (plugin)
		stop_plugin();
	rpc_server_free(kubelet);
	kubelet = NULL;
	rpc_free(rpc);
	loop_free(loop);
	return scratch_teardown(state);
}

struct answer {
	uint8_t message[16384];
	size_t bytes;
	bool has_message, is_done;
	int status;
};

static void take_message(void *context, const void *message, size_t bytes)
{
	struct answer *answer = context;

	assert_true(bytes <= sizeof(answer->message));
	memcpy(answer->message, message, bytes);
	answer->bytes = bytes;
	answer->has_message = true;
}

static void take_end(void *context, int status, const char *words)
{
	struct answer *answer = context;

	answer->is_done = true;
	answer->status = status;
}

static struct rpc_request *ask(const char *method, struct answer *answer)
{
	static const struct rpc_listener listener = {take_message, take_end};
	struct rpc_request *request;

	memset(answer, 0, sizeof(*answer));
	assert_int_equal(rpc_send(rpc, plugin_path, method, "", 0, 30 * SECOND_NS, &listener,
				 answer, &request),
		0);
	return request;
}

static void it_registers_and_lists_its_slices(void **state)
{
	static struct answer answer;
	V1beta1__ListAndWatchResponse *list;
	struct rpc_request *watch;
	char id[128];

	start_kubelet();
	start_plugin();
	looping_wait(loop, &was_registered, 30);
	assert_string_equal(endpoint, "nvidia-gpu.sock");
	assert_string_equal(resource, "nvidia.com/gpu");
	assert_string_equal(version, "v1beta1");
	watch = ask(METHOD("ListAndWatch"), &answer);
	looping_wait(loop, &answer.has_message, 30);
	list = v1beta1__list_and_watch_response__unpack(NULL, answer.bytes, answer.message);
	assert_non_null(list);
	assert_int_equal(list->n_devices, 20);
	for (size_t i = 0; i < 20; i++) {
		const char *uuid = list->devices[i / 10 * 10]->id;

		snprintf(
			id, sizeof(id), "%.*s-%zu", (int)(strrchr(uuid, '-') - uuid), uuid, i % 10);
		assert_string_equal(list->devices[i]->id, id);
		assert_memory_equal(id, "GPU-", 4);
		assert_string_equal(list->devices[i]->health, "Healthy");
	}
	assert_string_not_equal(list->devices[0]->id, list->devices[10]->id);
	v1beta1__list_and_watch_response__free_unpacked(list, NULL);
	looping_run(loop, 200);
	assert_false(answer.is_done); /* it goes on */
	rpc_request_free(watch);
}

static void nothing_is_handed_out_without_a_cluster(void **state)
{
	static struct answer answer;

	start_kubelet();
	start_plugin();
	looping_wait(loop, &was_registered, 30);
	ask(METHOD("GetDevicePluginOptions"), &answer);
	looping_wait(loop, &answer.is_done, 30);
	assert_int_equal(answer.status, RPC_OK);
	assert_int_equal(answer.bytes, 2); /* a preference may be asked for, and there is none */
	ask(METHOD("Allocate"), &answer);
	looping_wait(loop, &answer.is_done, 30);
	assert_int_equal(answer.status, RPC_FAILED_PRECONDITION);
	ask(METHOD("GetPreferredAllocation"), &answer);
	looping_wait(loop, &answer.is_done, 30);
	assert_int_equal(answer.status, RPC_OK);
	assert_int_equal(answer.bytes, 0);
}

static unsigned open_files(void)
{
	char path[64];
	DIR *folder;
	unsigned count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", plugin);
	folder = opendir(path);
	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* As the kubelet does when it starts: it removes the sockets of plugins, and makes its own. */
static void restart_kubelet(void)
{
	stop_kubelet();
	unlink(plugin_path);
	start_kubelet();
}

/* On a machine that does other things it takes longer now and then. */
static void it_registers_again_within_two_seconds(void **state)
{
	uint64_t least_ns = UINT64_MAX;
	unsigned files = 0;

	start_kubelet();
	start_plugin();
	looping_wait(loop, &was_registered, 30);
	for (unsigned i = 0; i < 5; i++) {
		uint64_t began;

		looping_run(loop, 300);
		if (i == 1)
			files = open_files();
		restart_kubelet();
		began = clock_now_ns();
		looping_wait(loop, &was_registered, 30);
		if (clock_now_ns() - began < least_ns)
			least_ns = clock_now_ns() - began;
		assert_return_code(access(plugin_path, F_OK), 0);
	}
	looping_run(loop, 300);
	assert_true(least_ns < 2 * SECOND_NS);
	assert_int_equal(registrations, 6);
	for (unsigned i = 0; i < 3000 && open_files() > files + 2; i++)
		looping_run(loop, 10); /* what is closing may still be open */
	assert_in_range(open_files(), 0, files + 2);
}

static void a_socket_that_is_removed_is_made_again(void **state)
{
	start_kubelet();
	start_plugin();
	looping_wait(loop, &was_registered, 30);
	looping_run(loop, 300);
	was_registered = false;
	unlink(plugin_path);
	looping_wait(loop, &was_registered, 30);
	assert_return_code(access(plugin_path, F_OK), 0);
}

/* As one does that drops a plugin because another of the same resource has ended. */
static void a_kubelet_that_watches_no_more_is_told_again(void **state)
{
	static struct answer answer;
	struct rpc_request *watch;

	start_kubelet();
	start_plugin();
	looping_wait(loop, &was_registered, 30);
	for (unsigned i = 0; i < 3; i++) {
		watch = ask(METHOD("ListAndWatch"), &answer);
		looping_wait(loop, &answer.has_message, 30);
		was_registered = false;
		rpc_request_free(watch);
		looping_wait(loop, &was_registered, 30);
	}
	watch = ask(METHOD("ListAndWatch"), &answer);
	looping_wait(loop, &answer.has_message, 30);
	looping_run(loop, 600);
	assert_false(answer.is_done);
	assert_int_equal(registrations, 4);
	rpc_request_free(watch);
}

static void a_kubelet_that_is_away_or_refuses_is_waited_for(void **state)
{
	start_plugin();
	looping_run(loop, 500);
	refusals = 2;
	start_kubelet();
	looping_wait(loop, &was_registered, 30);
	assert_int_equal(refusals, 0);
	/* the file of one that has died, where nobody listens */
	stop_kubelet();
	fclose(fopen(kubelet_path, "w"));
	looping_run(loop, 700);
	unlink(kubelet_path);
	start_kubelet();
	looping_wait(loop, &was_registered, 30);
}

static void it_ends_when_it_is_told(void **state)
{
	start_kubelet();
	start_plugin();
	looping_wait(loop, &was_registered, 30);
	assert_int_equal(stop_plugin(), 0);
	assert_int_not_equal(access(plugin_path, F_OK), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(it_registers_and_lists_its_slices),
		TEST(nothing_is_handed_out_without_a_cluster),
		TEST(it_registers_again_within_two_seconds),
		TEST(a_socket_that_is_removed_is_made_again),
		TEST(a_kubelet_that_watches_no_more_is_told_again),
		TEST(a_kubelet_that_is_away_or_refuses_is_waited_for),
		TEST(it_ends_when_it_is_told),
	};

	program = argv[1];
	if (argc != 2)
		return 2;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
