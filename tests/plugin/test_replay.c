/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded allocations, asked of the program by a kubelet of the test's own, before an API server of its own and
 * simulated cards. The arguments are the program, the recordings and a library to install.
 */
#include <device_plugin.pb-c.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "kube/assignment.h"
#include "net/rpc.h"
#include "tests/plugin/answer.h"
#include "tests/plugin/apiserver.h"
#include "tests/plugin/differences.h"
#include "tests/plugin/vectors.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/scratch.h"

#define MS_NS	   1000000ull
#define SECOND_NS  (1000 * MS_NS)
#define NODE	   "node1"
#define LOCK	   "hami.io/mutex.lock"
#define BIND_PHASE "hami.io/bind-phase"
#define PATH_BYTES 512

static const char *program, *recordings, *library;
static struct vectors vectors;
static struct apiserver api;
static struct loop *loop;
static struct rpc *rpc;
static struct rpc_server *kubelet;
static pid_t plugin;
static bool was_registered;
static unsigned preferences;
static char folder[256], hook[300], uid[64];

/* ----- the kubelet ----- */

static void take_registration(
	void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	was_registered = true;
	rpc_answer(call, "", 0);
}

static void gone(void *context, struct rpc_call *call)
{
}

static const struct rpc_method methods[] = {{"/v1beta1.Registration/Register", take_registration}};
static const struct rpc_service service = {methods, 1, gone};

static void run(unsigned ms)
{
	uint64_t until = clock_now_ns() + ms * MS_NS;

	while (clock_now_ns() < until)
		assert_int_equal(loop_run(loop, until), 0);
}

static void wait_for(const bool *flag, unsigned most_s)
{
	uint64_t until = clock_now_ns() + most_s * SECOND_NS;

	while (!*flag && clock_now_ns() < until)
		assert_int_equal(loop_run(loop, until), 0);
	assert_true(*flag);
}

/* ----- the program ----- */

static void write_file(const char *name, const char *text, const char *more)
{
	char path[PATH_BYTES];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s%s", text, more);
	fclose(file);
}

static void stop_plugin(void)
{
	if (!plugin)
		return;
	kill(plugin, SIGTERM);
	waitpid(plugin, NULL, 0);
	plugin = 0;
}

static void execute(const json_t *flags)
{
	char texts[7][PATH_BYTES];
	char *argv[32] = {(char *)program};
	int argc = 1;

	snprintf(texts[0], PATH_BYTES, "--kubelet-socket=%s/kubelet.sock", folder);
	snprintf(texts[1], PATH_BYTES, "--config-file=%s/device-config.yaml", folder);
	snprintf(texts[2], PATH_BYTES, "--node-config-file=%s/config.json", folder);
	snprintf(texts[3], PATH_BYTES, "--state-folder=%s/state", folder);
	snprintf(texts[4], PATH_BYTES, "--library=%s", library);
	for (size_t i = 0; i < 5; i++)
		argv[argc++] = texts[i];
	for (size_t i = 0; i < json_array_size(flags); i++)
		argv[argc++] = (char *)json_string_value(json_array_get(flags, i));
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execv(program, argv);
	_exit(127);
}

/* Of the same configuration it is started once. */
static void start_plugin(const json_t *vector)
{
	static char *last;
	const json_t *config = json_object_get(vector, "config");
	_cleanup_free_ char *device = NULL, *node = NULL;
	char *now = json_dumps(config, JSON_SORT_KEYS), turns[PATH_BYTES], path[PATH_BYTES];

	if (plugin && last && !strcmp(now, last)) {
		free(now);
		return;
	}
	free(last);
	last = now;
	stop_plugin();
	vector_make_files(vector, &device, &node);
	/* in many recordings more is assigned than the pod asks for */
	snprintf(turns, sizeof(turns),
		"cantaloupe:\n  trustAssignments: true\n  turnsFolder: %s/turns\n", folder);
	write_file("device-config.yaml", device, turns);
	snprintf(path, sizeof(path), "%s/config.json", folder);
	unlink(path);
	if (node)
		write_file("config.json", node, "");
	was_registered = false;
	plugin = fork();
	assert_true(plugin >= 0);
	if (!plugin)
		execute(json_object_get(config, "flags"));
	wait_for(&was_registered, 30);
}

