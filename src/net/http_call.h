/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request at the server: its body as it comes, and its answer as it goes. For net/http_server.c alone; what a handler asks of it
 * is in net/http_server.h.
 */
#pragma once

#include <microhttpd.h>

#include "net/address.h"
#include "net/http_server.h"

enum call_state {
	CALL_READING,
	CALL_TOO_LONG,
	CALL_HANDLED, /* the handler has it */
	CALL_ANSWERED,
};

/* All requests of a server, and how much their bodies may be. */
struct http_calls {
	struct http_call *first;
	size_t body_most_bytes, client_bodies_most_bytes;
};

struct http_call {
	struct http_server *server;
	struct MHD_Connection *connection;
	char *method, *path, *body;
	size_t body_bytes;
	char client[ADDRESS_CLIENT_BYTES];
	struct http_calls *all;
	struct http_call *next_held, **held_link; /* of all that there are */
	enum call_state state;
	struct MHD_Response
		*response; /* of an answered one, until it is queued; NULL: there was no memory */
	unsigned status;
	struct http_call *next,
		**link; /* of those that are suspended; link is NULL where it is not */
	void *data;
};

/* One whose head has come, without a server yet. NULL: there is no memory. */
struct http_call *http_call_new(struct http_calls *all, struct MHD_Connection *connection,
	const char *client, const char *method, const char *path);
void http_call_free(struct http_call *call);

/* A piece of the body. What is too long is read to its end, and CALL_TOO_LONG. MHD_NO closes the connection, here and below. */
enum MHD_Result http_call_read(struct http_call *call, const char *bytes, size_t count);

/* Makes the answer, of copies: it is CALL_ANSWERED. */
void http_call_prepare(struct http_call *call, unsigned status, const struct http_header *headers,
	size_t header_count, const char *body, size_t body_bytes);

/* Gives the answer to the library. */
enum MHD_Result http_call_send(struct http_call *call);
