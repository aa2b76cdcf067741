/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler knows of the cluster: nodes, pods and quotas are followed at the API server, and each change is
 * entered into the books as it comes.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "kube/client.h"
#include "scheduler/books.h"
#include "scheduler/holds.h"
#include "scheduler/nodelock.h"
#include "scheduler/settings.h"

struct cluster;
struct turn;

struct cluster_node {
	char *name, *version;	   /* resourceVersion */
	char lock[NODELOCK_BYTES]; /* the annotation's text; "": none */
	uint64_t lock_seen_ns;	   /* since when it is so */
	int64_t lock_seen_s;	   /* the same moment by the wall clock, which may be set later */
	char own_lock[NODELOCK_BYTES]; /* the last that this program has set */
	struct turn *turns;	       /* of binds, in the order of their coming */
	uint64_t digest;	       /* of what the books were told */
	uint64_t others; /* how often pods came that another scheduler had bound, or promised it */
	bool is_marked, is_present; /* in the cluster; one that is not stays while it has turns */
	/*
	 * Whoever binds to the node locks it. Verified: its pods have been listed, and since then every change of it was
	 * seen, and no lock but this program's own among them. Listed: the same, but for the list, which is under way.
	 */
	bool is_verified, is_listed;
};

struct cluster_events {
	void (*lock_changed)(void *context, struct cluster_node *node);
	/* The pod is bound, over or gone. */
	void (*pod_settled)(void *context, const char *uid);
	/* All lists are known, for the first time or again. */
	void (*known)(void *context);
};

/* The settings must live as long. -ENOMEM. */
int cluster_start(struct kube_client *client, const struct settings *settings,
	const struct cluster_events *events, void *context,
	struct cluster **ret_cluster) MUST_CHECK;

/* Accepts NULL. */
void cluster_stop(struct cluster *cluster);

struct books *cluster_books(const struct cluster *cluster);
struct holds *cluster_holds(const struct cluster *cluster);
struct nudge *cluster_nudge(const struct cluster *cluster);

/* Whether nodes, pods and quotas have been listed. */
bool cluster_is_known(const struct cluster *cluster);

/* For how long the server has said nothing of that of the three that is heard of least. */
uint64_t cluster_silence_ns(const struct cluster *cluster);

/* Pods are listed anew: what another scheduler has promised meanwhile may not have been told yet. */
void cluster_list_pods_again(struct cluster *cluster);

/* NULL: there is none. */
struct cluster_node *cluster_node(const struct cluster *cluster, const char *name);

/*
 * A node as the server answered it; what is older than what is known says nothing. Who has not changed it itself, at the version
 * that is known, takes is_verified from it before.
 */
void cluster_take_node(struct cluster *cluster, const json_t *object);

/* The node may be forgotten where it is gone from the cluster, and has no turns. */
void cluster_release_node(struct cluster *cluster, struct cluster_node *node);

/* Whether all pods of this list that take devices are in the books as bound. */
bool cluster_knows_pods(const struct cluster *cluster, const json_t *list);

/* take() may release the node. */
void cluster_each_node(struct cluster *cluster, void (*take)(struct cluster_node *node));

size_t cluster_node_count(const struct cluster *cluster);
