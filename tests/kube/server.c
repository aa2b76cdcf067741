/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server that says what a script tells it: a thread for each connection, and one step for each
 * request.
 */
#include "tests/kube/server.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/cmocka_ready.h"

#define REQUEST_BYTES 65536

struct connection {
	struct server *server;
	int fd;
};

static void send_text(int fd, const char *text, size_t count)
{
	while (count) {
		ssize_t sent = send(fd, text, count, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		text += sent;
		count -= (size_t)sent;
	}
}

static void send_stream(int fd, const struct server_step *step, const char *body)
{
	char head[64];

	send_text(fd, "Transfer-Encoding: chunked\r\n\r\n", 30);
	if (*body) {
		/* a chunk that is cut is announced longer than it is */
		snprintf(head, sizeof(head), "%zx\r\n",
			strlen(body) + (step->end == SERVER_CUT ? 100 : 0));
		send_text(fd, head, strlen(head));
		send_text(fd, body, strlen(body));
		if (step->end != SERVER_CUT)
			send_text(fd, "\r\n", 2);
	}
	if (step->end == SERVER_WHOLE)
		send_text(fd, "0\r\n\r\n", 5);
}

static void send_answer(int fd, const struct server_step *step)
{
	const char *body = step->body ? step->body : "";
	char head[512];

	if (!step->status)
		return;
	snprintf(head, sizeof(head), "HTTP/1.1 %d Scripted\r\nContent-Type: application/json\r\n%s",
		step->status, step->headers ? step->headers : "");
	send_text(fd, head, strlen(head));
	if (step->is_stream) {
		send_stream(fd, step, body);
		return;
	}
	snprintf(head, sizeof(head), "Content-Length: %zu\r\n\r\n",
		strlen(body) + (step->end == SERVER_WHOLE ? 0 : 10));
	send_text(fd, head, strlen(head));
	send_text(fd, body, strlen(body));
}

/* A request with its body, or false at the connection's end. */
static bool receive(int fd, char *text)
{
	size_t count = 0, wanted = 0;

	text[0] = 0;
	for (;;) {
		const char *end = strstr(text, "\r\n\r\n"),
			   *length = strstr(text, "Content-Length: ");
		ssize_t more;

		if (end)
			wanted = (size_t)(end - text) + 4 +
				 (length ? strtoul(length + 16, NULL, 10) : 0);
		if (end && count >= wanted)
			return true;
		more = recv(fd, text + count, REQUEST_BYTES - 1 - count, 0);
		if (more <= 0)
			return false;
		count += (size_t)more;
		text[count] = 0;
	}
}

/* The script's next step, or NULL where it knows no such request. */
static const struct server_step *next_step(struct server *server, const char *request)
{
	const struct server_step *step = NULL;

	pthread_mutex_lock(&server->lock);
	if (server->request_count < server->step_count)
		step = &server->steps[server->request_count];
	if (step && strncmp(request, step->expect, strlen(step->expect)))
		step = NULL;
	if (!step) {
		fprintf(stderr, "server: request %zu is not in the script: %.*s\n",
			server->request_count, (int)strcspn(request, "\r"), request);
		server->was_surprised = true;
	}
	if (server->request_count < SERVER_REQUESTS)
		server->requests[server->request_count++] = strdup(request);
	pthread_mutex_unlock(&server->lock);
	return step;
}

static void *serve(void *context)
{
	struct connection connection = *(struct connection *)context;
	char *request = malloc(REQUEST_BYTES);
	const struct server_step *step;

	free(context);
	while (receive(connection.fd, request)) {
		step = next_step(connection.server, request);
		if (!step)
			break;
		send_answer(connection.fd, step);
		if (step->end == SERVER_CUT)
			break;
	}
	free(request);
	shutdown(connection.fd, SHUT_RDWR);
	return NULL;
}

static void *accept_all(void *context)
{
	struct server *server = context;
	int fd;

	while ((fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		struct connection *connection = malloc(sizeof(*connection));

		assert_true(server->connection_count < SERVER_CONNECTIONS);
		*connection = (struct connection){.server = server, .fd = fd};
		server->fds[server->connection_count] = fd;
		pthread_create(
			&server->connections[server->connection_count++], NULL, serve, connection);
	}
	return NULL;
}

void server_start(struct server *server, const struct server_step *steps, size_t count)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);

	*server = (struct server){.steps = steps, .step_count = count};
	pthread_mutex_init(&server->lock, NULL);
	server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_return_code(bind(server->listen_fd, (struct sockaddr *)&address, length), 0);
	assert_return_code(listen(server->listen_fd, SERVER_CONNECTIONS), 0);
	assert_return_code(getsockname(server->listen_fd, (struct sockaddr *)&address, &length), 0);
	server->port = ntohs(address.sin_port);
	pthread_create(&server->acceptor, NULL, accept_all, server);
}

void server_stop(struct server *server)
{
	shutdown(server->listen_fd, SHUT_RDWR);
	pthread_join(server->acceptor, NULL);
	close(server->listen_fd);
	for (size_t i = 0; i < server->connection_count; i++)
		shutdown(server->fds[i], SHUT_RDWR);
	for (size_t i = 0; i < server->connection_count; i++) {
		pthread_join(server->connections[i], NULL);
		close(server->fds[i]);
	}
	for (size_t i = 0; i < server->request_count; i++)
		free(server->requests[i]);
	pthread_mutex_destroy(&server->lock);
	assert_false(server->was_surprised);
	assert_int_equal(server->request_count, server->step_count);
}

const char *server_request(struct server *server, size_t i)
{
	const char *text;

	pthread_mutex_lock(&server->lock);
	text = i < server->request_count ? server->requests[i] : "";
	pthread_mutex_unlock(&server->lock);
	return text;
}

size_t server_count(struct server *server)
{
	size_t count;

	pthread_mutex_lock(&server->lock);
	count = server->request_count;
	pthread_mutex_unlock(&server->lock);
	return count;
}
