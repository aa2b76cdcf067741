/* SPDX-License-Identifier: Apache-2.0 */
/* The program before a kubelet and an API server of the test's own. */
#include "tests/plugin/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "tests/plugin/answer.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/looping.h"
#include "tests/unit/scratch.h"

#define SECOND_NS    UINT64_C(1000000000)
#define METHOD(name) "/v1beta1.DevicePlugin/" name
#define FLAGS_MOST   32

struct stage stage;

static const char *program, *library;

char *stage_path(const char *name)
{
	static char path[STAGE_PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", stage.folder, name);
	return path;
}

void stage_write(const char *name, const char *text)
{
	FILE *file;

	unlink(stage_path(name));
	if (!text)
		return;
	file = fopen(stage_path(name), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* ----- the kubelet ----- */

static void take_registration(
	void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	V1beta1__RegisterRequest *request = v1beta1__register_request__unpack(NULL, bytes, message);

	assert_non_null(request);
	snprintf(stage.endpoint, sizeof(stage.endpoint), "%s", request->endpoint);
	snprintf(stage.resource, sizeof(stage.resource), "%s", request->resource_name);
	snprintf(stage.version, sizeof(stage.version), "%s", request->version);
	stage.is_preferring =
		request->options && request->options->get_preferred_allocation_available;
	v1beta1__register_request__free_unpacked(request, NULL);
	stage.registrations++;
	stage.was_registered = true;
	rpc_answer(call, "", 0);
}

static void gone(void *context, struct rpc_call *call)
{
}

static const struct rpc_method methods[] = {{"/v1beta1.Registration/Register", take_registration}};
static const struct rpc_service service = {methods, 1, gone};

static int start_kubelet(void)
{
	struct err err = ERR_NULL;

	stage.was_registered = false;
	return rpc_serve(
		stage.rpc, stage_path("kubelet.sock"), &service, NULL, &stage.kubelet, &err);
}

void stage_restart_kubelet(void)
{
	rpc_request_free(stage.watch);
	stage.watch = NULL;
	rpc_server_free(stage.kubelet);
	stage_write(stage.endpoint, NULL);
	assert_int_equal(start_kubelet(), 0);
}

static void take_list(void *context, const void *message, size_t bytes)
{
	if (stage.list)
		v1beta1__list_and_watch_response__free_unpacked(stage.list, NULL);
	stage.list = v1beta1__list_and_watch_response__unpack(NULL, bytes, message);
	assert_non_null(stage.list);
	stage.was_listed = true;
}

static void list_ends(void *context, int status, const char *words)
{
	stage.watch = NULL;
}

static char *socket_path(void)
{
	return stage_path(stage.endpoint);
}

void stage_watch(void)
{
	static const struct rpc_listener listener = {take_list, list_ends};

	rpc_request_free(stage.watch);
	stage.was_listed = false;
	assert_int_equal(rpc_send(stage.rpc, socket_path(), METHOD("ListAndWatch"), "", 0,
				 600 * SECOND_NS, &listener, NULL, &stage.watch),
		0);
	stage_wait(&stage.was_listed, 30);
}

static void take_answer(void *context, const void *message, size_t bytes)
{
	struct stage_answer *answer = context;

	answer->message = v1beta1__allocate_response__unpack(NULL, bytes, message);
}

static void take_end(void *context, int status, const char *words)
{
	struct stage_answer *answer = context;

	answer->is_done = true;
	answer->status = status;
	snprintf(answer->words, sizeof(answer->words), "%s", words ? words : "");
}

void stage_allocate(const char *const *ids, unsigned count, struct stage_answer *answer)
{
	static const struct rpc_listener listener = {take_answer, take_end};
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest message = V1BETA1__ALLOCATE_REQUEST__INIT;
	struct rpc_request *call;
	uint8_t packed[4096];
	size_t bytes;

	container.devices_ids = (char **)ids;
	container.n_devices_ids = count;
	message.container_requests = containers;
	message.n_container_requests = 1;
	assert_true(v1beta1__allocate_request__get_packed_size(&message) <= sizeof(packed));
	bytes = v1beta1__allocate_request__pack(&message, packed);
	memset(answer, 0, sizeof(*answer));
	assert_int_equal(rpc_send(stage.rpc, socket_path(), METHOD("Allocate"), packed, bytes,
				 20 * SECOND_NS, &listener, answer, &call),
		0);
	stage_wait(&answer->is_done, 25);
}

void stage_answer_free(struct stage_answer *answer)
{
	if (answer->message)
		v1beta1__allocate_response__free_unpacked(answer->message, NULL);
	answer->message = NULL;
}

const char *stage_env(const struct stage_answer *answer, const char *name)
{
	return answer->message ? answer_env(answer->message->container_responses[0], name) : NULL;
}

const V1beta1__Mount *stage_mount(const struct stage_answer *answer, const char *at)
{
	return answer->message ? answer_mount(answer->message->container_responses[0], at) : NULL;
}

/* ----- the program ----- */

void stage_configure(const char *device, const char *node)
{
	_cleanup_free_ char *whole = NULL;

	if (asprintf(&whole, "%s%scantaloupe:\n  turnsFolder: %s/turns\n  mpsFolder: %s/mps\n",
		    device, *device && device[strlen(device) - 1] != '\n' ? "\n" : "", stage.folder,
		    stage.folder) < 0)
		fail();
	stage_write("device-config.yaml", whole);
	stage_write("config.json", node);
}

void stage_spawn(const char *const *flags)
{
	static const char *const own[] = {"kubelet-socket=%s/kubelet.sock",
		"config-file=%s/device-config.yaml", "node-config-file=%s/config.json",
		"state-folder=%s/state"};
	char texts[ARRAY_SIZE(own) + 1][STAGE_PATH_BYTES], name[64];
	char *argv[FLAGS_MOST] = {(char *)program};
	int argc = 1, fd;

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		snprintf(name, sizeof(name), "%s", own[i]);
		*strchr(name, '=') = '\0';
		snprintf(texts[i], STAGE_PATH_BYTES, "--%s=%s%s", name, stage.folder,
			strchr(own[i], '/'));
		argv[argc++] = texts[i];
	}
	snprintf(texts[ARRAY_SIZE(own)], STAGE_PATH_BYTES, "--library=%s", library);
	argv[argc++] = texts[ARRAY_SIZE(own)];
	for (; flags && *flags && argc < FLAGS_MOST - 1; flags++)
		argv[argc++] = (char *)*flags;
	stage.was_registered = false;
	apiserver_forget_watch(&stage.api);
	fd = open(stage_path("said"), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	assert_true(fd >= 0);
	stage.plugin = fork();
	assert_true(stage.plugin >= 0);
	if (!stage.plugin) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(fd, 2);
		execv(program, argv);
		_exit(127);
	}
	close(fd);
}

static void print_said(void)
{
	char line[1024];
	_cleanup_file_ FILE *file = fopen(stage_path("said"), "r");

	while (file && fgets(line, sizeof(line), file))
		fputs(line, stderr);
}

bool stage_has_said(const char *words)
{
	char line[1024];
	_cleanup_file_ FILE *file = fopen(stage_path("said"), "r");

	while (file && fgets(line, sizeof(line), file))
		if (strstr(line, words))
			return true;
	return false;
}

void stage_start(const char *const *flags)
{
	stage_spawn(flags);
	stage_wait(&stage.was_registered, 30);
}

int stage_stop(int signal)
{
	int status = 0;

	if (!stage.plugin)
		return 0;
	rpc_request_free(stage.watch);
	stage.watch = NULL;
	if (signal)
		kill(stage.plugin, signal);
	waitpid(stage.plugin, &status, 0);
	stage.plugin = 0;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void stage_run(unsigned ms)
{
	looping_run(stage.loop, ms);
}

void stage_wait(const bool *flag, unsigned most_s)
{
	uint64_t until_ns = clock_now_ns() + most_s * SECOND_NS;

	while (!*flag && clock_now_ns() < until_ns)
		assert_int_equal(loop_run(stage.loop, until_ns), 0);
	if (!*flag)
		print_said();
	assert_true(*flag);
}

void stage_await(bool (*claim)(void), unsigned most_s)
{
	uint64_t until_ns = clock_now_ns() + most_s * SECOND_NS;

	while (!claim() && clock_now_ns() < until_ns)
		stage_run(20);
	if (!claim())
		print_said();
	assert_true(claim());
}

static bool has_told(void)
{
	return apiserver_has_told(&stage.api);
}

static void ignore_message(void *context, const void *message, size_t bytes)
{
}

/* What comes by a connection is taken before what is asked twice after it. */
void stage_tell(void)
{
	static const struct rpc_listener listener = {ignore_message, take_end};
	struct stage_answer answer;
	struct rpc_request *call;

	if (!stage.plugin)
		return;
	stage_await(has_told, 30);
	for (unsigned i = 0; i < 2; i++) {
		answer = (struct stage_answer){.is_done = false};
		assert_int_equal(
			rpc_send(stage.rpc, socket_path(), METHOD("GetDevicePluginOptions"), "", 0,
				30 * SECOND_NS, &listener, &answer, &call),
			0);
		stage_wait(&answer.is_done, 35);
		assert_int_equal(answer.status, RPC_OK);
	}
}

/* ----- the scheduler ----- */

void stage_bind(const char *name, const char *uid, const char *slots, const char *limits)
{
	char text[STAGE_PATH_BYTES], now[32];
	time_t seconds = time(NULL);
	json_t *pod;

	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
	snprintf(text, sizeof(text), "%s,default,%s", now, name);
	pod = json_pack("{s:{s:s,s:s,s:s,s:s,s:{s:s,s:s,s:s,s:s,s:s}},s:{s:s,s:[{s:s,s:{s:o}}]},"
			"s:{s:s}}",
		"metadata", "name", name, "namespace", "default", "uid", uid, "creationTimestamp",
		now, "annotations", "hami.io/vgpu-node", STAGE_NODE, "hami.io/bind-time", "1",
		"hami.io/bind-phase", "allocating", "hami.io/vgpu-devices-allocated", slots,
		"hami.io/vgpu-devices-to-allocate", slots, "spec", "nodeName", STAGE_NODE,
		"containers", "name", "a", "resources", "limits", json_loads(limits, 0, NULL),
		"status", "phase", "Pending");
	assert_non_null(pod);
	apiserver_annotate_node(&stage.api, STAGE_LOCK, text);
	apiserver_put_pod(&stage.api, pod);
}

void stage_unbind(const char *name, const char *phase)
{
	apiserver_set_status(&stage.api, name, phase);
	stage_tell();
	apiserver_delete_pod(&stage.api, name);
	apiserver_annotate_node(&stage.api, STAGE_LOCK, NULL);
	stage_tell();
}

/* ----- all of it ----- */

int stage_begin(void **state, const char *program_file, const char *library_file)
{
	struct scratch *s;
	char text[1024], path[STAGE_PATH_BYTES];

	program = program_file;
	library = library_file;
	stage = (struct stage){.plugin = 0};
	if (scratch_setup(state) || loop_new(&stage.loop) || rpc_new(stage.loop, &stage.rpc))
		return -1;
	s = *state;
	snprintf(stage.folder, sizeof(stage.folder), "%s", s->folder);
	snprintf(stage.hook, sizeof(stage.hook), "%s/hook", stage.folder);
	apiserver_start(&stage.api, STAGE_NODE);
	snprintf(text, sizeof(text),
		"{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, "
		"context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: "
		"'http://127.0.0.1:%u'}}], users: [{name: a, user: {token: x}}]}\n",
		stage.api.port);
	stage_write("kubeconfig", text);
	setenv("KUBECONFIG", stage_path("kubeconfig"), 1);
	setenv("NODE_NAME", STAGE_NODE, 1);
	setenv("HOOK_PATH", stage.hook, 1);
	setenv("VGPU_SIM_STATE", stage_path("machine"), 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	snprintf(path, sizeof(path), "%s/vgpu", stage.hook);
	if (mkdir(stage.hook, 0755) || mkdir(path, 0755))
		return -1;
	stage_configure("", NULL);
	return start_kubelet();
}

int stage_end(void **state)
{
	stage_stop(SIGTERM);
	apiserver_stop(&stage.api);
	if (stage.list)
		v1beta1__list_and_watch_response__free_unpacked(stage.list, NULL);
	rpc_server_free(stage.kubelet);
	rpc_free(stage.rpc);
	loop_free(stage.loop);
	return scratch_teardown(state);
}
