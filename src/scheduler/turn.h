/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bind's turn at a node: its place among the binds of that node, and the node's lock.
 *
 * Turns of one node wait here for its lock, one behind the other and for a bounded time, instead of failing: a bind that fails
 * costs another Filter. The lock is set, and removed, only where the node is still as it was last seen. Until a removal has been
 * answered the next turn waits, so that none can hit a later lock.
 *
 * Under the lock no other scheduler binds to the node. Where one may have done so before, without this program having seen it, the
 * node's pods are read first. A lock of a pod that is not bound is taken over after that pod was given another version: a binding
 * that names one known before its lock then binds nothing, however late it comes.
 */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "kube/client.h"
#include "scheduler/cluster.h"
#include "scheduler/settings.h"

struct turn;

struct turn_request {
	struct kube_client *client;
	struct cluster *cluster;
	const struct settings *settings;
	struct cluster_node *node;
	const char *namespace, *name; /* of the pod; copied */
};

/*
 * Takes a place. done comes later: with NULL where the lock is the pod's, else with why it is not to be had. Either way
 * the turn is then to be ended. -ENOMEM.
 */
int turn_begin(const struct turn_request *request, void (*done)(void *context, const char *why),
	void *context, struct turn **ret_turn) MUST_CHECK;

/* The lock is set once more, and done comes again: a version of the pod that was learned under the lock can be another's work. */
void turn_again(struct turn *turn);

/* Whether it waits for the lock, and its end needs no answer. */
bool turn_is_waiting(const struct turn *turn);

/* Ends it, done or not. unlocks: the lock is removed where it is set; else it stays, for the device plugin. Accepts NULL. */
void turn_end(struct turn *turn, bool unlocks);

/* The node's lock has changed, or the node is gone. */
void turn_lock_changed(struct cluster_node *node);

/* The program ends: frees those that are not ended but for the removal of their lock. */
void turn_stop(struct cluster_node *node);
