/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server before the HTTP client of the same loop. */
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/http.h"
#include "net/http_server.h"
#include "tests/unit/cmocka_ready.h"

#define SECOND_NS 1000000000ull

struct scene {
	struct loop *loop;
	struct http_server *server;
	struct http_client *client;
	struct http_call *waiting; /* one that is answered later */
	struct loop_timer later;
	unsigned handled, gone, done;
	int status, outcome;
	char answer[64];
	size_t answer_bytes;
};

static void answer_later(void *context)
{
	struct scene *scene = context;

	http_answer(scene->waiting, 200, "text/plain", "later", 5);
	scene->waiting = NULL;
}

static void handle(void *context, struct http_call *call)
{
	struct scene *scene = context;
	size_t bytes;
	const char *body = http_call_body(call, &bytes);

	scene->handled++;
	http_call_set_data(call, scene);
	assert_ptr_equal(http_call_data(call), scene);
	if (!strcmp(http_call_path(call), "/echo")) {
		assert_string_equal(http_call_method(call), "POST");
		http_answer(call, 200, "text/plain", body, bytes);
		return;
	}
	scene->waiting = call;
	if (!strcmp(http_call_path(call), "/later"))
		loop_timer_set(scene->loop, &scene->later, clock_now_ns() + SECOND_NS / 20);
}

static void gone(void *context, struct http_call *call)
{
	struct scene *scene = context;

	assert_ptr_equal(call, scene->waiting);
	scene->gone++;
}

static void data(void *context, int status, const char *bytes, size_t count)
{
	struct scene *scene = context;

	if (scene->answer_bytes + count < sizeof(scene->answer))
		memcpy(scene->answer + scene->answer_bytes, bytes, count);
	scene->answer_bytes += count;
}

static void done(void *context, const struct http_result *result)
{
	struct scene *scene = context;

	scene->done++;
	scene->status = result->status;
	scene->outcome = result->outcome;
}

static void set_up(struct scene *scene)
{
	struct http_server_settings settings = {.address = "127.0.0.1",
		.body_most_bytes = 100000,
		.client_bodies_most_bytes = 150000,
		.connections_most = 4,
		.silence_s = 1};
	struct http_trust trust = {.is_unverified = false};
	struct err err = ERR_NULL;

	*scene = (struct scene){.later = {.due = answer_later, .context = scene}};
	assert_int_equal(loop_new(&scene->loop), 0);
	assert_int_equal(http_server_start(
				 scene->loop, &settings, handle, gone, scene, &scene->server, &err),
		0);
	assert_int_equal(http_client_new(scene->loop, &trust, &scene->client, &err), 0);
}

static void tear_down(struct scene *scene)
{
	http_client_free(scene->client);
	http_server_stop(scene->server);
	loop_timer_clear(scene->loop, &scene->later);
	loop_free(scene->loop);
}

static void send_request(struct scene *scene, const char *path, const char *body, size_t body_bytes)
{
	static const struct http_events events = {data, done};
	struct http_exchange *exchange;
	char url[64];
	struct http_request request = {.method = body ? "POST" : "GET",
		.url = url,
		.body = body,
		.body_bytes = body_bytes,
		.deadline_ns = clock_now_ns() + 30 * SECOND_NS,
		.most_bytes = 1 << 20};

	snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", http_server_port(scene->server), path);
	scene->done = 0;
	scene->answer_bytes = 0;
	memset(scene->answer, 0, sizeof(scene->answer));
	assert_int_equal(http_send(scene->client, &request, &events, scene, &exchange), 0);
}

static void run_until_done(struct scene *scene)
{
	uint64_t until_ns = clock_now_ns() + 30 * SECOND_NS;

	while (!scene->done && clock_now_ns() < until_ns)
		assert_int_equal(loop_run(scene->loop, until_ns), 0);
	assert_int_equal(scene->done, 1);
}

static void a_request_is_answered_at_once_or_later(void **state)
{
	struct scene scene;

	set_up(&scene);
	for (int i = 0; i < 3; i++) {
		send_request(&scene, "/echo", "hello", 5);
		run_until_done(&scene);
		assert_int_equal(scene.status, 200);
		assert_string_equal(scene.answer, "hello");
		send_request(&scene, "/later", NULL, 0);
		run_until_done(&scene);
		assert_int_equal(scene.status, 200);
		assert_string_equal(scene.answer, "later");
	}
	tear_down(&scene);
}

static void a_body_that_is_too_long_is_refused(void **state)
{
	char *body = calloc(1, 200000);
	struct scene scene;

	set_up(&scene);
	memset(body, 'x', 200000);
	send_request(&scene, "/echo", body, 100000);
	run_until_done(&scene);
	assert_int_equal(scene.status, 200);
	assert_int_equal(scene.answer_bytes, 100000);
	send_request(&scene, "/echo", body, 100001);
	run_until_done(&scene);
	assert_int_equal(scene.status, 413);
	assert_int_equal(scene.handled, 1);
	free(body);
	tear_down(&scene);
}

static void what_waits_ends_with_the_server(void **state)
{
	struct scene scene;

	set_up(&scene);
	send_request(&scene, "/never", NULL, 0);
	while (!scene.handled)
		assert_int_equal(loop_run(scene.loop, UINT64_MAX), 0);
	http_server_stop(scene.server);
	scene.server = NULL;
	assert_int_equal(scene.gone, 1);
	run_until_done(&scene);
	assert_int_equal(scene.status, 0);
	tear_down(&scene);
}