/* ----- one request ----- */

struct answer {
	V1beta1__AllocateResponse *message;
	bool is_done;
	int status;
	char words[512];
};

static void take_message(void *context, const void *message, size_t bytes)
{
	struct answer *answer = context;

	answer->message = v1beta1__allocate_response__unpack(NULL, bytes, message);
}

static void take_end(void *context, int status, const char *words)
{
	struct answer *answer = context;

	answer->is_done = true;
	answer->status = status;
	snprintf(answer->words, sizeof(answer->words), "%s", words ? words : "");
}

static size_t read_list(const json_t *container, const char *key, char *ids[16])
{
	const json_t *list = json_object_get(container, key);

	assert_true(json_array_size(list) <= 16);
	for (size_t i = 0; i < json_array_size(list); i++)
		ids[i] = (char *)json_string_value(json_array_get(list, i));
	return json_array_size(list);
}

static const json_t *first_container(const json_t *request, const char *key)
{
	return json_array_get(json_object_get(request, key), 0);
}

static void call(const char *method, const struct rpc_listener *listener, void *context,
	const uint8_t *packed, size_t bytes)
{
	struct rpc_request *request;
	char path[PATH_BYTES], full[64];

	snprintf(path, sizeof(path), "%s/nvidia-gpu.sock", folder);
	snprintf(full, sizeof(full), "/v1beta1.DevicePlugin/%s", method);
	assert_int_equal(rpc_send(rpc, path, full, packed, bytes, 20 * SECOND_NS, listener, context,
				 &request),
		0);
}

static void allocate(const json_t *request, struct answer *answer)
{
	static const struct rpc_listener listener = {take_message, take_end};
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *containers[] = {&container};
	V1beta1__AllocateRequest message = V1BETA1__ALLOCATE_REQUEST__INIT;
	char *ids[16];
	uint8_t packed[2048];

	container.n_devices_ids =
		read_list(first_container(request, "container_requests"), "devices_ids", ids);
	container.devices_ids = ids;
	message.container_requests = containers;
	message.n_container_requests = 1;
	memset(answer, 0, sizeof(*answer));
	call("Allocate", &listener, answer, packed,
		v1beta1__allocate_request__pack(&message, packed));
	wait_for(&answer->is_done, 30);
}

/* ----- what the kubelet had best choose ----- */

struct preferred {
	bool is_done;
	V1beta1__PreferredAllocationResponse *message;
};

static void take_preferred(void *context, const void *message, size_t bytes)
{
	((struct preferred *)context)->message =
		v1beta1__preferred_allocation_response__unpack(NULL, bytes, message);
}

static void preferred_ends(void *context, int status, const char *words)
{
	((struct preferred *)context)->is_done = true;
}

static void prefer(const json_t *request, struct preferred *preferred)
{
	static const struct rpc_listener listener = {take_preferred, preferred_ends};
	V1beta1__ContainerPreferredAllocationRequest container =
		V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT;
	V1beta1__ContainerPreferredAllocationRequest *containers[] = {&container};
	V1beta1__PreferredAllocationRequest message = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
	const json_t *asked = first_container(request, "container_requests");
	char *free_ids[16], *must_ids[16];
	uint8_t packed[2048];

	container.n_available_deviceids = read_list(asked, "available_deviceIDs", free_ids);
	container.available_deviceids = free_ids;
	container.n_must_include_deviceids = read_list(asked, "must_include_deviceIDs", must_ids);
	container.must_include_deviceids = must_ids;
	container.allocation_size =
		(int32_t)json_integer_value(json_object_get(asked, "allocation_size"));
	message.container_requests = containers;
	message.n_container_requests = 1;
	*preferred = (struct preferred){false, NULL};
	call("GetPreferredAllocation", &listener, preferred, packed,
		v1beta1__preferred_allocation_request__pack(&message, packed));
	wait_for(&preferred->is_done, 30);
}

