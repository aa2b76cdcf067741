/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finished operations of gRPC, handed to the loop.
 *
 * gRPC's completion queue can only be waited for by a thread. That thread does nothing but put what is
 * finished into a list and make a descriptor readable; the loop takes it from there.
 */
#include "net/rpc_queue.h"

#include <errno.h>
#include <grpc/byte_buffer.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "net/rpc.h"

#define LOG_TOPIC LOG_NET

struct rpc {
	struct loop *loop;
	grpc_completion_queue *queue;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t was_added;
	struct rpc_op *first, **end; /* under the lock */
	int fd;
	struct loop_watch watch;
};

static void add(struct rpc *rpc, struct rpc_op *op, bool is_ok)
{
	pthread_mutex_lock(&rpc->lock);
	op->is_ok = is_ok;
	op->next = NULL;
	*rpc->end = op;
	rpc->end = &op->next;
	pthread_cond_signal(&rpc->was_added);
	pthread_mutex_unlock(&rpc->lock);
	eventfd_write(rpc->fd, 1);
}

static void *wait_for_grpc(void *context)
{
	struct rpc *rpc = context;

	for (;;) {
		grpc_event event = grpc_completion_queue_next(
			rpc->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);

		if (event.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (event.type == GRPC_OP_COMPLETE)
			add(rpc, event.tag, event.success);
	}
}

/* Under the lock. */
static struct rpc_op *take(struct rpc *rpc, const void *owner)
{
	for (struct rpc_op **at = &rpc->first; *at; at = &(*at)->next) {
		struct rpc_op *op = *at;

		if (owner && op->owner != owner)
			continue;
		*at = op->next;
		if (rpc->end == &op->next)
			rpc->end = at;
		return op;
	}
	return NULL;
}

static void is_ready(void *context, uint32_t events)
{
	struct rpc *rpc = context;
	struct rpc_op *op;
	eventfd_t count;
	bool is_ok;

	eventfd_read(rpc->fd, &count);
	for (;;) {
		pthread_mutex_lock(&rpc->lock);
		op = take(rpc, NULL);
		is_ok = op && op->is_ok;
		pthread_mutex_unlock(&rpc->lock);
		if (!op)
			return;
		op->done(op, is_ok);
	}
}

void rpc_wait_for(struct rpc *rpc, const void *owner)
{
	struct rpc_op *op;
	bool is_ok;

	pthread_mutex_lock(&rpc->lock);
	while (!(op = take(rpc, owner)))
		pthread_cond_wait(&rpc->was_added, &rpc->lock);
	is_ok = op->is_ok;
	pthread_mutex_unlock(&rpc->lock);
	op->done(op, is_ok);
}

void *rpc_tag(struct rpc *rpc, struct rpc_op *op)
{
	pthread_mutex_lock(&rpc->lock);
	pthread_mutex_unlock(&rpc->lock);
	return op;
}

grpc_completion_queue *rpc_queue(struct rpc *rpc)
{
	return rpc->queue;
}

static void destroy(struct rpc *rpc)
{
	loop_watch_remove(rpc->loop, &rpc->watch);
	grpc_completion_queue_destroy(rpc->queue);
	pthread_mutex_destroy(&rpc->lock);
	pthread_cond_destroy(&rpc->was_added);
	cleanup_fd(&rpc->fd);
	free(rpc);
	grpc_shutdown();
}

/* Every failure also comes back as a status, which its caller logs. */
static void keep_grpc_quiet(gpr_log_func_args *args)
{
	log_debug("grpc says", STR("text", args->message));
}

int rpc_new(struct loop *loop, struct rpc **ret_rpc)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));
	int error;

	if (!rpc)
		return -ENOMEM;
	gpr_set_log_function(keep_grpc_quiet);
	grpc_init();
	rpc->loop = loop;
	rpc->end = &rpc->first;
	rpc->watch = (struct loop_watch){.ready = is_ready, .context = rpc};
	pthread_mutex_init(&rpc->lock, NULL);
	pthread_cond_init(&rpc->was_added, NULL);
	rpc->queue = grpc_completion_queue_create_for_next(NULL);
	rpc->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = rpc->fd < 0 ? -errno : loop_watch_add(loop, &rpc->watch, rpc->fd, EPOLLIN);
	if (!error)
		error = -pthread_create(&rpc->thread, NULL, wait_for_grpc, rpc);
	if (error) {
		grpc_completion_queue_shutdown(rpc->queue);
		destroy(rpc);
		return error;
	}
	*ret_rpc = rpc;
	return 0;
}

void rpc_free(struct rpc *rpc)
{
	if (!rpc)
		return;
	grpc_completion_queue_shutdown(rpc->queue);
	pthread_join(rpc->thread, NULL);
	destroy(rpc);
}

grpc_slice rpc_bytes_of(grpc_byte_buffer *buffer)
{
	grpc_byte_buffer_reader reader;
	grpc_slice bytes;

	if (!buffer || !grpc_byte_buffer_reader_init(&reader, buffer))
		return grpc_empty_slice();
	bytes = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	return bytes;
}

grpc_byte_buffer *rpc_buffer_of(const void *message, size_t bytes)
{
	grpc_slice slice = grpc_slice_from_copied_buffer(message, bytes);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);

	grpc_slice_unref(slice);
	return buffer;
}

int rpc_address_of(const char *socket_path, char *ret_address, size_t size)
{
	struct sockaddr_un limit;
	int length = snprintf(ret_address, size, "unix:%s", socket_path);

	return length < 0 || (size_t)length >= size ||
			       (size_t)length >= sizeof(limit.sun_path) + sizeof("unix:") - 1
		       ? -ENAMETOOLONG
		       : 0;
}