static int connect_to(const struct scene *scene)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
		.sin_port = htons(http_server_port(scene->server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

/* One who connects and says nothing, or half a request, is cut off, and others are served meanwhile. */
static void who_is_silent_is_cut_off(void **state)
{
	static const char half[] = "POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nhal";
	uint64_t until_ns = clock_now_ns() + 30 * SECOND_NS;
	ssize_t got = -1;
	struct scene scene;
	char byte;
	int fd;

	set_up(&scene);
	fd = connect_to(&scene);
	assert_int_equal(send(fd, half, sizeof(half) - 1, 0), sizeof(half) - 1);
	send_request(&scene, "/echo", "hello", 5);
	run_until_done(&scene);
	assert_int_equal(scene.status, 200);
	while (clock_now_ns() < until_ns) {
		assert_int_equal(loop_run(scene.loop, clock_now_ns() + SECOND_NS / 10), 0);
		got = recv(fd, &byte, 1, MSG_DONTWAIT);
		if (!got)
			break;
	}
	assert_int_equal(got, 0);
	close(fd);
	tear_down(&scene);
}

/* Each of its requests is short enough. */
static void one_client_holds_only_so_much(void **state)
{
	static const char head[] = "POST /echo HTTP/1.1\r\nContent-Length: 100000\r\n\r\n";
	char *body = calloc(1, 100000);
	struct scene scene;
	int fd;

	set_up(&scene);
	fd = connect_to(&scene);
	assert_int_equal(send(fd, head, sizeof(head) - 1, 0), sizeof(head) - 1);
	assert_int_equal(send(fd, body, 90000, 0), 90000);
	send_request(&scene, "/echo", body, 50000);
	run_until_done(&scene);
	assert_int_equal(scene.status, 200);
	send_request(&scene, "/echo", body, 100000);
	run_until_done(&scene);
	assert_int_equal(scene.status, 413);
	close(fd);
	for (int i = 0; i < 20; i++)
		assert_int_equal(loop_run(scene.loop, clock_now_ns() + SECOND_NS / 100), 0);
	send_request(&scene, "/echo", body, 100000);
	run_until_done(&scene);
	assert_int_equal(scene.status, 200);
	free(body);
	tear_down(&scene);
}

/* From another address, which says nothing. */
static int connect_as_other(const struct scene *scene)
{
	struct sockaddr_in other = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)},
			   server = {.sin_family = AF_INET,
				   .sin_port = htons(http_server_port(scene->server)),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&other, sizeof(other)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&server, sizeof(server)), 0);
	return fd;
}

/* They would keep everybody else out until they are cut off for their silence. */
static void a_crowd_keeps_nobody_out(void **state)
{
	static const char request[] = "GET /never HTTP/1.1\r\nHost: h\r\n\r\n";
	struct http_server_settings settings = {.address = "127.0.0.1",
		.body_most_bytes = 5,
		.connections_most = 32,
		.silence_s = 60};
	struct err err = ERR_NULL;
	struct scene scene;
	int served, crowd[80];
	char answer[256] = "";

	set_up(&scene);
	http_server_stop(scene.server);
	assert_int_equal(
		http_server_start(scene.loop, &settings, handle, gone, &scene, &scene.server, &err),
		0);
	served = connect_as_other(&scene);
	assert_int_equal(send(served, request, sizeof(request) - 1, 0), sizeof(request) - 1);
	while (!scene.handled)
		assert_int_equal(loop_run(scene.loop, UINT64_MAX), 0);
	for (int i = 0; i < 80; i++)
		crowd[i] = connect_as_other(&scene);
	send_request(&scene, "/echo", "hello", 5);
	run_until_done(&scene);
	assert_int_equal(scene.status, 200);
	/* and the one that waits for its answer is still there */
	http_answer(scene.waiting, 200, "text/plain", "at last", 7);
	for (int i = 0; i < 300 && recv(served, answer, sizeof(answer) - 1, MSG_DONTWAIT) <= 0; i++)
		assert_int_equal(loop_run(scene.loop, clock_now_ns() + SECOND_NS / 100), 0);
	assert_non_null(strstr(answer, "at last"));
	close(served);
	for (int i = 0; i < 80; i++)
		close(crowd[i]);
	tear_down(&scene);
}

static void a_wrong_address_is_told(void **state)
{
	struct http_server_settings settings = {
		.address = "localhost", .connections_most = 1, .silence_s = 1};
	struct http_server *server;
	struct err err = ERR_NULL;
	struct loop *loop;

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(
		http_server_start(loop, &settings, handle, gone, NULL, &server, &err), -22);
	assert_non_null(strstr(err.text, "'localhost' is no IP address"));
	settings.address = "127.0.0.1";
	settings.certificate = settings.key = "x";
	assert_true(http_server_start(loop, &settings, handle, gone, NULL, &server, &err) < 0);
	assert_non_null(strstr(err.text, "certificate"));
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_answered_at_once_or_later),
		cmocka_unit_test(a_body_that_is_too_long_is_refused),
		cmocka_unit_test(what_waits_ends_with_the_server),
		cmocka_unit_test(who_is_silent_is_cut_off),
		cmocka_unit_test(one_client_holds_only_so_much),
		cmocka_unit_test(a_crowd_keeps_nobody_out),
		cmocka_unit_test(a_wrong_address_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
