/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server in a daemon's loop.
 *
 * libmicrohttpd runs without threads: its epoll descriptor is watched, and whenever it may have something to do it is run
 * from a callback of the loop. A call is suspended while it waits for its answer.
 *
 * It cannot change its certificate. So with a new one there is a new daemon of it at the same socket, and the one before is
 * kept until its last connection has ended.
 */
#include "net/http_server.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/address.h"
#include "net/crowd.h"
#include "net/http_call.h"

#define SPARE_PARTS 16 /* of connections one part in so many is left free (net/crowd.h) */

/* A daemon of the library's; the first of the server's list has the socket. */
struct port {
	struct http_server *server;
	struct loop_watch watch;
	struct loop_timer timer;
	struct MHD_Daemon *daemon;
	char *texts[3]; /* certificate, key, authority: the library does not copy all of them */
	struct port *next;
};

struct http_server {
	struct loop *loop;
	struct port *ports;
	http_handle_fn *handle;
	http_gone_fn *gone;
	void *context;
	struct http_call *suspended;
	struct http_calls calls;
	struct crowd crowd;
	bool has_room; /* a connection has ended since the library was run last */
	unsigned connections_most, client_connections_most, silence_s;
	union address address;
	uint16_t port;
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

/* The client's; NULL: the library does not tell it. */
static const struct sockaddr *address_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);

	return info ? info->client_addr : NULL;
}

static void tell_client(struct MHD_Connection *connection, char ret_client[ADDRESS_CLIENT_BYTES])
{
	const struct sockaddr *address = address_of(connection);

	*ret_client = '\0';
	if (address)
		address_of_client(address, ret_client);
}

static int descriptor_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static struct crowd_guest *guest_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void came_or_went(void *context, struct MHD_Connection *connection, void **its,
	enum MHD_ConnectionNotificationCode code)
{
	struct http_server *server = context;
	char client[ADDRESS_CLIENT_BYTES];

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		crowd_leave(&server->crowd, *its);
		*its = NULL;
		server->has_room = true;
		return;
	}
	tell_client(connection, client);
	*its = crowd_enter(&server->crowd, client, descriptor_of(connection));
}

/* NULL: there is no memory. */
static struct http_call *new_call(struct http_server *server, struct MHD_Connection *connection,
	const char *method, const char *path)
{
	char client[ADDRESS_CLIENT_BYTES];
	struct http_call *call;

	tell_client(connection, client);
	call = http_call_new(&server->calls, connection, client, method, path);
	if (call)
		call->server = server;
	return call;
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
		return http_call_read(call, bytes, had);
	}
	if (call->state == CALL_TOO_LONG) {
		static const struct http_header type = {MHD_HTTP_HEADER_CONTENT_TYPE, "text/plain"};
		static const char words[] = "the body is too long\n";

		http_call_prepare(call, 413, &type, 1, words, sizeof(words) - 1);
	} else if (call->state == CALL_READING) {
		call->state = CALL_HANDLED;
		crowd_serve(guest_of(connection), true);
		server->handle(server->context, call);
	}
	if (call->state == CALL_ANSWERED)
		return http_call_send(call);
	suspend(call);
	return MHD_YES;
}

static void completed(void *context, struct MHD_Connection *connection, void **its,
	enum MHD_RequestTerminationCode code)
{
	struct http_server *server = context;
	struct http_call *call = *its;

	crowd_serve(guest_of(connection), false);
	if (!call)
		return;
	if (call->state == CALL_HANDLED)
		server->gone(server->context, call);
	http_call_free(call);
	*its = NULL;
}

static void free_port(struct port *port)
{
	if (port->watch.is_in)
		loop_watch_remove(port->server->loop, &port->watch);
	loop_timer_clear(port->server->loop, &port->timer);
	if (port->daemon)
		MHD_stop_daemon(port->daemon);
	for (size_t i = 0; i < ARRAY_SIZE(port->texts); i++)
		free(port->texts[i]);
	free(port);
}

