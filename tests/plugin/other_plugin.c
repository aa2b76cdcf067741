/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device plugin that is none of ours, for a real kubelet; a program decides what containers are given.
 *
 *	other-plugin SOCKET PROGRAM WORD... < IDS
 *
 * SOCKET is a new one in the kubelet's folder, IDS are its slices, a line each, which are healthy while it lives. For each Allocate
 * PROGRAM is run with the WORDs and, a word for each container, its slices with commas between. It prints what each is given:
 *
 *	env NAME VALUE
 *	mount IN-CONTAINER ON-HOST ro|rw
 *	next				the following lines are of the next container
 *
 * Where it fails, the call is refused with what it has printed.
 */
#include <device_plugin.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "net/rpc.h"

#define RESOURCE  "nvidia.com/gpu"
#define METHOD(n) "/v1beta1.DevicePlugin/" n
#define LIST_MOST 1024 /* slices, and what one container is given */
#define LINE_MOST 1024
#define TEXT_MOST 65536
#define WAIT_NS	  5000000000ull

static char **words; /* the program and its own, and room for containers and an end */
static size_t word_count;
static uint8_t *list;
static size_t list_bytes;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "other-plugin: %s\n", what);
	exit(1);
}

static void *must(void *memory)
{
	if (!memory)
		fail("no memory");
	return memory;
}

/* ----- what it offers ----- */

static void read_list(void)
{
	V1beta1__ListAndWatchResponse all = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
	V1beta1__Device *devices[LIST_MOST];
	char line[LINE_MOST];

	all.devices = devices;
	while (all.n_devices < LIST_MOST && fgets(line, sizeof(line), stdin)) {
		V1beta1__Device *device = must(malloc(sizeof(*device)));

		v1beta1__device__init(device);
		line[strcspn(line, "\n")] = '\0';
		device->id = must(strdup(line));
		device->health = must(strdup("Healthy"));
		devices[all.n_devices++] = device;
	}
	list = must(malloc(v1beta1__list_and_watch_response__get_packed_size(&all) + 1));
	list_bytes = v1beta1__list_and_watch_response__pack(&all, list);
}

static void tell_list(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	rpc_push(call, list, list_bytes);
}

static void answer_nothing(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	rpc_answer(call, "", 0);
}

/* ----- what containers are given ----- */

static void add_env(V1beta1__ContainerAllocateResponse *to, const char *name, const char *value)
{
	V1beta1__ContainerAllocateResponse__EnvsEntry *entry = must(malloc(sizeof(*entry)));

	v1beta1__container_allocate_response__envs_entry__init(entry);
	entry->key = must(strdup(name));
	entry->value = must(strdup(value));
	to->envs = must(realloc(to->envs, (to->n_envs + 1) * sizeof(*to->envs)));
	to->envs[to->n_envs++] = entry;
}

static void add_mount(
	V1beta1__ContainerAllocateResponse *to, const char *at, const char *from, bool is_read_only)
{
	V1beta1__Mount *mount = must(malloc(sizeof(*mount)));

	v1beta1__mount__init(mount);
	mount->container_path = must(strdup(at));
	mount->host_path = must(strdup(from));
	mount->read_only = is_read_only;
	to->mounts = must(realloc(to->mounts, (to->n_mounts + 1) * sizeof(*to->mounts)));
	to->mounts[to->n_mounts++] = mount;
}

static V1beta1__ContainerAllocateResponse *add_container(V1beta1__AllocateResponse *to)
{
	V1beta1__ContainerAllocateResponse *container = must(malloc(sizeof(*container)));

	v1beta1__container_allocate_response__init(container);
	to->container_responses = must(realloc(to->container_responses,
		(to->n_container_responses + 1) * sizeof(*to->container_responses)));
	to->container_responses[to->n_container_responses++] = container;
	return container;
}

/* What the lines of the program's output say. */
static void take_lines(char *text, V1beta1__AllocateResponse *to)
{
	V1beta1__ContainerAllocateResponse *container = add_container(to);

	for (char *line; (line = strsep(&text, "\n"));) {
		const char *kind = strsep(&line, " "), *first = strsep(&line, " ");

		if (!strcmp(kind, "env") && first)
			add_env(container, first, line ? line : "");
		else if (!strcmp(kind, "mount") && first && line)
			add_mount(container, first, strsep(&line, " "), !strcmp(line, "ro"));
		else if (!strcmp(kind, "next"))
			container = add_container(to);
	}
}

