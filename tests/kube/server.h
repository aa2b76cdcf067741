/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server that says what a script tells it, faults included: one step for each request, in the order
 * of their coming.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum server_end {
	SERVER_WHOLE, /* as HTTP has it */
	SERVER_CUT,   /* the connection is closed in the middle */
	SERVER_HANG,  /* nothing more comes, and the connection stays */
};

struct server_step {
	const char *expect;  /* what the request's first line begins with */
	int status;	     /* 0: no answer at all */
	const char *headers; /* each with "\r\n"; NULL: none */
	const char *body;    /* NULL: empty */
	bool is_stream;	     /* sent in chunks, without a length */
	enum server_end end;
};

#define SERVER_CONNECTIONS 16
#define SERVER_REQUESTS	   64

struct server {
	const struct server_step *steps;
	size_t step_count;
	int listen_fd;
	unsigned port;
	pthread_t acceptor, connections[SERVER_CONNECTIONS];
	int fds[SERVER_CONNECTIONS];
	size_t connection_count;
	pthread_mutex_t lock;
	char *requests[SERVER_REQUESTS]; /* whole, as they came */
	size_t request_count;
	bool was_surprised; /* by a request that is not in the script */
};

void server_start(struct server *server, const struct server_step *steps, size_t count);

/* Closes everything and fails the test where a request was not in the script, or a step was not asked for. */
void server_stop(struct server *server);

/* How many requests have come. */
size_t server_count(struct server *server);

/* The text of the i-th request, or "". */
const char *server_request(struct server *server, size_t i);
