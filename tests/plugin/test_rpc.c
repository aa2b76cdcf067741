/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC in a loop: a server and its clients, in one process, on one socket. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/rpc.h"
#include "tests/unit/cmocka_ready.h"
#include "tests/unit/looping.h"
#include "tests/unit/scratch.h"

#define SECOND_NS 1000000000ull

static struct loop *loop;
static struct rpc *rpc;
static struct rpc_server *server;
static struct rpc_call *held; /* a call that the server has not answered */
static unsigned gone_count;

struct answer {
	char text[256];
	bool is_done;
	int status;
	char words[256];
};

static void echo(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	rpc_answer(call, message, bytes);
}

static void refuse(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	rpc_refuse(call, RPC_FAILED_PRECONDITION, "not now");
}

static void hold(void *context, struct rpc_call *call, const void *message, size_t bytes)
{
	held = call;
}

static void gone(void *context, struct rpc_call *call)
{
	assert_ptr_equal(call, held);
	held = NULL;
	gone_count++;
}

static const struct rpc_method methods[] = {
	{"/t.T/Echo", echo}, {"/t.T/Refuse", refuse}, {"/t.T/Hold", hold}};
static const struct rpc_service service = {methods, 3, gone};

static void take_message(void *context, const void *message, size_t bytes)
{
	struct answer *answer = context;
	size_t length = strlen(answer->text);

	snprintf(answer->text + length, sizeof(answer->text) - length, "%.*s|", (int)bytes,
		(const char *)message);
}

static void take_end(void *context, int status, const char *words)
{
	struct answer *answer = context;

	assert_false(answer->is_done);
	answer->is_done = true;
	answer->status = status;
	snprintf(answer->words, sizeof(answer->words), "%s", words);
}

static const struct rpc_listener listener = {take_message, take_end};

static int setup(void **state)
{
	struct err err = ERR_NULL;
	struct scratch *s;

	if (scratch_setup(state) || loop_new(&loop) || rpc_new(loop, &rpc))
		return -1;
	s = *state;
	gone_count = 0;
	held = NULL;
	return rpc_serve(rpc, s->file, &service, NULL, &server, &err);
}

static int teardown(void **state)
{
	rpc_server_free(server);
	server = NULL;
	rpc_free(rpc);
	loop_free(loop);
	return scratch_teardown(state);
}

/* Lets the loop run until the server holds a call, or such a call has gone. */
static void wait_for_held(bool is_held)
{
	uint64_t until = clock_now_ns() + 30 * SECOND_NS;

	while (!held == is_held && clock_now_ns() < until)
		looping_run(loop, 5);
	assert_int_equal(held != NULL, is_held);
}

static void wait_for_text(const struct answer *answer, const char *text)
{
	uint64_t until = clock_now_ns() + 30 * SECOND_NS;

	while (strcmp(answer->text, text) && clock_now_ns() < until)
		looping_run(loop, 5);
	assert_string_equal(answer->text, text);
}

static void wait_for_last(const struct answer *answer, const char *last)
{
	uint64_t until = clock_now_ns() + 30 * SECOND_NS;

	while (!strstr(answer->text, last) && clock_now_ns() < until)
		looping_run(loop, 5);
}

static struct rpc_request *ask_for(
	void **state, const char *method, const char *text, unsigned most_s, struct answer *answer)
{
	struct scratch *s = *state;
	struct rpc_request *request;

	memset(answer, 0, sizeof(*answer));
	assert_int_equal(rpc_send(rpc, s->file, method, text, strlen(text), most_s * SECOND_NS,
				 &listener, answer, &request),
		0);
	return request;
}

static struct rpc_request *ask(
	void **state, const char *method, const char *text, struct answer *answer)
{
	return ask_for(state, method, text, 30, answer);
}

static void a_message_is_answered(void **state)
{
	struct answer answer;

	for (unsigned i = 0; i < 20; i++) {
		ask(state, "/t.T/Echo", "hello", &answer);
		looping_wait(loop, &answer.is_done, 60);
		assert_int_equal(answer.status, RPC_OK);
		assert_string_equal(answer.text, "hello|");
	}
	/* none at all is a message, too */
	ask(state, "/t.T/Echo", "", &answer);
	looping_wait(loop, &answer.is_done, 60);
	assert_string_equal(answer.text, "|");
}

