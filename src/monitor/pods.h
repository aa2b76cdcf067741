/* SPDX-License-Identifier: Apache-2.0 */
/* The names of this node's pods, by the UID that stands in the names of their containers' folders. */
#pragma once

#include "base/bits.h"
#include "kube/client.h"

struct pod_names;

struct pod_name {
	const char *namespace, *name;
};

/* Follows the pods of that node. -ENOMEM. */
int pod_names_start(
	struct kube_client *client, const char *node_name, struct pod_names **ret_names) MUST_CHECK;

/* Accepts NULL. Before the end of the client. */
void pod_names_stop(struct pod_names *names);

/* Whether all that the server has are known. */
bool pod_names_are_known(const struct pod_names *names);

/* False: there is none, as far as is known. What is told is good until the loop goes on. Accepts NULL, which knows none. */
bool pod_names_find(const struct pod_names *names, const char *uid, struct pod_name *ret_name);