/* Whether it went well; its output in any case. */
static bool run(char text[TEXT_MOST])
{
	size_t length = 0;
	ssize_t got;
	int pipes[2], status;
	pid_t pid;

	if (pipe(pipes))
		fail("no pipe");
	pid = fork();
	if (pid < 0)
		fail("no process");
	if (!pid) {
		dup2(pipes[1], STDOUT_FILENO);
		close(pipes[0]);
		close(pipes[1]);
		execv(words[0], words);
		_exit(127);
	}
	close(pipes[1]);
	while ((got = read(pipes[0], text + length, TEXT_MOST - 1 - length)) > 0)
		length += (size_t)got;
	text[length] = '\0';
	close(pipes[0]);
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

static char *join(char *const *ids, size_t count)
{
	char *all = must(calloc(1, count * LINE_MOST + 1));

	for (size_t i = 0; i < count; i++) {
		strcat(all, i ? "," : "");
		strncat(all, ids[i], LINE_MOST - 2);
	}
	return all;
}

static void allocate(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	V1beta1__AllocateRequest *request =
		must(v1beta1__allocate_request__unpack(NULL, bytes, message));
	V1beta1__AllocateResponse answer = V1BETA1__ALLOCATE_RESPONSE__INIT;
	static char text[TEXT_MOST];
	uint8_t *packed;

	for (size_t i = 0; i < request->n_container_requests && i < LIST_MOST; i++) {
		const V1beta1__ContainerAllocateRequest *one = request->container_requests[i];

		words[word_count + i] = join(one->devices_ids, one->n_devices_ids);
		words[word_count + i + 1] = NULL;
	}
	v1beta1__allocate_request__free_unpacked(request, NULL);
	if (!run(text)) {
		rpc_refuse(call, RPC_INTERNAL, text);
		return;
	}
	take_lines(text, &answer);
	packed = must(malloc(v1beta1__allocate_response__get_packed_size(&answer) + 1));
	rpc_answer(call, packed, v1beta1__allocate_response__pack(&answer, packed));
	free(packed);
}

static void gone(void *context, struct rpc_call *call)
{
}

/* ----- the kubelet ----- */

static void ignore(void *context, const void *message, size_t bytes)
{
}

static void registered(void *context, int status, const char *why)
{
	if (status != RPC_OK)
		fail(why);
	fprintf(stderr, "other-plugin: is registered\n");
}

static void register_at(struct rpc *rpc, const char *path, char *name)
{
	static const struct rpc_listener listener = {ignore, registered};
	static char version[] = "v1beta1", resource[] = RESOURCE;
	V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;
	struct rpc_request *sent;
	uint8_t packed[LINE_MOST];
	char kubelet[LINE_MOST];

	request.version = version;
	request.endpoint = name;
	request.resource_name = resource;
	snprintf(kubelet, sizeof(kubelet), "%.*skubelet.sock", (int)(name - path), path);
	if (v1beta1__register_request__get_packed_size(&request) > sizeof(packed) ||
		rpc_send(rpc, kubelet, "/v1beta1.Registration/Register", packed,
			v1beta1__register_request__pack(&request, packed), WAIT_NS, &listener, NULL,
			&sent))
		fail("it cannot register");
}

static const struct rpc_method methods[] = {
	{METHOD("GetDevicePluginOptions"), answer_nothing},
	{METHOD("ListAndWatch"), tell_list},
	{METHOD("Allocate"), allocate},
};

static const struct rpc_service service = {methods, sizeof(methods) / sizeof(*methods), gone};

int main(int argc, char **argv)
{
	struct err err = ERR_NULL;
	struct rpc_server *server;
	struct loop *loop;
	struct rpc *rpc;

	if (argc < 3 || !strrchr(argv[1], '/'))
		fail("usage: other-plugin SOCKET PROGRAM WORD... < IDS");
	word_count = (size_t)argc - 2;
	words = must(calloc(word_count + LIST_MOST + 1, sizeof(*words)));
	memcpy(words, argv + 2, word_count * sizeof(*words));
	read_list();
	if (loop_new(&loop) || rpc_new(loop, &rpc))
		fail("no memory");
	if (rpc_serve(rpc, argv[1], &service, NULL, &server, &err))
		fail(err.text);
	register_at(rpc, argv[1], strrchr(argv[1], '/') + 1);
	while (!loop_run(loop, UINT64_MAX))
		;
	return 1;
}