static unsigned count_of(char *const *ids, size_t count, const char *id)
{
	const size_t device = (size_t)(strrchr(id, '-') - id);
	unsigned found = 0;

	for (size_t i = 0; i < count; i++)
		found += !strncmp(ids[i], id, device) && strrchr(ids[i], '-') == ids[i] + device;
	return found;
}

/* The same devices; which slices of them is as the kubelet's list was in order. Where theirs has no word, ours may have one. */
static void compare_preferred(const char *id, const json_t *recorded)
{
	const json_t *response =
		first_container(json_object_get(recorded, "response"), "container_responses");
	struct preferred ours;
	V1beta1__ContainerPreferredAllocationResponse *first;
	char *theirs[16];
	size_t count = read_list(response, "deviceIDs", theirs);

	prefer(json_object_get(recorded, "request"), &ours);
	first = ours.message && ours.message->n_container_responses
			? ours.message->container_responses[0]
			: NULL;
	if (count && (!first || first->n_deviceids != count))
		fail_msg("%s: %zu are preferred, theirs %zu", id, first ? first->n_deviceids : 0,
			count);
	for (size_t i = 0; i < count; i++)
		if (count_of(first->deviceids, count, theirs[i]) !=
			count_of(theirs, count, theirs[i]))
			fail_msg("%s: %s is not preferred as with theirs", id, theirs[i]);
	preferences += count > 0;
	if (ours.message)
		v1beta1__preferred_allocation_response__free_unpacked(ours.message, NULL);
}

/* ----- what differs from run to run ----- */

static void replace(char **text, const char *what, const char *by)
{
	char *at = strstr(*text, what), *made;

	if (!at || !*what)
		return;
	if (asprintf(&made, "%.*s%s%s", (int)(at - *text), *text, by, at + strlen(what)) < 0)
		fail();
	free(*text);
	*text = made;
	replace(text, what, by);
}

static void make_plain(char **text, const char *unique)
{
	char lock_folder[PATH_BYTES + 32];

	/* theirs is in the host's /tmp, where any user may make it */
	snprintf(lock_folder, sizeof(lock_folder), "%s/state/vgpulock", folder);
	replace(text, lock_folder, "/tmp/vgpulock");
	replace(text, hook, "/usr/local");
	replace(text, uid, VECTOR_UID);
	if (strcmp(unique, VECTOR_UNIQUE) != 0)
		replace(text, unique, VECTOR_UNIQUE);
	/* the file has its version behind its name */
	if (strstr(*text, "/libvgpu.so."))
		strstr(*text, "/libvgpu.so.")[strlen("/libvgpu.so")] = '\0';
}

/* The region's name is random; the environment says it. */
static void find_unique(const V1beta1__ContainerAllocateResponse *answer, char ret_unique[64])
{
	const char *region = answer_env(answer, "CUDA_DEVICE_MEMORY_SHARED_CACHE");

	snprintf(ret_unique, 64, "%.36s", region ? strrchr(region, '/') + 1 : "");
}

static void make_answer_plain(V1beta1__ContainerAllocateResponse *answer)
{
	char unique[64];

	find_unique(answer, unique);
	for (size_t i = 0; i < answer->n_envs; i++)
		make_plain(&answer->envs[i]->value, unique);
	for (size_t i = 0; i < answer->n_mounts; i++) {
		make_plain(&answer->mounts[i]->container_path, unique);
		make_plain(&answer->mounts[i]->host_path, unique);
	}
	for (size_t i = 0; i < answer->n_annotations; i++)
		make_plain(&answer->annotations[i]->key, unique);
}

