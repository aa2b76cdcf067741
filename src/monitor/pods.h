/* SPDX-License-Identifier: Apache-2.0 */
/* This node's pods as far as they concern the monitor, by the UID that stands in the names of their containers' folders. */
#pragma once

#include "base/bits.h"
#include "kube/assignment.h"
#include "kube/client.h"
#include "kube/instances.h"

#define POD_MARK_BYTES 80 /* of a container's name at the runtime: 64 digits */

struct pod_names;

struct pod_container {
	char *name;
	char mark
		[POD_MARK_BYTES]; /* by which the runtime calls it, without "containerd://"; "": it has not begun */
	bool is_running;
	const struct assignment_slot
		*slot; /* what its pod's annotation assigns to it; NULL: it does not say */
};

struct pod_name {
	struct pod_name *next;
	char *uid, *namespace, *name;
	struct pod_container *containers; /* init containers first */
	size_t container_count;
	struct instances instances;   /* of devices that are cut */
	struct assignment assignment; /* of all its containers */
	bool is_misassigned;	      /* its annotation fits its containers in no way */
	bool is_seen;		      /* in the list that is under way */
};

/* Follows the pods of that node, whose containers ask for slices by that resource. The names must live as long. -ENOMEM. */
int pod_names_start(struct kube_client *client, const char *node_name, const char *resource,
	struct pod_names **ret_names) MUST_CHECK;

/* Accepts NULL. Before the end of the client. */
void pod_names_stop(struct pod_names *names);

/* Whether all that the server has are known. */
bool pod_names_are_known(const struct pod_names *names);

/* NULL: there is none, as far as is known. What is told is good until the loop goes on. Accepts NULL, which knows none. */
const struct pod_name *pod_names_find(const struct pod_names *names, const char *uid);

/* Likewise by its name. */
const struct pod_name *pod_names_find_named(
	const struct pod_names *names, const char *namespace, const char *name);

/* Likewise; the rest by `next`. */
const struct pod_name *pod_names_first(const struct pod_names *names);

/* The container with that mark; NULL: there is none. */
const struct pod_container *pod_find_container(const struct pod_name *pod, const char *mark);
