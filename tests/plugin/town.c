/* SPDX-License-Identifier: Apache-2.0 */
/* A small cluster in memory. Its clock goes on when nothing else does, so that hours of it are seconds. */
#include "tests/plugin/town.h"

#include <device_plugin.pb-c.h>
#include <errno.h>
#include <pod_resources.pb-c.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "plugin/allocate.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/looping.h"

#define MS_NS 1000000ull

struct town town;

static uint64_t now_ns = 1000000000ull;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	now_ns += 100;
	*ret_time = (struct timespec){(time_t)(now_ns / 1000000000), (long)(now_ns % 1000000000)};
	return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
	int ready = (int)syscall(SYS_epoll_pwait, fd, events, count, 0, NULL, 0);

	if (!ready && timeout_ms > 0)
		now_ns += (uint64_t)timeout_ms * MS_NS;
	return ready;
}

uint32_t town_random(uint32_t below)
{
	town.random = town.random * 1664525u + 1013904223u;
	return (uint32_t)((uint64_t)(town.random >> 8) * below >> 24);
}

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ----- the kubelet ----- */

struct rpc_call {
	bool is_done;
	int status;
	char slot[512];
};

void rpc_answer(struct rpc_call *call, const void *message, size_t bytes)
{
	V1beta1__AllocateResponse *answer =
		v1beta1__allocate_response__unpack(NULL, bytes, message);

	assert_non_null(answer);
	assert_int_equal(answer->n_container_responses, 1);
	assert_int_equal(answer->container_responses[0]->n_envs, 1);
	snprintf(call->slot, sizeof(call->slot), "%s",
		answer->container_responses[0]->envs[0]->value);
	v1beta1__allocate_response__free_unpacked(answer, NULL);
	call->is_done = true;
}

void rpc_refuse(struct rpc_call *call, enum rpc_status status, const char *words)
{
	call->is_done = true;
	call->status = (int)status;
	snprintf(call->slot, sizeof(call->slot), "%s", words);
}

/* The record's socket, which is there only where the kubelet has a record. */
int access(const char *path, int mode)
{
	assert_string_equal(path, "/var/lib/kubelet/pod-resources/kubelet.sock");
	return town.record ? 0 : -1;
}

struct rpc_request {
	struct loop_timer timer;
	const struct rpc_listener *listener;
	void *context;
};

static void tell_record(void *context)
{
	struct rpc_request *request = context;
	V1__ListPodResourcesResponse answer = V1__LIST_POD_RESOURCES_RESPONSE__INIT;
	V1__PodResources rows[16], *list[16];
	V1__ContainerResources container = V1__CONTAINER_RESOURCES__INIT, *containers = &container;
	V1__ContainerDevices devices = V1__CONTAINER_DEVICES__INIT, *given = &devices;
	char first[] = "c0", resource[] = TOWN_RESOURCE, space[] = "default", id[] = "GPU-0";
	char *ids = id;
	uint8_t packed[4096];
	const char *name;
	json_t *has_slices;

	container.name = first;
	devices.resource_name = resource;
	devices.device_ids = &ids;
	devices.n_device_ids = 1;
	container.devices = &given;
	container.n_devices = 1;
	answer.pod_resources = list;
	json_object_foreach(town.record, name, has_slices)
	{
		V1__PodResources *row = list[answer.n_pod_resources] =
			&rows[answer.n_pod_resources];

		v1__pod_resources__init(row);
		answer.n_pod_resources++;
		row->name = (char *)name;
		row->namespace_ = space;
		row->containers = &containers;
		row->n_containers = json_is_true(has_slices);
	}
	assert_true(v1__list_pod_resources_response__get_packed_size(&answer) <= sizeof(packed));
	request->listener->message(
		request->context, packed, v1__list_pod_resources_response__pack(&answer, packed));
	request->listener->done(request->context, RPC_OK, "");
	free(request);
}

int rpc_send(struct rpc *rpc, const char *socket_path, const char *method, const void *message,
	size_t bytes, uint64_t timeout_ns, const struct rpc_listener *listener, void *context,
	struct rpc_request **ret_request)
{
	struct rpc_request *request = calloc(1, sizeof(*request));