static bool is_left(const struct port *port)
{
	const union MHD_DaemonInfo *info;

	if (port == port->server->ports)
		return false;
	info = MHD_get_daemon_info(port->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
	return !info || !info->num_connections;
}

static void run(struct port *port)
{
	MHD_UNSIGNED_LONG_LONG ms;

	port->server->has_room = false;
	MHD_run(port->daemon);
	if (is_left(port)) {
		struct port **link = &port->server->ports;

		while (*link != port)
			link = &(*link)->next;
		*link = port->next;
		free_port(port);
	} else if (port->server->has_room) {
		/* one that it had no room for is accepted when it is run again, and nothing else says so */
		loop_timer_set(port->server->loop, &port->timer, clock_now_ns());
	} else if (MHD_get_timeout(port->daemon, &ms)) {
		loop_timer_set(port->server->loop, &port->timer, clock_now_ns() + ms * 1000000);
	} else {
		loop_timer_clear(port->server->loop, &port->timer);
	}
}

static void ready(void *context, uint32_t events)
{
	run(context);
}

static void due(void *context)
{
	run(context);
}

static struct port *port_of(const struct http_call *call)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_DAEMON);
	struct port *port = call->server->ports;

	while (info && port->next && port->daemon != info->daemon)
		port = port->next;
	return port;
}

void http_answer_with(struct http_call *call, unsigned status, const struct http_header *headers,
	size_t header_count, const char *body, size_t body_bytes)
{
	http_call_prepare(call, status, headers, header_count, body, body_bytes);
	if (!call->link)
		return; /* take() is on the stack and sends it */
	resume(call);
	loop_timer_set(call->server->loop, &port_of(call)->timer, clock_now_ns());
}

void http_answer(struct http_call *call, unsigned status, const char *type, const char *body,
	size_t body_bytes)
{
	const struct http_header header = {MHD_HTTP_HEADER_CONTENT_TYPE, type};

	http_answer_with(call, status, &header, 1, body, body_bytes);
}

/* socket below 0: it is made, and bound to the address. */
static struct MHD_Daemon *start_daemon(const struct port *port, int socket)
{
	struct http_server *server = port->server;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			 (server->address.any.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0) |
			 (port->texts[0] ? MHD_USE_TLS : 0);
	struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, port->texts[0]},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, port->texts[1]},
		{port->texts[2] ? MHD_OPTION_HTTPS_MEM_TRUST : MHD_OPTION_END, 0, port->texts[2]},
		{MHD_OPTION_END, 0, NULL}};
	struct MHD_OptionItem where[] = {
		{socket < 0 ? MHD_OPTION_SOCK_ADDR : MHD_OPTION_LISTEN_SOCKET, socket,
			socket < 0 ? &server->address.any : NULL},
		{MHD_OPTION_END, 0, NULL}};
	struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};

	errno = 0;
	return MHD_start_daemon(flags, 0, NULL, NULL, take, server, MHD_OPTION_CONNECTION_LIMIT,
		server->connections_most, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
		server->client_connections_most, MHD_OPTION_CONNECTION_TIMEOUT, server->silence_s,
		MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_NOTIFY_CONNECTION,
		came_or_went, server, MHD_OPTION_ARRAY, where, MHD_OPTION_ARRAY,
		port->texts[0] ? tls : none, MHD_OPTION_END);
}

