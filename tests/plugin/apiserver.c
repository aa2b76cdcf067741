/* SPDX-License-Identifier: Apache-2.0 */
/* An API server over HTTP with one node and its pods. */
#include "tests/plugin/apiserver.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/cmocka_ready.h"

#define REQUEST_BYTES (1u << 18)
#define PODS	      "/api/v1/pods"
#define POD	      "/api/v1/namespaces/default/pods/"
#define NODE	      "/api/v1/nodes/"
#define PREFIX	      "/metadata/annotations/"

struct connection {
	struct apiserver *server;
	int fd;
};

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static json_t *annotations_of(json_t *object)
{
	json_t *metadata = json_object_get(object, "metadata");

	if (!json_object_get(metadata, "annotations"))
		json_object_set_new(metadata, "annotations", json_object());
	return json_object_get(metadata, "annotations");
}

/* With the lock held, as all below. The number of an event is the object's version. */
static void tell(struct apiserver *server, const char *type, json_t *pod)
{
	char version[16];

	snprintf(version, sizeof(version), "%zu", json_array_size(server->events) + 1);
	json_object_set_new(
		json_object_get(pod, "metadata"), "resourceVersion", json_string(version));
	json_array_append_new(server->events,
		json_pack("{s:s,s:o}", "type", type, "object", json_deep_copy(pod)));
	pthread_cond_broadcast(&server->changed);
}

static json_t *find(struct apiserver *server, const char *path)
{
	if (!strncmp(path, NODE, strlen(NODE)))
		return server->node;
	return strncmp(path, POD, strlen(POD)) ? NULL
					       : json_object_get(server->pods, path + strlen(POD));
}

static bool operate(json_t *object, const json_t *operation)
{
	const char *what = text_of(operation, "op"), *path = text_of(operation, "path");
	const char *value = text_of(operation, "value"), *is;
	json_t *place = annotations_of(object);
	char key[256], *slash;

	if (!strcmp(path, "/metadata/uid")) {
		is = text_of(json_object_get(object, "metadata"), "uid");
		return is && !strcmp(is, value);
	}
	if (strncmp(path, PREFIX, strlen(PREFIX)) != 0)
		return false;
	snprintf(key, sizeof(key), "%s", path + strlen(PREFIX));
	slash = strstr(key, "~1");
	if (slash) {
		*slash = '/';
		memmove(slash + 1, slash + 2, strlen(slash + 2) + 1);
	}
	is = text_of(place, key);
	if (!strcmp(what, "test"))
		return is && !strcmp(is, value);
	if (!strcmp(what, "remove"))
		return !json_object_del(place, key);
	return (is || !strcmp(what, "add")) && !json_object_set_new(place, key, json_string(value));
}

/* The status of a patch: merge where it is an object, else operations, all or none. */
static int patch(struct apiserver *server, json_t *object, const json_t *body)
{
	json_t *copy = json_deep_copy(object), *value;
	const char *key;
	bool is_done = true;
	size_t i;

	json_array_foreach(body, i, value) is_done = is_done && operate(copy, value);
	if (json_is_object(body))
		json_object_foreach(annotations_of((json_t *)body), key, value)
		{
			if (json_is_null(value))
				json_object_del(annotations_of(copy), key);
			else
				json_object_set(annotations_of(copy), key, value);
		}
	if (is_done) {
		json_object_clear(object);
		json_object_update(object, copy);
		if (object != server->node)
			tell(server, "MODIFIED", object);
	}
	json_decref(copy);
	return is_done ? 200 : 422;
}

static json_t *list(struct apiserver *server)
{
	json_t *items = json_array(), *pod;
	const char *name;
	char version[16];

	snprintf(version, sizeof(version), "%zu", json_array_size(server->events));
	json_object_foreach(server->pods, name, pod) json_array_append(items, pod);
	return json_pack("{s:s,s:{s:s},s:o}", "kind", "PodList", "metadata", "resourceVersion",
		version, "items", items);
}

static bool put(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t count = send(fd, text, length, MSG_NOSIGNAL);

		if (count <= 0)
			return false;
		text += count;
		length -= (size_t)count;
	}
	return true;
}