/* ----- one recording ----- */

static void bind(const json_t *vector, unsigned number)
{
	json_t *pod = json_deep_copy(json_object_get(vector, "pod"));
	json_t *metadata = json_object_get(pod, "metadata");
	const char *lock = vector_text(vector, "lock_before");
	const char *name = vector_text(metadata, "name");
	char text[PATH_BYTES], now[32];
	time_t seconds = time(NULL);

	strftime(now, sizeof(now), "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
	snprintf(uid, sizeof(uid), "%.32s%04u", VECTOR_UID, number);
	json_object_set_new(metadata, "uid", json_string(uid));
	json_object_set_new(metadata, "namespace", json_string("default"));
	json_object_set_new(metadata, "creationTimestamp", json_string(now));
	json_object_set_new(json_object_get(pod, "spec"), "nodeName", json_string(NODE));
	json_object_set_new(pod, "status", json_pack("{s:s}", "phase", "Pending"));
	snprintf(text, sizeof(text), "%s,default,%s", now, name);
	apiserver_annotate_node(&api, LOCK,
		!strcmp(lock, "own")	? text
		: !strcmp(lock, "none") ? NULL
					: lock);
	apiserver_put_pod(&api, pod);
}

/* The kubelet says what has become of it, and then it goes. */
static void unbind(const json_t *vector, bool was_served)
{
	const json_t *metadata = json_object_get(json_object_get(vector, "pod"), "metadata");

	apiserver_set_status(
		&api, vector_text(metadata, "name"), was_served ? "Running" : "Failed");
	run(30);
	apiserver_delete_pod(&api, vector_text(metadata, "name"));
	apiserver_annotate_node(&api, LOCK, NULL);
	run(30);
}

static bool is_text(const char *pod, const char *key, const char *expected)
{
	_cleanup_free_ char *text = apiserver_annotation(&api, pod, key);

	return text && expected ? !strcmp(text, expected) : !text && !expected;
}

/*
 * The pod is bound, or has failed, as with theirs, and the lock is released. What only ours refuses fails with ours; what only ours
 * answers ends as the recording with the same answer.
 */
static void compare_end(const json_t *vector, bool is_refused_by_ours, const struct row *answered)
{
	const json_t *after =
		json_object_get(answered ? vectors_find(&vectors, answered->value) : vector,
			"pod_annotations_after");
	const char *phase = is_refused_by_ours ? "failed" : vector_text(after, BIND_PHASE);
	const char *pod =
		vector_text(json_object_get(json_object_get(vector, "pod"), "metadata"), "name");
	uint64_t until = clock_now_ns() + 30 * SECOND_NS;

	while (clock_now_ns() < until &&
		!(is_text(pod, BIND_PHASE, phase) && is_text(NULL, LOCK, NULL)))
		run(10);
	if (!is_text(pod, BIND_PHASE, phase) || !is_text(NULL, LOCK, NULL))
		fail_msg("%s: the phase or the lock is another", vector_text(vector, "id"));
}

static bool compare(
	const char *id, unsigned number, const struct answer *ours, const json_t *theirs)
{
	const struct row *row;

	if (ours->status && theirs) {
		row = differences_find(id, REFUSED, NULL);
		if (!row || !strstr(ours->words, row->value))
			fail_msg("%s, container %u: refused: %s", id, number, ours->words);
	}
	if (!ours->status && !theirs) {
		row = differences_find(id, ANSWERED, NULL);
		if (!row)
			fail_msg("%s, container %u: theirs refuses", id, number);
		theirs = vector_answer(vectors_find(&vectors, row->value), number);
	}
	if (!ours->status && theirs) {
		make_answer_plain(ours->message->container_responses[0]);
		differences_compare(id, number, ours->message->container_responses[0], theirs);
	}
	return !ours->status;
}

static void replay(const json_t *vector, unsigned number)
{
	const json_t *requests = json_object_get(vector, "allocate_request");
	const char *id = vector_text(vector, "id");
	bool is_whole = true;

	start_plugin(vector);
	bind(vector, number);
	for (unsigned i = 0; i < json_array_size(requests) && is_whole; i++) {
		const json_t *preferred = json_array_get(json_object_get(vector, "preferred"), i);
		struct answer answer;

		if (preferred)
			compare_preferred(id, preferred);
		allocate(json_array_get(requests, i), &answer);
		is_whole = compare(id, i, &answer, vector_answer(vector, i));
		if (answer.message)
			v1beta1__allocate_response__free_unpacked(answer.message, NULL);
	}
	/* D11: a pod that was served before is not found by its own word, and is left as it is */
	if (strcmp(id, "alloc-fallback-success") != 0 && strcmp(id, "err-second-container") != 0)
		compare_end(vector, differences_find(id, REFUSED, NULL),
			differences_find(id, ANSWERED, NULL));
	unbind(vector, is_whole);
}

static void set_license(bool is_there)
{
	static const char *const names[] = {"license", "vgpuvalidator"};
	char path[PATH_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/vgpu/%s", hook, names[i]);
		if (!is_there)
			unlink(path);
		else
			write_file(path + strlen(folder) + 1, "", "");
	}
}

static void the_program_answers_as_recorded_or_better(void **state)
{
	unsigned count = 0;

	for (size_t i = 0; i < vectors.count; i++) {
		const char *id = vector_text(vectors.all[i], "id");

		if (!json_object_get(vectors.all[i], "allocate_request") ||
			differences_find(id, NOT_HERE, NULL))
			continue;
		set_license(!strcmp(id, "cfg-license"));
		replay(vectors.all[i], (unsigned)i);
		count++;
	}
	assert_true(count > 50);
	assert_true(preferences > 40);
	differences_end();
}

static int setup(void **state)
{
	struct err err = ERR_NULL;
	struct scratch *s;
	char text[1024], path[PATH_BYTES];

	if (scratch_setup(state) || loop_new(&loop) || rpc_new(loop, &rpc))
		return -1;
	s = *state;
	snprintf(folder, sizeof(folder), "%s", s->folder);
	snprintf(hook, sizeof(hook), "%s/hook", folder);
	vectors_open(recordings, &vectors);
	differences_begin(PROGRAM);
	apiserver_start(&api, NODE);
	snprintf(text, sizeof(text),
		"{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, "
		"context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: "
		"'http://127.0.0.1:%u'}}], users: [{name: a, user: {token: x}}]}\n",
		api.port);
	write_file("kubeconfig", text, "");
	snprintf(path, sizeof(path), "%s/kubeconfig", folder);
	setenv("KUBECONFIG", path, 1);
	setenv("NODE_NAME", NODE, 1);
	setenv("HOOK_PATH", hook, 1);
	snprintf(path, sizeof(path), "%s/machine", folder);
	setenv("VGPU_SIM_STATE", path, 1);
	setenv("VGPU_SIM_BOARD", "h200x2", 1);
	snprintf(path, sizeof(path), "%s/vgpu", hook);
	if (mkdir(hook, 0755) || mkdir(path, 0755))
		return -1;
	snprintf(path, sizeof(path), "%s/kubelet.sock", folder);
	return rpc_serve(rpc, path, &service, NULL, &kubelet, &err);
}

static int teardown(void **state)
{
	stop_plugin();
	apiserver_stop(&api);
	vectors_close(&vectors);
	rpc_server_free(kubelet);
	rpc_free(rpc);
	loop_free(loop);
	return scratch_teardown(state);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_program_answers_as_recorded_or_better, setup, teardown),
	};

	if (argc != 4)
		return 2;
	program = argv[1];
	recordings = argv[2];
	library = argv[3];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
