/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: what each may take, and what its pods take. A namespace is there while it has quotas or pods. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "policy/fit.h"
#include "scheduler/hash.h"

struct quota;

struct quotas_namespace {
	struct fit_room used;
	struct quota *quotas;
	size_t pod_count;
	bool is_lost;
	UT_hash_handle hh;
	char name[];
};

/* All zero at first. */
struct quotas {
	struct quotas_namespace *namespaces;
};

/* NULL: no memory. Who puts no pod into it lets it go. */
struct quotas_namespace *quotas_namespace(struct quotas *quotas, const char *name);
void quotas_let_go(struct quotas *quotas, struct quotas_namespace *namespace);

/* -ENOMEM. */
int quotas_set(struct quotas *quotas, const char *namespace, const char *name,
	const struct fit_room *limit) MUST_CHECK;
void quotas_drop(struct quotas *quotas, const char *namespace, const char *name);

/* quotas_sweep() drops those that were not set since quotas_mark(). */
void quotas_mark(struct quotas *quotas);
void quotas_sweep(struct quotas *quotas);

/* What the strictest leave, if so much of what is used did not count. */
struct fit_room quotas_room(
	const struct quotas *quotas, const char *namespace, const struct fit_room *uncounted);

/* The strictest of the namespace; false: it has none. */
bool quotas_limit(const struct quotas_namespace *namespace, struct fit_room *ret_limit);

/* No namespace has pods any more. */
void quotas_deinit(struct quotas *quotas);