	assert_non_null(request);
	*request =
		(struct rpc_request){{.due = tell_record, .context = request}, listener, context};
	loop_timer_set(town.loop, &request->timer, clock_now_ns() + MS_NS);
	*ret_request = request;
	return 0;
}

void rpc_request_free(struct rpc_request *request)
{
	if (request)
		loop_timer_clear(town.loop, &request->timer);
	free(request);
}

/* What a container is given here is the text of its slot, behind its own name. */
int give(const struct giver *giver, const struct give_request *request, struct given *ret_given,
	struct err *err)
{
	V1beta1__ContainerAllocateResponse answer = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;
	V1beta1__ContainerAllocateResponse__EnvsEntry env =
		V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT;
	V1beta1__ContainerAllocateResponse__EnvsEntry *envs[] = {&env};
	char name[] = "SLOT", text[512];

	*ret_given = (struct given){.message = NULL};
	snprintf(text, sizeof(text), "%s/%s %s", request->pod->name, request->container->name,
		request->slot);
	env.key = name;
	env.value = text;
	answer.envs = envs;
	answer.n_envs = 1;
	ret_given->message = malloc(v1beta1__container_allocate_response__get_packed_size(&answer));
	assert_non_null(ret_given->message);
	ret_given->bytes = v1beta1__container_allocate_response__pack(&answer, ret_given->message);
	if (town.disk_fails) /* of what is no file, nothing can be written to a disk */
		request->flush->later.fds[request->flush->later.count++] =
			open("/dev/null", O_RDONLY | O_CLOEXEC);
	flush_begin(request->flush);
	return 0;
}

int give_prefer(const struct giver *giver, const char *slot, struct prefer_request *request,
	const char **ret_ids)
{
	return -ENODATA;
}

static void pack_request(unsigned slices, uint8_t *ret_message, size_t *ret_bytes)
{
	V1beta1__ContainerAllocateRequest container = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT;
	V1beta1__ContainerAllocateRequest *list[] = {&container};
	V1beta1__AllocateRequest request = V1BETA1__ALLOCATE_REQUEST__INIT;
	char id[] = "GPU-0", *ids[16];

	for (unsigned i = 0; i < slices; i++)
		ids[i] = id;
	container.devices_ids = ids;
	container.n_devices_ids = slices;
	request.container_requests = list;
	request.n_container_requests = 1;
	*ret_bytes = v1beta1__allocate_request__pack(&request, ret_message);
}

int town_allocate(unsigned slices, char *ret_slot, size_t size)
{
	struct rpc_call call = {.status = 0};
	uint8_t message[512];
	size_t bytes;
	uint64_t until = clock_now_ns() + 20000 * MS_NS;

	pack_request(slices, message, &bytes);
	allocate_take(agent_allocate(town.agent), &call, message, bytes);
	while (!call.is_done && clock_now_ns() < until) {
		assert_int_equal(loop_run(town.loop, until), 0);
		if (town_random(4000) < town.fault_permille) {
			town.faults++;
			town_kill_plugin();
			town_start_plugin();
			if (!call.is_done) /* the kubelet sees a connection that ends */
				return RPC_UNAVAILABLE;
		}
	}
	assert_true(call.is_done);
	snprintf(ret_slot, size, "%s", call.slot);
	return call.status;
}

/* ----- the scheduler and the rest ----- */

static char kubeconfig[] = "/tmp/vgpu-town-XXXXXX";

int town_begin(void **state)
{
	static const char text[] =
		"{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, "
		"context: {cluster: a, user: a}}], clusters: [{name: a, cluster: {server: "
		"'http://127.0.0.1:1'}}], users: [{name: a, user: {token: x}}]}\n";
	int fd;

	strcpy(kubeconfig + strlen(kubeconfig) - 6, "XXXXXX");
	fd = mkstemp(kubeconfig);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	setenv("KUBECONFIG", kubeconfig, 1);
	town = (struct town){.random = 1,
		.config = {.node_name = TOWN_NODE,
			.kubelet_socket = "/var/lib/kubelet/device-plugins/kubelet.sock",
			.resource_count = TOWN_RESOURCE,
			.resource_priority = "nvidia.com/priority",
			.resource_memory = "nvidia.com/gpumem",
			.resource_memory_percentage = "nvidia.com/gpumem-percentage",
			.resource_cores = "nvidia.com/gpucores"}};
	assert_int_equal(loop_new(&town.loop), 0);
	town.node = json_pack("{s:{s:s,s:{}}}", "metadata", "name", TOWN_NODE, "annotations");
	town.pods = json_object();
	town_start_plugin();
	town_run(100);
	return 0;
}

