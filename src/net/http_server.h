/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP server in a daemon's loop, over libmicrohttpd; HTTPS where it is given a certificate.
 *
 * A request is told when it has come whole, and is answered at once or later, from the loop's thread. Who sends more than is
 * allowed, or nothing for a while, is answered so or cut off without anybody being told.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct http_server;
struct http_call;

struct http_server_settings {
	const char *address;	       /* "127.0.0.1", "::"; its family is the server's */
	uint16_t port;		       /* 0: any; http_server_port() tells it */
	const char *certificate, *key; /* PEM texts; NULL: plain HTTP */
	const char *client_authority;  /* PEM text: clients may show a certificate of it; NULL */
	size_t body_most_bytes;	       /* a longer one is answered with 413 */
	size_t client_bodies_most_bytes; /* of one address, together; what is more is answered with 413; 0: no limit */
	unsigned
		connections_most; /* from 16 on, nearly so many crowd it: then one goes for each that comes (net/crowd.h) */
	unsigned client_connections_most; /* of one address; 0: no limit */
	unsigned silence_s; /* a connection on which nothing happens for so long is closed */
};

/*
 * A request. It may be answered from here or later. Everything that http_call_*() gives is good until then.
 */
typedef void http_handle_fn(void *context, struct http_call *call);

/*
 * The call must not be answered any more, because the server ends. That a client has gone is not seen while its call waits
 * for an answer.
 */
typedef void http_gone_fn(void *context, struct http_call *call);

/* -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EINVAL, -ENOMEM with err set. The settings are copied. */
int http_server_start(struct loop *loop, const struct http_server_settings *settings,
	http_handle_fn *handle, http_gone_fn *gone, void *context, struct http_server **ret_server,
	struct err *err) MUST_CHECK;

/* Ends it with all connections. Accepts NULL. Not from a callback. */
void http_server_stop(struct http_server *server);

/*
 * Connections that come from now on are shown this certificate; those that are there stay as they are. -EINVAL with err
 * set: it is not understood, and the old one stays. Not from a callback.
 */
int http_server_renew(struct http_server *server, const char *certificate, const char *key,
	const char *client_authority, struct err *err) MUST_CHECK;

uint16_t http_server_port(const struct http_server *server);

const char *http_call_method(const struct http_call *call);
const char *http_call_path(const struct http_call *call);

/* The value of a header of the request; NULL: it has none. */
const char *http_call_header(const struct http_call *call, const char *name);

/* The body with a zero behind it. */
const char *http_call_body(const struct http_call *call, size_t *ret_bytes);

/* Whether the client is on this host, or has shown a certificate of the authority that the settings name. */
bool http_call_is_trusted(const struct http_call *call);

/* The client as address_of_client() tells it. */
const char *http_call_client(const struct http_call *call);

/* Whatever the handler keeps with the call; NULL at first. */
void http_call_set_data(struct http_call *call, void *data);
void *http_call_data(const struct http_call *call);

/*
 * Answers, and the call is gone. The body is copied. Where there is no memory for that the connection is closed.
 */
void http_answer(struct http_call *call, unsigned status, const char *type, const char *body,
	size_t body_bytes);

struct http_header {
	const char *name, *value;
};

/* The same with these headers, the type's among them. */
void http_answer_with(struct http_call *call, unsigned status, const struct http_header *headers,
	size_t header_count, const char *body, size_t body_bytes);
