/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP client in a daemon's loop, over libcurl.
 *
 * Any number of exchanges with one server run at a time, over as few connections as HTTP/2 lets them: a
 * stream that stays open for minutes (a watch) costs neither a thread nor a connection. That is why this is
 * libcurl's multi interface in the loop, not a thread a request: the plugin and the scheduler both keep their
 * state in one thread and without locks.
 *
 * Callbacks are called from loop_run() alone, never from within http_send() or http_cancel(), and never with
 * a function of libcurl below them: they may send and cancel as they like.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct http_client;
struct http_exchange;

/* PEM text or the path of a file with it, of which one is given. Files are read for each new connection. */
struct http_pem {
	const char *text, *path;
};

struct http_trust {
	struct http_pem authority;	  /* neither: the system's authorities */
	struct http_pem certificate, key; /* neither: the client shows none */
	bool is_unverified;		  /* any server will do */
};

struct http_request {
	const char *method, *url;
	const char *
		socket_path; /* of a server of HTTP/2, whatever host the URL names; NULL: that host */
	const char *const *headers; /* "Name: value", the last is NULL; NULL: none */
	const char *body;	    /* NULL: none */
	size_t body_bytes;
	/*
	 * A body is sent once at most: HTTP_E_CUT, where an idle connection ends under it. Else it is sent again on another, which the
	 * server cannot tell from a second request.
	 */
	bool is_once;
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	unsigned silence_s;   /* ends when nothing came for so long; 0: never */
	size_t most_bytes;    /* of the answer that data() has not been given yet */
};

enum {
	_HTTP_E_SUCCESS = 0,
	HTTP_E_NOT_SENT,  /* no connection: the server has seen nothing of it */
	HTTP_E_CUT,	  /* ended before the answer did; the server may have carried it out */
	HTTP_E_TIMED_OUT, /* deadline or silence; the server may have carried it out */
	HTTP_E_TOO_LARGE,
};

struct http_result {
	int outcome;
	int status;		/* 0: no answer came */
	unsigned retry_after_s; /* 0: the server did not say */
	const char *words;	/* why it failed */
};

/*
 * data() is given the answer's bytes piece by piece, with the status that they came with; the bytes are the
 * client's. done() is called once, after the last of them, and the exchange is gone when it returns.
 */
struct http_events {
	void (*data)(void *context, int status, const char *bytes, size_t count);
	void (*done)(void *context, const struct http_result *result);
};

/* The trust's texts are copied. The loop must outlive the client. */
int http_client_new(struct loop *loop, const struct http_trust *trust,
	struct http_client **ret_client, struct err *err) MUST_CHECK;

/* Cancels what is under way. Not from a callback. */
void http_client_free(struct http_client *client);

/* Begins an exchange; all that the request names is copied. Only memory can fail here: -ENOMEM. */
int http_send(struct http_client *client, const struct http_request *request,
	const struct http_events *events, void *context,
	struct http_exchange **ret_exchange) MUST_CHECK;

/* Ends an exchange without a further callback; the server may have carried it out. */
void http_cancel(struct http_exchange *exchange);