int town_end(void **state)
{
	town_kill_plugin();
	unlink(kubeconfig);
	json_decref(town.node);
	json_decref(town.pods);
	json_decref(town.record);
	loop_free(town.loop);
	return 0;
}

void town_start_plugin(void)
{
	struct agent_request request = {.config = &town.config, .giver = town.giver};
	struct err err = ERR_NULL;

	if (agent_start(town.loop, NULL, &request, &town.agent, &err))
		fail_msg("%s", err.text);
}

void town_kill_plugin(void)
{
	agent_stop(town.agent);
	town.agent = NULL;
}

void town_run(unsigned ms)
{
	looping_run(town.loop, ms);
}

const char *town_lock(void)
{
	return text_of(town_annotations(town.node), LOCK_ANNOTATION);
}

const char *town_annotation(const char *name, const char *key)
{
	return text_of(town_annotations(json_object_get(town.pods, name)), key);
}

const char *town_uid(const char *name)
{
	return text_of(json_object_get(json_object_get(town.pods, name), "metadata"), "uid");
}

void town_expect(const char *name, const char *key, const char *value)
{
	const char *is = town_annotation(name, key);

	assert_non_null(is);
	assert_string_equal(is, value);
}

static json_t *containers_of(const unsigned *slices, unsigned count)
{
	json_t *list = json_array();
	char name[16], number[16];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "c%u", i);
		snprintf(number, sizeof(number), "%u", slices[i]);
		json_array_append_new(list, json_pack("{s:s,s:{s:{s:s}}}", "name", name,
						    "resources", "limits", TOWN_RESOURCE, number));
	}
	return list;
}

static json_t *annotations_for(const char *slots)
{
	return slots ? json_pack("{s:s,s:s,s:s,s:s,s:s}", "hami.io/vgpu-node", TOWN_NODE,
			       "hami.io/bind-time", "1", POD_BIND_PHASE, "allocating",
			       "hami.io/vgpu-devices-allocated", slots, POD_TO_ALLOCATE, slots)
		     : json_object();
}

void town_set_lock(const char *text)
{
	json_object_set_new(town_annotations(town.node), LOCK_ANNOTATION, json_string(text));
}

void town_bind(const char *name, const char *slots, const unsigned *slices, unsigned count)
{
	char uid[64], created[32], lock[300];
	json_t *pod;

	snprintf(uid, sizeof(uid), "uid-%llu", (unsigned long long)++town.version);
	snprintf(created, sizeof(created), "2026-11-22T%02u:%02u:%02uZ",
		(unsigned)(now_ns / 3600000000000ull % 24),
		(unsigned)(now_ns / 60000000000ull % 60), (unsigned)(now_ns / 1000000000ull % 60));
	if (slots) {
		snprintf(lock, sizeof(lock), "2026-11-22T00:00:00Z,default,%s", name);
		town_set_lock(lock);
	}
	pod = json_pack("{s:{s:s,s:s,s:s,s:s,s:o},s:{s:s,s:o},s:{s:s}}", "metadata", "namespace",
		"default", "name", name, "uid", uid, "creationTimestamp", created, "annotations",
		annotations_for(slots), "spec", "nodeName", TOWN_NODE, "containers",
		containers_of(slices, count), "status", "phase", "Pending");
	assert_non_null(pod);
	json_object_set_new(town.pods, name, pod);
	town_tell(pod, true);
}

void town_set_status(const char *name, const char *phase)
{
	json_t *pod = json_object_get(town.pods, name);

	if (!pod)
		return;
	json_object_set_new(pod, "status",
		json_pack("{s:s,s:s}", "phase", phase, "startTime", "2026-11-22T00:00:00Z"));
	town_tell(pod, true);
}

void town_delete(const char *name)
{
	json_t *pod = json_incref(json_object_get(town.pods, name));

	json_object_del(town.pods, name);
	if (pod)
		town_tell(pod, false);
	json_decref(pod);
}