static bool put_json(int fd, int status, const json_t *body)
{
	_cleanup_free_ char *text = json_dumps(body, 0);
	char head[160];

	snprintf(head, sizeof(head),
		"HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		status, strlen(text));
	return put(fd, head) && put(fd, text);
}

/* The lock is given up while nothing happens. */
static void watch(struct apiserver *server, int fd, size_t at)
{
	bool is_there = put(fd, "HTTP/1.1 200 x\r\nContent-Type: application/json\r\n"
				"Transfer-Encoding: chunked\r\n\r\n");
	size_t number = ++server->watch_count;
	char size[32];

	server->last_watch = number;
	server->watches++;
	while (is_there && !server->is_over) {
		_cleanup_free_ char *text = NULL;

		if (server->last_watch == number)
			server->told = at;
		if (server->is_watch_late || at >= json_array_size(server->events)) {
			pthread_cond_wait(&server->changed, &server->lock);
			continue;
		}
		text = json_dumps(json_array_get(server->events, at++), 0);
		snprintf(size, sizeof(size), "%zx\r\n", strlen(text) + 1);
		is_there = put(fd, size) && put(fd, text) && put(fd, "\n\r\n");
	}
	server->watches--;
}

/* False where the connection is over. */
static bool answer(struct apiserver *server, int fd, const char *request, const char *body)
{
	char method[16] = "", path[1024] = "";
	const char *version = strstr(request, "resourceVersion=");
	json_t *object, *change;
	bool goes_on;
	int status = 200;

	if (sscanf(request, "%15s %1023[^ ?]", method, path) != 2)
		return false;
	if (!strcmp(path, PODS) && strstr(request, "watch=1")) {
		watch(server, fd, version ? strtoul(strchr(version, '=') + 1, NULL, 10) : 0);
		return false;
	}
	if (!strcmp(path, PODS)) {
		object = list(server);
		goes_on = put_json(fd, 200, object);
		json_decref(object);
		return goes_on;
	}
	if (server->loses_patches && !strcmp(method, "PATCH"))
		return false;
	object = find(server, path);
	server->reads += !strncmp(path, POD, strlen(POD)) && !strcmp(method, "GET");
	if (object && !strcmp(method, "PATCH")) {
		change = json_loads(body, 0, NULL);
		status = patch(server, object, change);
		json_decref(change);
	}
	if (object && status == 200)
		return put_json(fd, status, object);
	object = json_pack("{s:s,s:s}", "kind", "Status", "message", object ? "test" : "not found");
	goes_on = put_json(fd, status == 200 ? 404 : status, object);
	json_decref(object);
	return goes_on;
}

/* Reads one request whole; its body begins at *ret_body. False at the end of the connection. */
static bool take(int fd, char *text, const char **ret_body)
{
	size_t used = 0, wanted = REQUEST_BYTES - 1;
	const char *length;
	char *end = NULL;

	while (used < wanted) {
		ssize_t count = recv(fd, text + used, end ? wanted - used : 1, 0);

		if (count <= 0)
			return false;
		used += (size_t)count;
		text[used] = '\0';
		if (end || used < 4 || strcmp(text + used - 4, "\r\n\r\n") != 0)
			continue;
		end = text + used;
		length = strcasestr(text, "\r\nContent-Length:");
		wanted = used + (length ? strtoul(strchr(length, ':') + 1, NULL, 10) : 0);
	}
	*ret_body = end;
	return end;
}

static void *serve(void *context)
{
	struct connection *connection = context;
	struct apiserver *server = connection->server;
	_cleanup_free_ char *text = malloc(REQUEST_BYTES);
	const char *body;
	bool goes_on = true;

	while (goes_on && take(connection->fd, text, &body)) {
		pthread_mutex_lock(&server->lock);
		goes_on = !server->is_over && answer(server, connection->fd, text, body);
		pthread_mutex_unlock(&server->lock);
	}
	close(connection->fd);
	free(connection);
	pthread_mutex_lock(&server->lock);
	server->connections--;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	return NULL;
}

static void *accept_all(void *context)
{
	struct apiserver *server = context;

	for (;;) {
		struct connection *connection = malloc(sizeof(*connection));
		pthread_t thread;

		connection->server = server;
		connection->fd = accept(server->listen_fd, NULL, NULL);
		if (connection->fd < 0) {
			free(connection);
			return NULL;
		}
		/* head and body are two packets: the second must not wait for an answer to the first */
		setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		pthread_mutex_lock(&server->lock);
		server->connections++;
		pthread_mutex_unlock(&server->lock);
		pthread_create(&thread, NULL, serve, connection);
		pthread_detach(thread);
	}
}

void apiserver_start(struct apiserver *server, const char *node_name)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(at);

	memset(server, 0, sizeof(*server));
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->changed, NULL);
	server->node = json_pack("{s:s,s:{s:s,s:s,s:{}}}", "kind", "Node", "metadata", "name",
		node_name, "resourceVersion", "1", "annotations");
	server->pods = json_object();
	server->events = json_array();
	server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(server->listen_fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_return_code(listen(server->listen_fd, 16), 0);
	getsockname(server->listen_fd, (struct sockaddr *)&at, &length);
	server->port = ntohs(at.sin_port);
	assert_int_equal(pthread_create(&server->acceptor, NULL, accept_all, server), 0);
}

