/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as what a client sends to the HTTP server. The first says how many pieces they come in, and whether the client stays
 * to read the answer; a request whose path has a `w` in it is answered later than the next piece. Each request that is told is
 * answered or gone once, and none is left when its client is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/http_server.h"
#include "tests/fuzz/fuzz.h"

#define CALLS	   64
#define TURNS_MOST 2000 /* of the loop, until the server has closed the connection */
#define TURN_NS	   1000000

static struct loop *loop;
static struct http_server *server;
static struct http_call *waiting[CALLS];
static size_t waiting_count;

static void answer(struct http_call *call)
{
	size_t bytes;
	const char *body = http_call_body(call, &bytes);

	FUZZ_CHECK(bytes <= 4096 && !body[bytes] && *http_call_method(call));
	FUZZ_CHECK(http_call_is_trusted(call));
	FUZZ_CHECK(!strcmp(http_call_client(call), "127.0.0.1"));
	http_answer(call, 200, "text/plain", body, bytes);
}

static void handle(void *context, struct http_call *call)
{
	if (!strchr(http_call_path(call), 'w') || waiting_count == CALLS)
		answer(call);
	else
		waiting[waiting_count++] = call;
}

static void gone(void *context, struct http_call *call)
{
	for (size_t i = 0; i < waiting_count; i++)
		if (waiting[i] == call) {
			waiting[i] = waiting[--waiting_count];
			return;
		}
	FUZZ_CHECK(!"a call that was answered is gone");
}

static void answer_waiting(void)
{
	while (waiting_count)
		answer(waiting[--waiting_count]);
}

static void start(void)
{
	const struct http_server_settings settings = {.address = "127.0.0.1",
		.body_most_bytes = 4096,
		.connections_most = 16,
		.silence_s = 1};
	struct err err = ERR_NULL;

	FUZZ_CHECK(!loop_new(&loop));
	FUZZ_CHECK(!http_server_start(loop, &settings, handle, gone, NULL, &server, &err));
}

static void turn(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		FUZZ_CHECK(!loop_run(loop, clock_now_ns()));
}

static int connect_client(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(http_server_port(server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct linger at_once = {1, 0}; /* else closed connections use up all ports */
	const int no_delay = 1; /* else a piece waits 40 ms for the one before to be acknowledged */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	FUZZ_CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof(no_delay)));
	FUZZ_CHECK(!connect(fd, (const struct sockaddr *)&address, sizeof(address)));
	return fd;
}

/* Until the server has closed it. */
static void read_to_end(int fd)
{
	char bytes[4096];

	shutdown(fd, SHUT_WR);
	for (unsigned i = 0; i < TURNS_MOST; i++) {
		ssize_t count = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		if (!count || (count < 0 && errno != EAGAIN))
			return;
		if (count < 0) {
			FUZZ_CHECK(!loop_run(loop, clock_now_ns() + TURN_NS));
			answer_waiting();
		}
	}
	FUZZ_CHECK(!"the server keeps a connection whose client has ended");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t pieces = size ? bytes[0] % 4 + 1 : 1, sent = size ? 1 : 0;
	bool stays = size && bytes[0] & 4;
	int fd;

	if (!server)
		start();
	fd = connect_client();
	for (size_t i = 1; i <= pieces; i++) {
		size_t until = 1 + (size - 1) * i / pieces;

		if (size && until > sent &&
			send(fd, bytes + sent, until - sent, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			break;
		sent = until;
		turn(3);
		if (i % 2)
			answer_waiting();
	}
	if (stays)
		read_to_end(fd);
	close(fd);
	turn(3);
	answer_waiting();
	turn(3);
	FUZZ_CHECK(!waiting_count);
	return 0;
}
