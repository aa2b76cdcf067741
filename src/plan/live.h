/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of a cluster, read once from its API server. */
#pragma once

#include <jansson.h>

#include "base/bits.h"
#include "base/err.h"
#include "plan/reader.h"

struct live;

/* kubeconfig, context: NULL, where the usual ones are to be used. */
int live_open(const char *kubeconfig, const char *context, struct live **ret_live,
	struct err *err) MUST_CHECK;

/* Accepts NULL. */
void live_close(struct live *live);

/* The server's address, for people. */
const char *live_server(const struct live *live);

/* Adds all objects of a collection, page by page, as of that kind. query: selectors, escaped; NULL: all. */
int live_list(struct live *live, const char *path, const char *query, const char *kind,
	struct reader_list *list, struct err *err) MUST_CHECK;
