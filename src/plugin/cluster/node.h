/* SPDX-License-Identifier: Apache-2.0 */
/* This node's own object at the API server, read now and then: its lock, and what it says of its devices. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"
#include "plugin/cluster/lock.h"

#define NODE_REGISTER "hami.io/node-nvidia-register"

struct node;

struct node_state {
	bool is_known;
	uint64_t read_at_ns;
	struct node_lock lock;
	char *registered, *scores; /* what it says; NULL: nothing */
};

/* Reads the node now and every half minute, and calls changed() after each. The name is copied. -ENOMEM. */
int node_start(struct kube_client *client, const char *name, void (*changed)(void *context),
	void *context, struct node **ret_node) MUST_CHECK;

/* Accepts NULL. Before the end of the client. */
void node_stop(struct node *node);

const struct node_state *node_state(const struct node *node);
const char *node_name(const struct node *node);

/* Of its object: "/api/v1/nodes/NAME". */
const char *node_path(const struct node *node);

/* Takes over what a call said. */
void node_take(struct node *node, const json_t *object);

/* The lock is gone, by our own doing. */
void node_forget_lock(struct node *node);

/* Reads it in so long, and not only when it is its time. */
void node_read_in(struct node *node, uint64_t pause_ns);
