/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's part in the cluster: it serves the kubelet's requests for pods, and registers the node's devices. */
#pragma once

#include "base/bits.h"
#include "base/err.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "plugin/cluster/cluster.h"
#include "plugin/cluster/pods.h"
#include "plugin/give.h"

struct agent;

/* All of it is the caller's and must live as long. */
struct agent_request {
	const struct config *config; /* its numbers and switches may change under way */
	const struct giver *giver;
	void (*pods_changed)(void *context, const struct pods *pods);
	void *context;
};

/*
 * Begins, with the server that KUBECONFIG or the pod's service account names. A server that is away is waited for. -EINVAL,
 * -ENOENT, -ENOMEM with err set.
 */
int agent_start(struct loop *loop, struct rpc *rpc, const struct agent_request *request,
	struct agent **ret_agent, struct err *err) MUST_CHECK;

/* Accepts NULL. */
void agent_stop(struct agent *agent);

const struct cluster *agent_cluster(const struct agent *agent);
struct allocate *agent_allocate(struct agent *agent);

/*
 * The UIDs of pods of this node that want slices, of all or of those that have not ended, in a list that the caller frees;
 * the texts are the agent's. -EAGAIN: they are not known yet. -ENOMEM.
 */
int agent_list_pods(
	struct agent *agent, bool is_all, const char ***ret_uids, size_t *ret_count) MUST_CHECK;

/* What the node's annotations say from now on, as registration_set(). */
void agent_register(struct agent *agent, char *text, const char *scores);