static int begin(struct port *port, int socket, struct err *err)
{
	const union MHD_DaemonInfo *info;
	int result;

	port->daemon = start_daemon(port, socket);
	if (!port->daemon)
		return err_set(err, errno ? errno : EINVAL, "the port is not served: %s",
			errno ? strerror(errno) : "the certificate or its key is not understood");
	info = MHD_get_daemon_info(port->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	result = info ? loop_watch_add(port->server->loop, &port->watch, info->epoll_fd, EPOLLIN)
		      : -EINVAL;
	return result ? err_set(err, -result, "the port is not served: %s", strerror(-result)) : 0;
}

static int new_port(struct http_server *server, const char *const texts[3], struct port **ret_port)
{
	struct port *port = calloc(1, sizeof(*port));

	if (!port)
		return -ENOMEM;
	port->server = server;
	port->watch = (struct loop_watch){.ready = ready, .context = port};
	port->timer = (struct loop_timer){.due = due, .context = port};
	for (size_t i = 0; i < ARRAY_SIZE(port->texts); i++) {
		port->texts[i] = texts[i] ? strdup(texts[i]) : NULL;
		if (texts[i] && !port->texts[i]) {
			free_port(port);
			return -ENOMEM;
		}
	}
	*ret_port = port;
	return 0;
}

static int add_port(
	struct http_server *server, int socket, const char *const texts[3], struct err *err)
{
	struct port *port;
	int result = new_port(server, texts, &port);

	if (result)
		return err_set(err, ENOMEM, "no memory");
	result = begin(port, socket, err);
	if (result) {
		free_port(port);
		return result;
	}
	port->next = server->ports;
	server->ports = port;
	run(port);
	return 0;
}

static unsigned crowded_from(unsigned connections_most)
{
	unsigned spare = connections_most / SPARE_PARTS;

	return spare ? connections_most - spare : 0;
}

int http_server_start(struct loop *loop, const struct http_server_settings *settings,
	http_handle_fn *handle, http_gone_fn *gone, void *context, struct http_server **ret_server,
	struct err *err)
{
	const char *const texts[] = {
		settings->certificate, settings->key, settings->client_authority};
	struct http_server *server = calloc(1, sizeof(*server));
	const union MHD_DaemonInfo *info;
	int result;

	if (!server)
		return err_set(err, ENOMEM, "no memory");
	*server = (struct http_server){.loop = loop,
		.crowd.most = crowded_from(settings->connections_most),
		.handle = handle,
		.gone = gone,
		.context = context,
		.calls = {.body_most_bytes = settings->body_most_bytes,
			.client_bodies_most_bytes = settings->client_bodies_most_bytes},
		.connections_most = settings->connections_most,
		.client_connections_most = settings->client_connections_most,
		.silence_s = settings->silence_s};
	if (address_make(settings->address, settings->port, &server->address)) {
		result = add_port(server, -1, texts, err);
		if (result)
			err_wrap(err, "%s:%u", settings->address, settings->port);
	} else {
		result = err_set(err, EINVAL, "'%s' is no IP address", settings->address);
	}
	if (result) {
		free(server);
		return result;
	}
	info = MHD_get_daemon_info(server->ports->daemon, MHD_DAEMON_INFO_BIND_PORT);
	server->port = info ? info->port : 0;
	*ret_server = server;
	return 0;
}

/* The new daemon has a socket of its own number, because each closes its own. */
int http_server_renew(struct http_server *server, const char *certificate, const char *key,
	const char *client_authority, struct err *err)
{
	const char *const texts[] = {certificate, key, client_authority};
	struct port *old = server->ports;
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(old->daemon, MHD_DAEMON_INFO_LISTEN_FD);
	int fd = info ? fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 3) : -1, result;

	if (fd < 0)
		return err_set(err, EMFILE, "no descriptor");
	result = add_port(server, fd, texts, err);
	if (result) {
		close(fd);
		return result;
	}
	fd = MHD_quiesce_daemon(old->daemon);
	if (fd >= 0)
		close(fd);
	run(old);
	return 0;
}

/* No connection may be suspended when the daemon is stopped. */
static void end_suspended(struct http_server *server)
{
	while (server->suspended) {
		struct http_call *call = server->suspended;

		server->gone(server->context, call);
		call->state = CALL_ANSWERED;
		resume(call);
		for (struct port *port = server->ports; port && !server->suspended;
			port = port->next)
			MHD_run(port->daemon);
	}
}

void http_server_stop(struct http_server *server)
{
	if (!server)
		return;
	for (struct port *port = server->ports; port; port = port->next)
		if (port->watch.is_in)
			loop_watch_remove(server->loop, &port->watch);
	end_suspended(server);
	while (server->ports) {
		struct port *port = server->ports;

		server->ports = port->next;
		free_port(port);
	}
	free(server);
}

uint16_t http_server_port(const struct http_server *server)
{
	return server->port;
}

/* The library asks for a certificate where it has an authority, and lets pass what came, or did not. */
static bool has_shown_certificate(const struct http_call *call)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(call->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned count = 0, status = 1;

	if (!port_of(call)->texts[2] || !info || !info->tls_session)
		return false;
	return gnutls_certificate_get_peers(info->tls_session, &count) && count &&
	       !gnutls_certificate_verify_peers2(info->tls_session, &status) && !status;
}

bool http_call_is_trusted(const struct http_call *call)
{
	const struct sockaddr *address = address_of(call->connection);

	return (address && address_is_of_this_host(address)) || has_shown_certificate(call);
}
