/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler knows of the cluster. */
#include "scheduler/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "kube/assignment.h"
#include "kube/follow.h"
#include "scheduler/hash.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

#define LOG_TOPIC LOG_PODS

struct entry {
	struct cluster_node node; /* first */
	bool is_lost;
	UT_hash_handle hh;
};

enum { NODES, PODS, QUOTAS, COLLECTIONS };

struct cluster {
	struct kube_client *client;
	const struct settings *settings;
	struct cluster_events events;
	void *context;
	struct books *books;
	struct holds *holds;
	struct nudge *nudge;
	struct entry *nodes;
	struct kube_follow *follows[COLLECTIONS];
	bool is_known[COLLECTIONS];
	bool lists_nodes, lists_pods; /* at this moment */
};

struct cluster_node *cluster_node(const struct cluster *cluster, const char *name)
{
	struct entry *entry;

	HASH_FIND_STR(cluster->nodes, name, entry);
	return entry ? &entry->node : NULL;
}

static struct cluster_node *find_or_add(struct cluster *cluster, const char *name)
{
	struct cluster_node *node = cluster_node(cluster, name);
	struct entry *entry;

	if (node)
		return node;
	entry = calloc(1, sizeof(*entry));
	if (!entry || !(entry->node.name = strdup(name))) {
		free(entry);
		return NULL;
	}
	/* one that is new has no pods yet */
	entry->node.is_listed = entry->node.is_verified = !cluster->lists_nodes;
	HASH_ADD_KEYPTR(hh, cluster->nodes, entry->node.name, strlen(entry->node.name), entry);
	if (!entry->is_lost)
		return &entry->node;
	free(entry->node.name);
	free(entry);
	return NULL;
}

void cluster_release_node(struct cluster *cluster, struct cluster_node *node)
{
	struct entry *entry = (struct entry *)node;

	if (node->is_present || node->turns)
		return;
	HASH_DEL(cluster->nodes, entry);
	free(node->name);
	free(node->version);
	free(entry);
}

static void drop_node(struct cluster *cluster, struct cluster_node *node)
{
	books_drop_node(cluster->books, node->name);
	node->is_present = node->is_listed = node->is_verified = false;
	node->digest = 0;
	node->lock[0] = '\0';
	/* turns that wait fail, and the last of them releases the node */
	if (node->turns)
		cluster->events.lock_changed(cluster->context, node);
	else
		cluster_release_node(cluster, node);
}

/* FNV-1a, with the end of each text in it. */
static uint64_t digest_of(const struct registry_texts *texts)
{
	const char *const all[] = {texts->devices, texts->scores, texts->cordon};
	uint64_t digest = 14695981039346656037u;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		for (const char *at = all[i]; at && *at; at++)
			digest = (digest ^ (unsigned char)*at) * 1099511628211u;
		digest = (digest ^ (all[i] ? 256 : 257)) * 1099511628211u;
	}
	return digest;
}

/* A node says the same again and again while its kubelet lives. */
static void tell_books(struct cluster *cluster, struct cluster_node *node, const json_t *object)
{
	struct registry_texts texts = object_read_node(&cluster->settings->rules.demand, object);
	uint64_t digest = digest_of(&texts);
	struct err err = ERR_NULL;

	if (node->digest == digest)
		return;
	if (books_set_node(cluster->books, node->name, &texts, &err))
		log_warn("a node's devices are not understood; they stay as they were",
			STR("node", node->name), STR("why", err.text));
	node->digest = digest;
	nudge_freed(cluster->nudge, node->name, true);
}

static bool is_older(const char *version, const char *than)
{
	return than && strtoull(version, NULL, 10) < strtoull(than, NULL, 10);
}

static void note_lock(struct cluster *cluster, struct cluster_node *node, const char *lock)
{
	char text[NODELOCK_BYTES];

	/* one that is cut is one of nobody */
	snprintf(text, sizeof(text), "%s", lock ? lock : "");
	if (!strcmp(text, node->lock))
		return;
	if (*text && strcmp(text, node->own_lock) != 0)
		node->is_listed = node->is_verified = false;
	strcpy(node->lock, text);
	node->lock_seen_ns = clock_now_ns();
	node->lock_seen_s = time(NULL);
	cluster->events.lock_changed(cluster->context, node);
}