static void a_refusal_says_why(void **state)
{
	struct answer answer;

	ask(state, "/t.T/Refuse", "x", &answer);
	looping_wait(loop, &answer.is_done, 60);
	assert_int_equal(answer.status, RPC_FAILED_PRECONDITION);
	assert_string_equal(answer.words, "not now");
	assert_string_equal(answer.text, "");
	ask(state, "/t.T/None", "x", &answer);
	looping_wait(loop, &answer.is_done, 60);
	assert_int_equal(answer.status, RPC_UNIMPLEMENTED);
}

static void a_stream_gets_every_state_and_at_last_the_last(void **state)
{
	struct answer answer;

	ask(state, "/t.T/Hold", "x", &answer);
	wait_for_held(true);
	rpc_push(held, "1", 1);
	wait_for_text(&answer, "1|");
	/* the first of these is on its way where the server has heard that "1" has left; the second is replaced */
	rpc_push(held, "2", 1);
	rpc_push(held, "3", 1);
	rpc_push(held, "4", 1);
	wait_for_last(&answer, "4|");
	assert_true(!strcmp(answer.text, "1|2|4|") || !strcmp(answer.text, "1|4|"));
	rpc_refuse(held, RPC_OK, "");
	looping_wait(loop, &answer.is_done, 60);
	assert_int_equal(answer.status, RPC_OK);
	assert_int_equal(gone_count, 0);
}

static void a_client_that_leaves_is_told(void **state)
{
	struct answer answer;
	struct rpc_request *request = ask(state, "/t.T/Hold", "x", &answer);

	wait_for_held(true);
	rpc_request_free(request);
	wait_for_held(false);
	assert_int_equal(gone_count, 1);
	assert_false(answer.is_done);
	/* its time-out is the same to the server */
	ask_for(state, "/t.T/Hold", "x", 2, &answer);
	looping_wait(loop, &answer.is_done, 60);
	assert_int_equal(answer.status, RPC_TIMED_OUT);
	wait_for_held(false);
	assert_int_equal(gone_count, 2);
	rpc_request_free(NULL);
}

static void a_server_that_ends_ends_its_calls(void **state)
{
	struct answer answer;
	struct scratch *s = *state;

	ask(state, "/t.T/Hold", "x", &answer);
	wait_for_held(true);
	rpc_server_free(server);
	server = NULL;
	looping_wait(loop, &answer.is_done, 60);
	assert_int_not_equal(answer.status, RPC_OK);
	assert_int_equal(gone_count, 0);
	assert_int_not_equal(access(s->file, F_OK), 0);
	/* nobody listens now, and that is known at once */
	ask(state, "/t.T/Echo", "x", &answer);
	looping_wait(loop, &answer.is_done, 60);
	assert_int_equal(answer.status, RPC_UNAVAILABLE);
	/* and is forgotten when somebody does */
	assert_int_equal(
		rpc_serve(rpc, s->file, &service, NULL, &server, &(struct err)ERR_NULL), 0);
	ask(state, "/t.T/Echo", "x", &answer);
	looping_wait(loop, &answer.is_done, 60);
	assert_int_equal(answer.status, RPC_OK);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	struct rpc_server *none;
	struct rpc_request *request;
	struct err err = ERR_NULL;
	char path[200];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = 0;
	assert_int_equal(rpc_serve(rpc, path, &service, NULL, &none, &err), -ENAMETOOLONG);
	assert_int_equal(
		rpc_send(rpc, path, "/t.T/Echo", "", 0, SECOND_NS, &listener, NULL, &request),
		-ENAMETOOLONG);
	assert_int_equal(
		rpc_serve(rpc, "/nonexistent/folder/socket", &service, NULL, &none, &err), -EIO);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_is_answered),
		TEST(a_refusal_says_why),
		TEST(a_stream_gets_every_state_and_at_last_the_last),
		TEST(a_client_that_leaves_is_told),
		TEST(a_server_that_ends_ends_its_calls),
		TEST(a_path_that_is_too_long_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
