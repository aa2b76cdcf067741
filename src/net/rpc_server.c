/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A gRPC server.
 *
 * One call is always requested ahead. A call counts what it has asked of gRPC and is freed when nothing is
 * outstanding; the operation that tells its end is outstanding all the time, so it cannot go early.
 */
#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "net/rpc.h"
#include "net/rpc_queue.h"

struct rpc_server {
	struct rpc *rpc;
	grpc_server *server;
	const struct rpc_service *service;
	void *context;
	unsigned calls; /* structures that exist */
	bool is_stopping, is_stopped;
	struct rpc_op stopped;
};

struct rpc_call {
	struct rpc_server *server;
	grpc_call *call;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *received;
	const struct rpc_method *method;
	int was_cancelled; /* gRPC's word; unused, and it needs a place */
	struct rpc_op requested, read, closed, sent;
	unsigned pending;
	bool is_owners; /* between begin() and its end */
	/* what is to be sent, and what is on its way */
	grpc_byte_buffer *next, *sending;
	bool has_begun_answer, is_sending, is_ending, has_ended;
	grpc_status_code status;
	grpc_slice words;
};

static void request_next(struct rpc_server *server);

static void call_free(struct rpc_call *call)
{
	call->server->calls--;
	if (call->call)
		grpc_call_unref(call->call);
	grpc_byte_buffer_destroy(call->received);
	grpc_byte_buffer_destroy(call->next);
	grpc_byte_buffer_destroy(call->sending);
	grpc_call_details_destroy(&call->details);
	grpc_metadata_array_destroy(&call->metadata);
	grpc_slice_unref(call->words);
	free(call);
}

static void start_batch(struct rpc_call *call, const grpc_op *ops, size_t count, struct rpc_op *op)
{
	/* it refuses only what is wrong by our own fault */
	if (grpc_call_start_batch(call->call, ops, count, rpc_tag(call->server->rpc, op), NULL) ==
		GRPC_CALL_OK)
		call->pending++;
}

static void was_answered(struct rpc_call *call)
{
	if (!--call->pending)
		call_free(call);
}

/* Sends what is there to send, if nothing is on its way. */
static void send_next(struct rpc_call *call)
{
	grpc_op ops[3] = {0};
	size_t count = 0;

	if (call->is_sending || call->has_ended || !(call->next || call->is_ending))
		return;
	if (!call->has_begun_answer)
		ops[count++].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (call->next) {
		call->sending = call->next;
		call->next = NULL;
		ops[count].op = GRPC_OP_SEND_MESSAGE;
		ops[count++].data.send_message.send_message = call->sending;
	}
	if (call->is_ending) {
		ops[count].op = GRPC_OP_SEND_STATUS_FROM_SERVER;
		ops[count].data.send_status_from_server.status = call->status;
		ops[count++].data.send_status_from_server.status_details = &call->words;
	}
	call->has_begun_answer = call->is_sending = true;
	call->has_ended = call->is_ending;
	start_batch(call, ops, count, &call->sent);
}

static void sent_done(struct rpc_op *op, bool is_ok)
{
	struct rpc_call *call = RPC_PART_OF(op, struct rpc_call, sent);

	call->is_sending = false;
	grpc_byte_buffer_destroy(call->sending);
	call->sending = NULL;
	if (is_ok) /* else its end is about to be told */
		send_next(call);
	was_answered(call);
}

void rpc_push(struct rpc_call *call, const void *message, size_t bytes)
{
	grpc_byte_buffer_destroy(call->next);
	call->next = rpc_buffer_of(message, bytes);
	send_next(call);
}

static void end(struct rpc_call *call, enum rpc_status status, const char *words)
{
	call->is_owners = false;
	call->is_ending = true;
	call->status = (grpc_status_code)status;
	call->words = grpc_slice_from_copied_string(words);
	send_next(call);
}

void rpc_answer(struct rpc_call *call, const void *message, size_t bytes)
{
	grpc_byte_buffer_destroy(call->next);
	call->next = rpc_buffer_of(message, bytes);
	end(call, RPC_OK, "");
}

void rpc_refuse(struct rpc_call *call, enum rpc_status status, const char *words)
{
	grpc_byte_buffer_destroy(call->next);
	call->next = NULL;
	end(call, status, words);
}

static void closed_done(struct rpc_op *op, bool is_ok)
{
	struct rpc_call *call = RPC_PART_OF(op, struct rpc_call, closed);
	struct rpc_server *server = call->server;

	call->has_ended = true; /* whatever is still to be sent */
	if (call->is_owners && !server->is_stopping)
		server->service->gone(server->context, call);
	call->is_owners = false;
	was_answered(call);
}

