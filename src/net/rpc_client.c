/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC request: a channel, one call on it, and the end of both.
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

struct rpc_request {
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

static void request_destroy(struct rpc_request *request)
{
	if (request->call)
		grpc_call_unref(request->call);
	if (request->channel)
		grpc_channel_destroy(request->channel);
	grpc_byte_buffer_destroy(request->sending);
	grpc_byte_buffer_destroy(request->received);
	grpc_metadata_array_destroy(&request->initial);
	grpc_metadata_array_destroy(&request->trailing);
	grpc_slice_unref(request->words);
	free(request);
}

static void start_batch(
	struct rpc_request *request, const grpc_op *ops, size_t count, struct rpc_op *op)
{
	if (grpc_call_start_batch(request->call, ops, count, rpc_tag(request->rpc, op), NULL) ==
		GRPC_CALL_OK)
		request->pending++;
}

/* The end is told when everything has come, so that it is behind the last message. */
static void was_answered(struct rpc_request *request)
{
	struct rpc_listener listener = request->listener;
	void *context = request->context;
	int status = (int)request->status;
	char *words;

	if (--request->pending || request->is_freed)
		return;
	words = grpc_slice_to_c_string(request->words);
	request_destroy(request);
	listener.done(context, status, words);
	gpr_free(words);
}

static void sent_done(struct rpc_op *op, bool is_ok)
{
	was_answered(RPC_PART_OF(op, struct rpc_request, sent));
}

static void ended_done(struct rpc_op *op, bool is_ok)
{
	was_answered(RPC_PART_OF(op, struct rpc_request, ended));
}

static void read_next(struct rpc_request *request)
{
	grpc_op read = {
		.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &request->received};

	start_batch(request, &read, 1, &request->read);
}

static void read_done(struct rpc_op *op, bool is_ok)
{
	struct rpc_request *request = RPC_PART_OF(op, struct rpc_request, read);
	grpc_byte_buffer *received = request->received;

	if (received && !request->is_freed) {
		grpc_slice bytes = rpc_bytes_of(received);

		request->received = NULL;
		grpc_byte_buffer_destroy(received);
		read_next(request);
		request->pending--; /* the next one is outstanding */
		/* last: it may free the request */
		request->listener.message(
			request->context, GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
		grpc_slice_unref(bytes);
		return;
	}
	was_answered(request);
}

static void begin(struct rpc_request *request)
{
	grpc_op ops[] = {
		{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = request->sending},
		{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &request->initial},
	};
	grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		.data.recv_status_on_client = {.trailing_metadata = &request->trailing,
			.status = &request->status,
			.status_details = &request->words}};

	start_batch(request, ops, sizeof(ops) / sizeof(*ops), &request->sent);
	start_batch(request, &end, 1, &request->ended);
	read_next(request);
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

int rpc_send(struct rpc *rpc, const char *socket_path, const char *method, const void *message,
	size_t bytes, uint64_t timeout_ns, const struct rpc_listener *listener, void *context,
	struct rpc_request **ret_request)
{
	char address[sizeof(struct sockaddr_un) + 8];
	struct rpc_request *request;
	gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
		gpr_time_from_nanos((int64_t)timeout_ns, GPR_TIMESPAN));
	grpc_slice path;

	if (rpc_address_of(socket_path, address, sizeof(address)))
		return -ENAMETOOLONG;
	request = calloc(1, sizeof(*request));
	if (!request)
		return -ENOMEM;
	request->rpc = rpc;
	request->listener = *listener;
	request->context = context;
	request->sent = (struct rpc_op){.done = sent_done, .owner = request};
	request->read = (struct rpc_op){.done = read_done, .owner = request};
	request->ended = (struct rpc_op){.done = ended_done, .owner = request};
	request->words = grpc_empty_slice();
	request->sending = rpc_buffer_of(message, bytes);
	grpc_metadata_array_init(&request->initial);
	grpc_metadata_array_init(&request->trailing);
	request->channel = channel_to(address);
	path = grpc_slice_from_copied_string(method);
	request->call = grpc_channel_create_call(request->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		rpc_queue(rpc), path, NULL, deadline, NULL);
	grpc_slice_unref(path);
	begin(request);
	*ret_request = request;
	return 0;
}

void rpc_request_free(struct rpc_request *request)
{
	if (!request)
		return;
	request->is_freed = true;
	grpc_call_cancel(request->call, NULL);
	while (request->pending)
		rpc_wait_for(request->rpc, request);
	request_destroy(request);
}