/* After all clients have gone. */
void apiserver_stop(struct apiserver *server)
{
	shutdown(server->listen_fd, SHUT_RDWR);
	pthread_join(server->acceptor, NULL);
	close(server->listen_fd);
	pthread_mutex_lock(&server->lock);
	server->is_over = true;
	pthread_cond_broadcast(&server->changed);
	while (server->connections)
		pthread_cond_wait(&server->changed, &server->lock);
	pthread_mutex_unlock(&server->lock);
	json_decref(server->node);
	json_decref(server->pods);
	json_decref(server->events);
}

void apiserver_put_pod(struct apiserver *server, json_t *pod)
{
	const char *name = text_of(json_object_get(pod, "metadata"), "name");
	bool is_new;

	pthread_mutex_lock(&server->lock);
	is_new = !json_object_get(server->pods, name);
	json_object_set_new(server->pods, name, pod);
	tell(server, is_new ? "ADDED" : "MODIFIED", pod);
	pthread_mutex_unlock(&server->lock);
}

void apiserver_set_status(struct apiserver *server, const char *pod, const char *phase)
{
	json_t *object;

	pthread_mutex_lock(&server->lock);
	object = json_object_get(server->pods, pod);
	if (object) {
		json_object_set_new(object, "status",
			json_pack(
				"{s:s,s:s}", "phase", phase, "startTime", "2026-11-22T00:00:00Z"));
		tell(server, "MODIFIED", object);
	}
	pthread_mutex_unlock(&server->lock);
}

void apiserver_delete_pod(struct apiserver *server, const char *name)
{
	json_t *pod;

	pthread_mutex_lock(&server->lock);
	pod = json_incref(json_object_get(server->pods, name));
	json_object_del(server->pods, name);
	if (pod)
		tell(server, "DELETED", pod);
	json_decref(pod);
	pthread_mutex_unlock(&server->lock);
}

void apiserver_lose_patches(struct apiserver *server, bool is_losing)
{
	pthread_mutex_lock(&server->lock);
	server->loses_patches = is_losing;
	pthread_mutex_unlock(&server->lock);
}

void apiserver_delay_watch(struct apiserver *server, bool is_late)
{
	pthread_mutex_lock(&server->lock);
	server->is_watch_late = is_late;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

unsigned apiserver_reads(struct apiserver *server)
{
	unsigned reads;

	pthread_mutex_lock(&server->lock);
	reads = server->reads;
	pthread_mutex_unlock(&server->lock);
	return reads;
}

void apiserver_forget_watch(struct apiserver *server)
{
	pthread_mutex_lock(&server->lock);
	server->last_watch = 0;
	pthread_mutex_unlock(&server->lock);
}

bool apiserver_has_told(struct apiserver *server)
{
	bool has_told;

	pthread_mutex_lock(&server->lock);
	has_told = server->is_watch_late ||
		   (server->last_watch && server->told == json_array_size(server->events));
	pthread_mutex_unlock(&server->lock);
	return has_told;
}

bool apiserver_has_heard(struct apiserver *server)
{
	bool has_heard;

	pthread_mutex_lock(&server->lock);
	has_heard = server->connections == server->watches;
	pthread_mutex_unlock(&server->lock);
	return has_heard;
}

void apiserver_annotate_node(struct apiserver *server, const char *key, const char *value)
{
	pthread_mutex_lock(&server->lock);
	if (value)
		json_object_set_new(annotations_of(server->node), key, json_string(value));
	else
		json_object_del(annotations_of(server->node), key);
	pthread_mutex_unlock(&server->lock);
}

char *apiserver_annotation(struct apiserver *server, const char *pod, const char *key)
{
	const char *text;
	json_t *object;
	char *copy;

	pthread_mutex_lock(&server->lock);
	object = pod ? json_object_get(server->pods, pod) : server->node;
	text = object ? text_of(annotations_of(object), key) : NULL;
	copy = text ? strdup(text) : NULL;
	pthread_mutex_unlock(&server->lock);
	return copy;
}