static void read_done(struct rpc_op *op, bool is_ok)
{
	struct rpc_call *call = RPC_PART_OF(op, struct rpc_call, read);
	struct rpc_server *server = call->server;
	grpc_slice bytes = rpc_bytes_of(call->received);

	if (call->received && !server->is_stopping && !call->has_ended) {
		call->is_owners = true;
		call->method->begin(server->context, call, GRPC_SLICE_START_PTR(bytes),
			GRPC_SLICE_LENGTH(bytes));
	} else if (!call->has_ended) {
		end(call, RPC_INVALID, "there is no message");
	}
	grpc_slice_unref(bytes);
	was_answered(call);
}

static const struct rpc_method *method_of(const struct rpc_server *server, grpc_slice path)
{
	for (size_t i = 0; i < server->service->method_count; i++)
		if (!grpc_slice_str_cmp(path, server->service->methods[i].path))
			return &server->service->methods[i];
	return NULL;
}

static void begin(struct rpc_call *call)
{
	grpc_op close = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER,
		.data.recv_close_on_server.cancelled = &call->was_cancelled};
	grpc_op read = {
		.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &call->received};

	call->method = method_of(call->server, call->details.method);
	start_batch(call, &close, 1, &call->closed);
	if (call->method)
		start_batch(call, &read, 1, &call->read);
	else
		end(call, RPC_UNIMPLEMENTED, "there is no such method here");
}

static void requested_done(struct rpc_op *op, bool is_ok)
{
	struct rpc_call *call = RPC_PART_OF(op, struct rpc_call, requested);

	if (is_ok && !call->server->is_stopping)
		request_next(call->server);
	if (is_ok)
		begin(call);
	was_answered(call);
}

static void stopped_done(struct rpc_op *op, bool is_ok)
{
	RPC_PART_OF(op, struct rpc_server, stopped)->is_stopped = true;
}

/* Without memory no further call is taken: who calls then waits for his time-out. */
static void request_next(struct rpc_server *server)
{
	struct rpc_call *call = calloc(1, sizeof(*call));

	if (!call)
		return;
	call->server = server;
	call->words = grpc_empty_slice();
	call->requested = (struct rpc_op){.done = requested_done, .owner = server};
	call->read = (struct rpc_op){.done = read_done, .owner = server};
	call->closed = (struct rpc_op){.done = closed_done, .owner = server};
	call->sent = (struct rpc_op){.done = sent_done, .owner = server};
	call->pending = 1;
	server->calls++;
	grpc_call_details_init(&call->details);
	grpc_metadata_array_init(&call->metadata);
	if (grpc_server_request_call(server->server, &call->call, &call->details, &call->metadata,
		    rpc_queue(server->rpc), rpc_queue(server->rpc),
		    rpc_tag(server->rpc, &call->requested)) != GRPC_CALL_OK)
		was_answered(call);
}

int rpc_serve(struct rpc *rpc, const char *socket_path, const struct rpc_service *service,
	void *context, struct rpc_server **ret_server, struct err *err)
{
	char address[sizeof(struct sockaddr_un) + 8];
	struct rpc_server *server = calloc(1, sizeof(*server));
	grpc_server_credentials *anyone;
	int port;

	if (!server)
		return err_set(err, ENOMEM, "no memory");
	if (rpc_address_of(socket_path, address, sizeof(address))) {
		free(server);
		return err_set(
			err, ENAMETOOLONG, "%s: the path of a socket is too long", socket_path);
	}
	server->rpc = rpc;
	server->service = service;
	server->context = context;
	server->stopped = (struct rpc_op){.done = stopped_done, .owner = server};
	server->server = grpc_server_create(NULL, NULL);
	grpc_server_register_completion_queue(server->server, rpc_queue(rpc), NULL);
	anyone =
		grpc_insecure_server_credentials_create(); /* the folder's permissions say who may */
	port = grpc_server_add_http2_port(server->server, address, anyone);
	grpc_server_credentials_release(anyone);
	grpc_server_start(server->server);
	if (!port) {
		rpc_server_free(server);
		return err_set(err, EIO, "%s: cannot be listened on", socket_path);
	}
	request_next(server);
	*ret_server = server;
	return 0;
}

void rpc_server_free(struct rpc_server *server)
{
	if (!server)
		return;
	server->is_stopping = true;
	grpc_server_shutdown_and_notify(
		server->server, rpc_queue(server->rpc), rpc_tag(server->rpc, &server->stopped));
	grpc_server_cancel_all_calls(server->server);
	while (!server->is_stopped || server->calls)
		rpc_wait_for(server->rpc, server);
	grpc_server_destroy(server->server);
	free(server);
}
