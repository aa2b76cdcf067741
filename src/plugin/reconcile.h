/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an Allocate left half done is finished: by a plugin that ended, a server that was away, or a pod that was deleted. A
 * lock whose pod the kubelet will not ask for any more is released, and a pod that failed is marked so.
 */
#pragma once

#include "base/bits.h"
#include "plugin/allocate.h"
#include "plugin/cluster/cluster.h"

struct reconcile;

/* -ENOMEM. */
int reconcile_new(const struct cluster *cluster, const struct allocate *allocate,
	struct reconcile **ret_reconcile) MUST_CHECK;

/* Accepts NULL. Before what it was made of. */
void reconcile_free(struct reconcile *reconcile);

/* Something has changed: the node, the pods, or no Allocate is under way any more. */
void reconcile_look(struct reconcile *reconcile);
