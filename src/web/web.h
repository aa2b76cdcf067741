/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page that a daemon serves to people, and the JSON behind it.
 *
 * It only shows: GET and HEAD are all that is answered, and nothing that a request says changes anything. A server at a loopback
 * address answers only requests that name this host, so that no other site's page can read it through a name of its own.
 */
#pragma once

#include <stdio.h>

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"

struct web;

struct web_source {
	/* What is so now, as one object of JSON; it is asked at most once a second. Below 0: it cannot be told. */
	int (*write_state)(void *context, FILE *out);
	/* What was so in the last hour, likewise. */
	int (*write_history)(void *context, FILE *out);
	void *context;
};

/*
 * Listens at ADDRESS:PORT. -EADDRINUSE, -EADDRNOTAVAIL, -EACCES, -EINVAL, -ENOMEM with err set. The source is
 * copied.
 */
int web_start(struct loop *loop, const char *where, const struct web_source *source,
	struct web **ret_web, struct err *err) MUST_CHECK;

/* Accepts NULL. */
void web_stop(struct web *web);
