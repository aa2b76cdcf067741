/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server in a daemon's loop.
 *
 * libmicrohttpd runs without threads: its epoll descriptor is watched, and whenever it may have something to do it is run
 * from a callback of the loop. A call is suspended while it waits for its answer.
 */
#include "net/http_server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"

enum call_state {
	CALL_READING,
	CALL_TOO_LONG,
	CALL_HANDLED, /* the handler has it */
	CALL_ANSWERED,
};

struct http_call {
	struct http_server *server;
	struct MHD_Connection *connection;
	char *method, *path, *body;
	size_t body_bytes;
	enum call_state state;
	struct MHD_Response
		*response; /* of an answered one, until it is queued; NULL: there was no memory */
	unsigned status;
	struct http_call *next,
		**link; /* of those that are suspended; link is NULL where it is not */
	void *data;
};

struct http_server {
	struct loop *loop;
	struct loop_watch watch;
	struct loop_timer timer;
	struct MHD_Daemon *daemon;
	http_handle_fn *handle;
	http_gone_fn *gone;
	void *context;
	struct http_call *suspended;
	size_t body_most_bytes;
	uint16_t port;
};

union address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static void suspend(struct http_call *call)
{
	call->link = &call->server->suspended;
	call->next = call->server->suspended;
	if (call->next)
		call->next->link = &call->next;
	call->server->suspended = call;
	MHD_suspend_connection(call->connection);
}

static void resume(struct http_call *call)
{
	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	call->link = NULL;
	MHD_resume_connection(call->connection);
}

static void free_call(struct http_call *call)
{
	if (call->response)
		MHD_destroy_response(call->response);
	free(call->method);
	free(call->path);
	free(call->body);
	free(call);
}

static struct http_call *new_call(struct http_server *server, struct MHD_Connection *connection,
	const char *method, const char *path)
{
	struct http_call *call = calloc(1, sizeof(*call));

	if (!call)
		return NULL;
	call->server = server;
	call->connection = connection;
	call->method = strdup(method);
	call->path = strdup(path);
	call->body = calloc(1, 1);
	if (call->method && call->path && call->body)
		return call;
	free_call(call);
	return NULL;
}

/* What is too long is read to its end, and then answered. */
static enum MHD_Result read_body(struct http_call *call, const char *bytes, size_t count)
{
	char *grown;

	if (call->state == CALL_TOO_LONG ||
		count > call->server->body_most_bytes - call->body_bytes) {
		call->state = CALL_TOO_LONG;
		return MHD_YES;
	}
	grown = realloc(call->body, call->body_bytes + count + 1);
	if (!grown)
		return MHD_NO;
	memcpy(grown + call->body_bytes, bytes, count);
	call->body = grown;
	call->body_bytes += count;
	grown[call->body_bytes] = '\0';
	return MHD_YES;
}

/* MHD_NO closes the connection. */
static enum MHD_Result send_answer(struct http_call *call)
{
	struct MHD_Response *response = call->response;
	enum MHD_Result result = MHD_NO;

	call->response = NULL;
	if (response) {
		result = MHD_queue_response(call->connection, call->status, response);
		MHD_destroy_response(response);
	}
	return result;
}

static void prepare(struct http_call *call, unsigned status, const char *type, const char *body,
	size_t body_bytes)
{
	call->state = CALL_ANSWERED;
	call->status = status;
	call->response =
		MHD_create_response_from_buffer(body_bytes, (void *)body, MHD_RESPMEM_MUST_COPY);
	if (call->response &&
		!MHD_add_response_header(call->response, MHD_HTTP_HEADER_CONTENT_TYPE, type)) {
		MHD_destroy_response(call->response);
		call->response = NULL;
	}
}

/* Comes when the head is there, for each piece of the body, when it is whole, and again after it was resumed. */
static enum MHD_Result take(void *context, struct MHD_Connection *connection, const char *path,
	const char *method, const char *version, const char *bytes, size_t *count, void **its)
{
	struct http_server *server = context;
	struct http_call *call = *its;

	if (!call) {
		*its = call = new_call(server, connection, method, path);
		return call ? MHD_YES : MHD_NO;
	}
	if (*count) {
		size_t had = *count;

		*count = 0;
		return read_body(call, bytes, had);
	}
	if (call->state == CALL_TOO_LONG) {
		static const char words[] = "the body is too long\n";

		prepare(call, 413, "text/plain", words, sizeof(words) - 1);
	} else if (call->state == CALL_READING) {
		call->state = CALL_HANDLED;
		server->handle(server->context, call);
	}
	if (call->state == CALL_ANSWERED)
		return send_answer(call);
	suspend(call);
	return MHD_YES;
}

static void completed(void *context, struct MHD_Connection *connection, void **its,
	enum MHD_RequestTerminationCode code)
{
	struct http_server *server = context;
	struct http_call *call = *its;

