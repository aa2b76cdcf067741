/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin has of the cluster: the API server, this node's object, its pods, and the kubelet's record. */
#pragma once

#include "kube/client.h"
#include "net/loop.h"
#include "net/rpc.h"
#include "plugin/cluster/node.h"
#include "plugin/cluster/pods.h"
#include "plugin/config/config.h"

struct cluster {
	struct loop *loop;
	struct rpc *rpc;
	struct kube_client *client;
	struct node *node;
	struct pods *pods;
	const struct config *config; /* as it is now */
	const char *record_path;
};