/* Annotations have to fit: an answer comes beside the watch, and may be older than it. */
void cluster_take_node(struct cluster *cluster, const json_t *object)
{
	const char *name = object_text(object, "name");
	const char *version = object_text(object, "resourceVersion");
	struct cluster_node *node = *name ? find_or_add(cluster, name) : NULL;
	char *copy = node && !is_older(version, node->version) ? strdup(version) : NULL;

	if (node)
		node->is_marked = false;
	if (!copy)
		return;
	free(node->version);
	node->version = copy;
	node->is_present = true;
	tell_books(cluster, node, object);
	note_lock(cluster, node, demand_annotation(object, NODELOCK_ANNOTATION));
}

static void node_came(void *context, bool is_present, const json_t *object)
{
	struct cluster *cluster = context;
	struct cluster_node *node = cluster_node(cluster, object_text(object, "name"));

	if (is_present)
		cluster_take_node(cluster, object);
	else if (node)
		drop_node(cluster, node);
}

/* Whether the books have what a bound pod takes: it was seen so before, or this program has promised the same there. */
static bool is_expected(const struct cluster *cluster, const json_t *pod, const char *uid)
{
	const struct hold *hold = holds_find(cluster->holds, uid);

	if (!hold || hold->is_over)
		return books_has_pod(cluster->books, uid);
	return hold->is_kept && !strcmp(hold_node(hold), object_node(pod)) &&
	       json_equal(json_object_get(hold->annotations, ASSIGNMENT_ALLOCATED),
		       json_object_get(
			       json_object_get(json_object_get(pod, "metadata"), "annotations"),
			       ASSIGNMENT_ALLOCATED));
}

static void take_bound(struct cluster *cluster, const json_t *pod, const char *uid)
{
	struct cluster_node *node = cluster_node(cluster, object_node(pod));
	struct reservation *reservation = NULL;
	struct err err = ERR_NULL;
	int result =
		reservation_read_bound(&cluster->settings->rules.demand, pod, &reservation, &err);

	if (!result && node && !is_expected(cluster, pod, uid))
		node->others++;
	if (!result)
		result = books_set_pod(cluster->books, reservation_pod(reservation));
	if (result == -ENOENT)
		books_drop_pod(cluster->books, uid);
	else if (result)
		log_warn("what a pod takes is not understood; it counts as it did before",
			STR("namespace", object_text(pod, "namespace")),
			STR("pod", object_text(pod, "name")), STR("why", err.text));
	if (reservation)
		reservation_free(reservation);
}

/* What this program has promised on the node before, it has promised without knowing of this. */
static void note_promise_of_other(const struct cluster *cluster, const struct hold *hold)
{
	struct cluster_node *node = hold ? cluster_node(cluster, hold_node(hold)) : NULL;

	if (node)
		node->others++;
}

/*
 * A watch may be behind the answer to a binding. A pod that is bound stays so; that it is not, and what it was promised, is older
 * then. A list is believed: a server that was restored from a copy may have lost the binding.
 */
static bool is_old_news(const struct cluster *cluster, const char *uid)
{
	return !cluster->lists_pods && !holds_find(cluster->holds, uid) &&
	       books_has_pod(cluster->books, uid);
}

static void pod_came(void *context, bool is_present, const json_t *pod)
{
	struct cluster *cluster = context;
	const char *uid = object_text(pod, "uid");
	struct hold *hold = holds_find(cluster->holds, uid);
	const char *node = object_node(pod);

	if (hold)
		hold->is_marked = false;
	books_see_pod(cluster->books, uid);
	if (!is_present || object_is_over(pod) || *node)
		cluster->events.pod_settled(cluster->context, uid);
	if (!is_present || object_is_over(pod)) {
		if (books_has_pod(cluster->books, uid))
			nudge_freed(cluster->nudge, hold && hold->is_kept ? hold_node(hold) : node,
				true);
		books_drop_pod(cluster->books, uid);
		if (hold)
			holds_forget(cluster->holds, hold);
	} else if (*node) {
		take_bound(cluster, pod, uid);
		holds_see_bound(cluster->holds, pod);
		if (hold)
			holds_forget(cluster->holds, hold);
	} else if (!is_old_news(cluster, uid) && holds_see(cluster->holds, pod)) {
		note_promise_of_other(cluster, holds_find(cluster->holds, uid));
	}
}

