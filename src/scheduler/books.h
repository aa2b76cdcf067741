/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the cluster has, and what its pods take of it: nodes with their devices, pods with what they were assigned,
 * namespaces with their quotas.
 *
 * It is told what changed, object by object, and answers at once: a node is summed up anew when it is asked for after one of
 * its pods has changed, and costs what its own pods cost.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/fit.h"
#include "scheduler/demand.h"
#include "scheduler/registry.h"

struct books;

int books_new(struct books **ret_books) MUST_CHECK;
void books_free(struct books *books);

/*
 * The node is there with these annotations, or has changed. Texts that are not understood leave its devices as they were,
 * with -EINVAL and err set. Without devices it is known and has none. -ENOMEM.
 */
int books_set_node(struct books *books, const char *name, const struct registry_texts *texts,
	struct err *err) MUST_CHECK;
void books_drop_node(struct books *books, const char *name);

/* A node with its devices and what is used of them; NULL: none is registered. It is good until the books change. */
const struct fit_node *books_node(struct books *books, const char *name);

/* What one device of a pod is charged with. */
struct books_charge {
	const char *uuid;
	struct rank_amount amount;
};

/* An instance that a pod was promised. */
struct books_instance {
	const char *uuid;
	struct mig_place place;
};

struct books_pod {
	const char *uid, *namespace, *node;
	const struct books_charge *charges; /* one for each device */
	size_t charge_count;
	const struct books_instance *instances;
	size_t instance_count;
	bool has_doubtful_instances; /* what says which is not understood */
};

/* The pod takes so much from now on, instead of what it took before. -ENOMEM: all is as it was. */
int books_set_pod(struct books *books, const struct books_pod *pod) MUST_CHECK;
void books_drop_pod(struct books *books, const char *uid);

/* A quota of a namespace; INT64_MAX: it does not limit that. Of several the strictest holds. -ENOMEM. */
int books_set_quota(struct books *books, const char *namespace, const char *name,
	const struct fit_room *limit) MUST_CHECK;
void books_drop_quota(struct books *books, const char *namespace, const char *name);

/* What the namespace may still take; negative where it has more than it may. */
struct fit_room books_room(const struct books *books, const char *namespace);
