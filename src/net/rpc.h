/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC over unix sockets, in a daemon's loop, over gRPC's C core.
 *
 * Messages are bytes here; what they mean is their owner's. gRPC has threads of its own, and one of ours
 * waits for what it finishes and hands that to the loop: every callback below comes from loop_run(). What is
 * freed or ended says nothing any more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct rpc;
struct rpc_server;
struct rpc_call;
struct rpc_request;

/* gRPC's own numbers; any other may come from outside. */
enum rpc_status {
	RPC_OK = 0,
	RPC_CANCELLED = 1,
	RPC_INVALID = 3,
	RPC_TIMED_OUT = 4,
	RPC_FAILED_PRECONDITION = 9,
	RPC_UNIMPLEMENTED = 12,
	RPC_INTERNAL = 13,
	RPC_UNAVAILABLE = 14, /* nobody listens there */
};

/* The loop must outlive it, and it its servers and requests. */
int rpc_new(struct loop *loop, struct rpc **ret_rpc) MUST_CHECK;
void rpc_free(struct rpc *rpc);

/*
 * A call has begun, with its one message. From here on it is the receiver's, until he answers or refuses it,
 * or gone() says that its client left.
 */
struct rpc_method {
	const char *path; /* "/package.Service/Method" */
	void (*begin)(void *context, struct rpc_call *call, const void *message, size_t bytes);
};

struct rpc_service {
	const struct rpc_method *methods; /* others are refused by RPC_UNIMPLEMENTED */
	size_t method_count;
	void (*gone)(void *context, struct rpc_call *call);
};

/*
 * Listens on a socket, whose file is made anew. The service is the caller's and must live as long. -EIO with
 * err set.
 */
int rpc_serve(struct rpc *rpc, const char *socket_path, const struct rpc_service *service,
	void *context, struct rpc_server **ret_server, struct err *err) MUST_CHECK;

/*
 * Ends the server and its calls, which gone() does not tell, and removes the socket's file. Accepts NULL. Not
 * from a callback of its own.
 */
void rpc_server_free(struct rpc_server *server);

/*
 * Sends one message of several. One that has not left yet is replaced: a stream of states needs only the
 * last. The bytes are copied.
 */
void rpc_push(struct rpc_call *call, const void *message, size_t bytes);

/* Sends the one message, and the call is over. */
void rpc_answer(struct rpc_call *call, const void *message, size_t bytes);

/* The call is over without a message. */
void rpc_refuse(struct rpc_call *call, enum rpc_status status, const char *words);

/* message() comes for each message of the answer, done() once, after the last. */
struct rpc_listener {
	void (*message)(void *context, const void *message, size_t bytes);
	void (*done)(void *context, int status, const char *words);
};

/* Calls a method of the server that listens on a socket. timeout_ns covers everything, a connection too. */
int rpc_send(struct rpc *rpc, const char *socket_path, const char *method, const void *message,
	size_t bytes, uint64_t timeout_ns, const struct rpc_listener *listener, void *context,
	struct rpc_request **ret_request) MUST_CHECK;

/* Ends a request before its done(). Accepts NULL. */
void rpc_request_free(struct rpc_request *request);