static void quota_came(void *context, bool is_present, const json_t *quota)
{
	struct cluster *cluster = context;
	const char *namespace = object_text(quota, "namespace"), *name = object_text(quota, "name");
	struct fit_room limit;

	if (!object_read_quota(&cluster->settings->rules.demand, quota, &limit) || !is_present)
		books_drop_quota(cluster->books, namespace, name);
	else if (books_set_quota(cluster->books, namespace, name, &limit))
		log_error("no memory for a quota");
	if (cluster->nodes)
		nudge_freed(cluster->nudge, cluster->nodes->node.name, true);
}

static void nodes_begin(void *context)
{
	struct cluster *cluster = context;

	cluster->lists_nodes = true;
	for (struct entry *entry = cluster->nodes; entry; entry = entry->hh.next) {
		entry->node.is_marked = true;
		/* a server that was restored from a copy counts from an earlier version on */
		free(entry->node.version);
		entry->node.version = NULL;
		entry->node.is_listed = entry->node.is_verified = false;
	}
}

static void pods_begin(void *context)
{
	struct cluster *cluster = context;

	cluster->lists_pods = true;
	books_mark_pods(cluster->books);
	holds_mark(cluster->holds);
	for (struct entry *entry = cluster->nodes; entry; entry = entry->hh.next)
		entry->node.is_listed = !*entry->node.lock || entry->node.is_verified;
}

static void quotas_begin(void *context)
{
	struct cluster *cluster = context;

	books_mark_quotas(cluster->books);
}

static void listed(struct cluster *cluster, size_t which)
{
	cluster->is_known[which] = true;
	if (cluster_is_known(cluster))
		cluster->events.known(cluster->context);
}

static void nodes_complete(void *context)
{
	struct cluster *cluster = context;
	struct entry *entry, *next;

	HASH_ITER(hh, cluster->nodes, entry, next)
	{
		if (entry->node.is_marked)
			drop_node(cluster, &entry->node);
	}
	cluster->lists_nodes = false;
	/* what was bound before is among the pods that are listed after */
	cluster_list_pods_again(cluster);
	listed(cluster, NODES);
}

static void pods_complete(void *context)
{
	struct cluster *cluster = context;

	cluster->lists_pods = false;
	books_sweep_pods(cluster->books);
	holds_sweep(cluster->holds);
	for (struct entry *entry = cluster->nodes; entry; entry = entry->hh.next)
		entry->node.is_verified |= entry->node.is_listed;
	listed(cluster, PODS);
}

static void quotas_complete(void *context)
{
	struct cluster *cluster = context;

	books_sweep_quotas(cluster->books);
	listed(cluster, QUOTAS);
}

static void trouble_came(void *context, enum kube_outcome outcome, const char *words)
{
	if (outcome != KUBE_E_CANCELLED)
		log_warn("the cluster cannot be followed; it is tried again", STR("why", words));
}

static const struct kube_follow_events follow_events[COLLECTIONS] = {
	[NODES] = {nodes_begin, node_came, nodes_complete, trouble_came},
	[PODS] = {pods_begin, pod_came, pods_complete, trouble_came},
	[QUOTAS] = {quotas_begin, quota_came, quotas_complete, trouble_came},
};

/* "a=b,c" as a query: names and values of labels need nothing else escaped. */
static char *selector_query(const char *selector)
{
	static const char head[] = "labelSelector=";
	char *query = *selector ? malloc(sizeof(head) + 3 * strlen(selector)) : NULL, *at = query;

	if (!query)
		return NULL;
	at = stpcpy(at, head);
	for (; *selector; selector++)
		if (strchr("=,!() /", *selector))
			at += sprintf(at, "%%%02X", (unsigned char)*selector);
		else
			*at++ = *selector;
	*at = '\0';
	return query;
}

