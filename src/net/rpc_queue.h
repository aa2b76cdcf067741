/* SPDX-License-Identifier: Apache-2.0 */
/* Finished operations of gRPC, handed from its threads to the loop; for net/rpc_*.c alone. */
#pragma once

#include <grpc/grpc.h>
#include <stdbool.h>

#include "base/bits.h"
#include "net/loop.h"

struct rpc;

/* An operation that gRPC carries out, as a member of its owner. It stays until done() is called. */
struct rpc_op {
	void (*done)(struct rpc_op *op, bool is_ok);
	const void *owner; /* by whom rpc_wait_for() finds it */
	struct rpc_op *next;
	bool is_ok;
};

/* The structure that an operation is part of. */
#define RPC_PART_OF(op, type, member) ((type *)(void *)((char *)(op)-offsetof(type, member)))

grpc_completion_queue *rpc_queue(struct rpc *rpc);

/*
 * The tag by which an operation is given to gRPC. The thread that hears of its end sees all that was written before:
 * gRPC orders that too, by what no sanitizer knows.
 */
void *rpc_tag(struct rpc *rpc, struct rpc_op *op);

/* Waits for the next of an owner's operations to be done, and calls its done(). */
void rpc_wait_for(struct rpc *rpc, const void *owner);

/* The bytes of a message in one piece, for grpc_slice_unref(). */
grpc_slice rpc_bytes_of(grpc_byte_buffer *buffer);

/* A message of a copy of the bytes; "unix:" and the path. */
grpc_byte_buffer *rpc_buffer_of(const void *message, size_t bytes);
int rpc_address_of(const char *socket_path, char *ret_address, size_t size) MUST_CHECK;