	if (!call)
		return;
	if (call->state == CALL_HANDLED)
		server->gone(server->context, call);
	free_call(call);
	*its = NULL;
}

static void run(struct http_server *server)
{
	MHD_UNSIGNED_LONG_LONG ms;

	MHD_run(server->daemon);
	if (MHD_get_timeout(server->daemon, &ms))
		loop_timer_set(server->loop, &server->timer, clock_now_ns() + ms * 1000000);
	else
		loop_timer_clear(server->loop, &server->timer);
}

static void ready(void *context, uint32_t events)
{
	run(context);
}

static void due(void *context)
{
	run(context);
}

void http_answer(struct http_call *call, unsigned status, const char *type, const char *body,
	size_t body_bytes)
{
	prepare(call, status, type, body, body_bytes);
	if (!call->link)
		return; /* take() is on the stack and sends it */
	resume(call);
	loop_timer_set(call->server->loop, &call->server->timer, clock_now_ns());
}

static int read_address(
	const struct http_server_settings *settings, union address *ret_address, struct err *err)
{
	memset(ret_address, 0, sizeof(*ret_address));
	if (inet_pton(AF_INET, settings->address, &ret_address->four.sin_addr) == 1) {
		ret_address->four.sin_family = AF_INET;
		ret_address->four.sin_port = htons(settings->port);
	} else if (inet_pton(AF_INET6, settings->address, &ret_address->six.sin6_addr) == 1) {
		ret_address->six.sin6_family = AF_INET6;
		ret_address->six.sin6_port = htons(settings->port);
	} else {
		return err_set(err, EINVAL, "'%s' is no IP address", settings->address);
	}
	return 0;
}

static struct MHD_Daemon *start_daemon(struct http_server *server,
	const struct http_server_settings *settings, const union address *address)
{
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			 (address->any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0) |
			 (settings->certificate ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)settings->certificate},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)settings->key}, {MHD_OPTION_END, 0, NULL}};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	errno = 0;
	return MHD_start_daemon(flags, settings->port, NULL, NULL, take, server,
		MHD_OPTION_SOCK_ADDR, &address->any, MHD_OPTION_CONNECTION_LIMIT,
		settings->connections_most, MHD_OPTION_CONNECTION_TIMEOUT, settings->silence_s,
		MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_ARRAY,
		settings->certificate ? tls : none, MHD_OPTION_END);
}

static int begin(struct http_server *server, const struct http_server_settings *settings,
	const union address *address, struct err *err)
{
	const union MHD_DaemonInfo *info;
	int result;

	server->daemon = start_daemon(server, settings, address);
	if (!server->daemon)
		return err_set(err, errno ? errno : EINVAL, "%s:%u is not served: %s",
			settings->address, settings->port,
			errno ? strerror(errno) : "the certificate or its key is not understood");
	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
	server->port = info ? info->port : 0;
	info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	result = info ? loop_watch_add(server->loop, &server->watch, info->epoll_fd, EPOLLIN)
		      : -EINVAL;
	if (result)
		return err_set(err, -result, "%s:%u is not served: %s", settings->address,
			settings->port, strerror(-result));
	run(server);
	return 0;
}

int http_server_start(struct loop *loop, const struct http_server_settings *settings,
	http_handle_fn *handle, http_gone_fn *gone, void *context, struct http_server **ret_server,
	struct err *err)
{
	struct http_server *server = calloc(1, sizeof(*server));
	union address address;
	int result;

	if (!server)
		return err_set(err, ENOMEM, "no memory");
	*server = (struct http_server){.loop = loop,
		.watch = {.ready = ready, .context = server},
		.timer = {.due = due, .context = server},
		.handle = handle,
		.gone = gone,
		.context = context,
		.body_most_bytes = settings->body_most_bytes};
	result = read_address(settings, &address, err);
	if (!result)
		result = begin(server, settings, &address, err);
	if (result)
		http_server_stop(server);
	else
		*ret_server = server;
	return result;
}

/* No connection may be suspended when the daemon is stopped. */
static void end_suspended(struct http_server *server)
{
	while (server->suspended) {
		struct http_call *call = server->suspended;

		server->gone(server->context, call);
		call->state = CALL_ANSWERED;
		resume(call);
		if (!server->suspended)
			MHD_run(server->daemon);
	}
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	if (server->watch.is_in)
		loop_watch_remove(server->loop, &server->watch);
	end_suspended(server);
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	loop_timer_clear(server->loop, &server->timer);
	free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
	return server->port;
}

const char *http_call_method(const struct http_call *call)
{
	return call->method;
}

const char *http_call_path(const struct http_call *call)
{
	return call->path;
}

const char *http_call_body(const struct http_call *call, size_t *ret_bytes)
{
	*ret_bytes = call->body_bytes;
	return call->body;
}

void http_call_set_data(struct http_call *call, void *data)
{
	call->data = data;
}

void *http_call_data(const struct http_call *call)
{
	return call->data;
}
