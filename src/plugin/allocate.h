/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kubelet's requests for slices, one after another in the order of their coming.
 *
 * For each container: its pod is found, its files are made ready, its slot is taken out of the pod's annotation, and then
 * the kubelet has its answer. With the last slot the pod is bound and the node's lock released. All state is in the
 * annotations and files, so a plugin that ends between any two steps leaves what the next one finishes (reconcile.h).
 */
#pragma once

#include <stddef.h>

#include "base/bits.h"
#include "plugin/cluster/cluster.h"
#include "plugin/give.h"

struct allocate;

/* cluster and giver are the caller's. done() is called when a request has gone and nothing is under way. -ENOMEM. */
int allocate_new(const struct cluster *cluster, const struct giver *giver,
	void (*done)(void *context), void *context, struct allocate **ret_allocate) MUST_CHECK;

/* Accepts NULL. What is under way ends without an answer. */
void allocate_free(struct allocate *allocate);

/* A request has come: AllocateRequest, or PreferredAllocationRequest. The call is answered or refused later. */
void allocate_take(
	struct allocate *allocate, struct rpc_call *call, const void *message, size_t bytes);
void allocate_prefer(
	struct allocate *allocate, struct rpc_call *call, const void *message, size_t bytes);

/* The kubelet does not wait for it any more; NULL: for none. */
void allocate_forget(struct allocate *allocate, const struct rpc_call *call);

/* The pods have changed. */
void allocate_look_again(struct allocate *allocate);

bool allocate_is_idle(const struct allocate *allocate);