static int follow(struct cluster *cluster, size_t which)
{
	static const char *const paths[COLLECTIONS] = {
		"/api/v1/nodes", "/api/v1/pods", "/api/v1/resourcequotas"};
	const char *selector = which == NODES ? cluster->settings->node_selector : "";
	_cleanup_free_ char *query = selector_query(selector);
	struct kube_follow_request request = {.path = paths[which], .query = query};

	if (*selector && !query)
		return -ENOMEM;
	return kube_follow_start(cluster->client, &request, &follow_events[which], cluster,
		&cluster->follows[which]);
}

int cluster_start(struct kube_client *client, const struct settings *settings,
	const struct cluster_events *events, void *context, struct cluster **ret_cluster)
{
	struct cluster *cluster = calloc(1, sizeof(*cluster));
	int result;

	if (!cluster)
		return -ENOMEM;
	cluster->client = client;
	cluster->settings = settings;
	cluster->events = *events;
	cluster->context = context;
	result = books_new(&cluster->books);
	if (!result)
		result = nudge_new(client, &cluster->nudge);
	if (!result)
		result = holds_new(client, cluster->books, &settings->rules.demand,
			(int64_t)(settings->reservation_ns / 1000000000), cluster->nudge,
			&cluster->holds);
	/* pods are listed after the nodes */
	if (!result)
		result = follow(cluster, NODES);
	if (!result)
		result = follow(cluster, QUOTAS);
	if (result)
		cluster_stop(cluster);
	else
		*ret_cluster = cluster;
	return result;
}

void cluster_stop(struct cluster *cluster)
{
	struct entry *entry, *next;

	if (!cluster)
		return;
	for (size_t i = 0; i < COLLECTIONS; i++)
		kube_follow_stop(cluster->follows[i]);
	holds_free(cluster->holds);
	nudge_free(cluster->nudge);
	books_free(cluster->books);
	HASH_ITER(hh, cluster->nodes, entry, next)
	{
		HASH_DEL(cluster->nodes, entry);
		free(entry->node.name);
		free(entry->node.version);
		free(entry);
	}
	free(cluster);
}

struct books *cluster_books(const struct cluster *cluster)
{
	return cluster->books;
}

struct nudge *cluster_nudge(const struct cluster *cluster)
{
	return cluster->nudge;
}

struct holds *cluster_holds(const struct cluster *cluster)
{
	return cluster->holds;
}

bool cluster_is_known(const struct cluster *cluster)
{
	return cluster->is_known[NODES] && cluster->is_known[PODS] && cluster->is_known[QUOTAS];
}

uint64_t cluster_silence_ns(const struct cluster *cluster)
{
	uint64_t now = clock_now_ns(), most = 0;

	for (size_t i = 0; i < COLLECTIONS; i++) {
		uint64_t heard =
			cluster->follows[i] ? kube_follow_heard_ns(cluster->follows[i]) : 0;

		if (now - heard > most)
			most = now - heard;
	}
	return most;
}

void cluster_list_pods_again(struct cluster *cluster)
{
	kube_follow_stop(cluster->follows[PODS]);
	cluster->follows[PODS] = NULL;
	cluster->is_known[PODS] = false;
	if (follow(cluster, PODS))
		log_error("no memory to list pods");
}

bool cluster_knows_pods(const struct cluster *cluster, const json_t *list)
{
	const struct demand_rules *rules = &cluster->settings->rules.demand;
	const json_t *pod;
	size_t i;

	json_array_foreach(json_object_get(list, "items"), i, pod)
	{
		const char *uid = object_text(pod, "uid");
		const struct hold *hold = holds_find(cluster->holds, uid);
		struct reservation *reservation;
		struct err err;

		if (reservation_read_bound(rules, pod, &reservation, &err))
			continue;
		reservation_free(reservation);
		if (!books_has_pod(cluster->books, uid) || (hold && hold->is_kept))
			return false;
	}
	return true;
}

void cluster_each_node(struct cluster *cluster, void (*take)(struct cluster_node *node))
{
	struct entry *entry, *next;

	HASH_ITER(hh, cluster->nodes, entry, next)
	take(&entry->node);
}

size_t cluster_node_count(const struct cluster *cluster)
{
	return HASH_COUNT(cluster->nodes);
}
