/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC question: a channel, one call on it, and the end of both.
 *
 * Channels are not kept: a plugin asks a kubelet once in its life. Each has connections of its own, because
 * gRPC's common ones remember that nobody listened, and wait up to 20 s before they try again.
 */
#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "net/rpc.h"
#include "net/rpc_queue.h"

struct rpc_question {
	struct rpc *rpc;
	grpc_channel *channel;
	grpc_call *call;
	struct rpc_listener listener;
	void *context;
	struct rpc_op sent, read, ended;
	unsigned pending;
	bool is_freed;
	grpc_byte_buffer *sending, *received;
	grpc_metadata_array initial, trailing;
	grpc_status_code status;
	grpc_slice words;
};

static void question_destroy(struct rpc_question *question)
{
	if (question->call)
		grpc_call_unref(question->call);
	if (question->channel)
		grpc_channel_destroy(question->channel);
	grpc_byte_buffer_destroy(question->sending);
	grpc_byte_buffer_destroy(question->received);
	grpc_metadata_array_destroy(&question->initial);
	grpc_metadata_array_destroy(&question->trailing);
	grpc_slice_unref(question->words);
	free(question);
}

static void ask_grpc(
	struct rpc_question *question, const grpc_op *ops, size_t count, struct rpc_op *op)
{
	if (grpc_call_start_batch(question->call, ops, count, op, NULL) == GRPC_CALL_OK)
		question->pending++;
}

/* The end is told when everything has come, so that it is behind the last message. */
static void was_answered(struct rpc_question *question)
{
	struct rpc_listener listener = question->listener;
	void *context = question->context;
	int status = (int)question->status;
	char *words;

	if (--question->pending || question->is_freed)
		return;
	words = grpc_slice_to_c_string(question->words);
	question_destroy(question);
	listener.done(context, status, words);
	gpr_free(words);
}

static void sent_done(struct rpc_op *op, bool is_ok)
{
	was_answered(RPC_PART_OF(op, struct rpc_question, sent));
}

static void ended_done(struct rpc_op *op, bool is_ok)
{
	was_answered(RPC_PART_OF(op, struct rpc_question, ended));
}

static void read_next(struct rpc_question *question)
{
	grpc_op read = {
		.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &question->received};

	ask_grpc(question, &read, 1, &question->read);
}

static void read_done(struct rpc_op *op, bool is_ok)
{
	struct rpc_question *question = RPC_PART_OF(op, struct rpc_question, read);
	grpc_byte_buffer *received = question->received;

	if (received && !question->is_freed) {
		grpc_slice bytes = rpc_bytes_of(received);

		question->received = NULL;
		grpc_byte_buffer_destroy(received);
		read_next(question);
		question->pending--; /* the next one is outstanding */
		/* last: it may free the question */
		question->listener.message(
			question->context, GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
		grpc_slice_unref(bytes);
		return;
	}
	was_answered(question);
}

static void begin(struct rpc_question *question)
{
	grpc_op ops[] = {
		{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = question->sending},
		{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &question->initial},
	};
	grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		.data.recv_status_on_client = {.trailing_metadata = &question->trailing,
			.status = &question->status,
			.status_details = &question->words}};

	ask_grpc(question, ops, sizeof(ops) / sizeof(*ops), &question->sent);
	ask_grpc(question, &end, 1, &question->ended);
	read_next(question);
}

static grpc_channel *channel_to(const char *address)
{
	grpc_arg list[] = {
		{.type = GRPC_ARG_INTEGER,
			.key = (char *)GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL,
			.value.integer = 1},
		{.type = GRPC_ARG_INTEGER,
			.key = (char *)GRPC_ARG_ENABLE_HTTP_PROXY,
			.value.integer = 0},
	};
	grpc_channel_args args = {.num_args = sizeof(list) / sizeof(*list), .args = list};
	grpc_channel_credentials *nobody = grpc_insecure_credentials_create();
	grpc_channel *channel = grpc_channel_create(address, nobody, &args);

	grpc_channel_credentials_release(nobody);
	return channel;
}

int rpc_ask(struct rpc *rpc, const char *socket_path, const char *method, const void *message,
	size_t bytes, uint64_t timeout_ns, const struct rpc_listener *listener, void *context,
	struct rpc_question **ret_question)
{
	char address[sizeof(struct sockaddr_un) + 8];
	struct rpc_question *question;
	gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
		gpr_time_from_nanos((int64_t)timeout_ns, GPR_TIMESPAN));
	grpc_slice path;

	if (rpc_address_of(socket_path, address, sizeof(address)))
		return -ENAMETOOLONG;
	question = calloc(1, sizeof(*question));
	if (!question)
		return -ENOMEM;
	question->rpc = rpc;
	question->listener = *listener;
	question->context = context;
	question->sent = (struct rpc_op){.done = sent_done, .owner = question};
	question->read = (struct rpc_op){.done = read_done, .owner = question};
	question->ended = (struct rpc_op){.done = ended_done, .owner = question};
	question->words = grpc_empty_slice();
	question->sending = rpc_buffer_of(message, bytes);
	grpc_metadata_array_init(&question->initial);
	grpc_metadata_array_init(&question->trailing);
	question->channel = channel_to(address);
	path = grpc_slice_from_copied_string(method);
	question->call = grpc_channel_create_call(question->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		rpc_queue(rpc), path, NULL, deadline, NULL);
	grpc_slice_unref(path);
	begin(question);
	*ret_question = question;
	return 0;
}

void rpc_question_free(struct rpc_question *question)
{
	if (!question)
		return;
	question->is_freed = true;
	grpc_call_cancel(question->call, NULL);
	while (question->pending)
		rpc_wait_for(question->rpc, question);
	question_destroy(question);
}
