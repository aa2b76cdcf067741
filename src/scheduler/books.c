/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster has, and what its pods take of it. */
#include "scheduler/books.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/booked_pod.h"
#include "scheduler/quotas.h"

/* A node stays while it is registered or has pods. */
struct books_node {
	struct registry *registry;
	struct booked_pod *pods;
	bool is_stale, is_lost;
	UT_hash_handle hh;
	char name[];
};

struct books {
	struct books_node *nodes;
	struct booked_pod *pods;
	struct quotas quotas;
};

int books_new(struct books **ret_books)
{
	*ret_books = calloc(1, sizeof(**ret_books));
	return *ret_books ? 0 : -ENOMEM;
}

static struct books_node *find_node(const struct books *books, const char *name)
{
	struct books_node *node;

	HASH_FIND_STR(books->nodes, name, node);
	return node;
}

static struct books_node *find_or_add_node(struct books *books, const char *name)
{
	struct books_node *node = find_node(books, name);

	if (node)
		return node;
	node = calloc(1, sizeof(*node) + strlen(name) + 1);
	if (!node)
		return NULL;
	strcpy(node->name, name);
	HASH_ADD_STR(books->nodes, name, node);
	if (!node->is_lost)
		return node;
	free(node);
	return NULL;
}

static void drop_node_if_empty(struct books *books, struct books_node *node)
{
	if (node->registry || node->pods)
		return;
	HASH_DEL(books->nodes, node);
	free(node);
}

int books_set_node(
	struct books *books, const char *name, const struct registry_texts *texts, struct err *err)
{
	struct registry *registry = NULL;
	int result = registry_read(texts, &registry, err);
	struct books_node *node;

	if (result == -ENOENT) {
		books_drop_node(books, name);
		return 0;
	}
	if (result)
		return result;
	node = find_or_add_node(books, name);
	if (!node) {
		registry_free(registry);
		return err_set(err, ENOMEM, "no memory");
	}
	registry_free(node->registry);
	node->registry = registry;
	node->is_stale = true;
	return 0;
}

void books_drop_node(struct books *books, const char *name)
{
	struct books_node *node = find_node(books, name);

	if (!node)
		return;
	registry_free(node->registry);
	node->registry = NULL;
	drop_node_if_empty(books, node);
}

const struct fit_node *books_node(struct books *books, const char *name)
{
	struct books_node *node = find_node(books, name);

	if (!node || !node->registry)
		return NULL;
	if (node->is_stale) {
		registry_reset(node->registry);
		for (const struct booked_pod *pod = node->pods; pod; pod = pod->next)
			if (!pod->is_aside)
				booked_pod_charge(pod, node->registry);
		node->registry->node.fullness = fit_node_score(&node->registry->node);
		node->is_stale = false;
	}
	return &node->registry->node;
}

static void count_for_quota(struct booked_pod *pod, int64_t times)
{
	for (size_t i = 0; i < pod->charge_count; i++) {
		pod->namespace->used.memory_mib += times * pod->charges[i].amount.memory_mib;
		pod->namespace->used.cores += times * pod->charges[i].amount.cores;
	}
	pod->namespace->used.memory_mib += times * pod->wished.memory_mib;
	pod->namespace->used.cores += times * pod->wished.cores;
}

/* After this nothing fails any more. */
static int find_places(struct books *books, struct booked_pod *pod, const struct books_pod *from)
{
	pod->node = find_or_add_node(books, from->node);
	if (!pod->node)
		return -ENOMEM;
	pod->namespace = quotas_namespace(&books->quotas, from->namespace);
	if (!pod->namespace) {
		drop_node_if_empty(books, pod->node);
		return -ENOMEM;
	}
	HASH_ADD_KEYPTR(hh, books->pods, pod->uid, strlen(pod->uid), pod);
	if (!pod->is_lost)
		return 0;
	drop_node_if_empty(books, pod->node);
	quotas_let_go(&books->quotas, pod->namespace);
	return -ENOMEM;
}

static struct booked_pod *find_pod(const struct books *books, const char *uid)
{
	struct booked_pod *pod;

	HASH_FIND_STR(books->pods, uid, pod);
	return pod;
}

static void drop(struct books *books, struct booked_pod *pod)
{
	*pod->link = pod->next;
	if (pod->next)
		pod->next->link = pod->link;
	pod->node->is_stale = true;
	count_for_quota(pod, -1);
	pod->namespace->pod_count--;
	HASH_DEL(books->pods, pod);
	drop_node_if_empty(books, pod->node);
	quotas_let_go(&books->quotas, pod->namespace);
	free(pod);
}

int books_set_pod(struct books *books, const struct books_pod *from)
{
	struct booked_pod *pod = booked_pod_new(from), *old = find_pod(books, from->uid);

	/* the old one goes after the new one is there, so that a failure leaves it */
	if (!pod || find_places(books, pod, from)) {
		free(pod);
		return -ENOMEM;
	}
	pod->link = &pod->node->pods;
	pod->next = pod->node->pods;
	if (pod->next)
		pod->next->link = &pod->next;
	pod->node->pods = pod;
	pod->node->is_stale = true;
	pod->namespace->pod_count++;
	count_for_quota(pod, 1);
	if (old)
		drop(books, old);
	return 0;
}

void books_drop_pod(struct books *books, const char *uid)
{
	struct booked_pod *pod = find_pod(books, uid);

	if (pod)
		drop(books, pod);
}

void books_set_aside(struct books *books, const char *uid, bool is_aside)
{
	struct booked_pod *pod = find_pod(books, uid);

	if (!pod || pod->is_aside == is_aside)
		return;
	pod->is_aside = is_aside;
	pod->node->is_stale = true;
	count_for_quota(pod, is_aside ? -1 : 1);
}

void books_each_occupant(
	const struct books *books, const char *name, books_occupant_fn *take, void *context)
{
	const struct books_node *node = find_node(books, name);

	for (const struct booked_pod *pod = node ? node->pods : NULL; pod; pod = pod->next)
		take(context, pod->uid, &pod->standing);
}

void books_mark_pods(struct books *books)
{
	for (struct booked_pod *pod = books->pods; pod; pod = pod->hh.next)
		pod->is_marked = true;
}

void books_see_pod(struct books *books, const char *uid)
{
	struct booked_pod *pod = find_pod(books, uid);

	if (pod)
		pod->is_marked = false;
}

bool books_has_pod(const struct books *books, const char *uid)
{
	return find_pod(books, uid);
}

void books_sweep_pods(struct books *books)
{
	struct booked_pod *pod, *next;

	HASH_ITER(hh, books->pods, pod, next)
	{
		if (pod->is_marked)
			drop(books, pod);
	}
}

int books_set_quota(
	struct books *books, const char *namespace, const char *name, const struct fit_room *limit)
{
	return quotas_set(&books->quotas, namespace, name, limit);
}

void books_drop_quota(struct books *books, const char *namespace, const char *name)
{
	quotas_drop(&books->quotas, namespace, name);
}

void books_mark_quotas(struct books *books)
{
	quotas_mark(&books->quotas);
}

void books_sweep_quotas(struct books *books)
{
	quotas_sweep(&books->quotas);
}

static const struct fit_room nothing = {0};

struct fit_room books_room(const struct books *books, const char *namespace)
{
	return quotas_room(&books->quotas, namespace, &nothing);
}

struct fit_room books_room_for_wish(
	const struct books *books, const char *namespace, const char *uid)
{
	const struct booked_pod *pod = find_pod(books, uid);

	return quotas_room(&books->quotas, namespace, pod ? &pod->wished : &nothing);
}

void books_each_device(struct books *books, books_device_fn *take, void *context)
{
	for (const struct books_node *node = books->nodes; node; node = node->hh.next) {
		const struct fit_node *its = books_node(books, node->name);

		for (size_t i = 0; its && i < its->device_count; i++)
			take(context, node->name, i, &its->devices[i]);
	}
}

void books_each_charge(const struct books *books, books_charge_fn *take, void *context)
{
	for (const struct booked_pod *pod = books->pods; pod; pod = pod->hh.next) {
		struct books_pod its = {.uid = pod->uid,
			.namespace = pod->namespace->name,
			.node = pod->node->name,
			.name = pod->name,
			.standing = pod->standing};

		for (size_t i = 0; i < pod->charge_count; i++)
			take(context, &its, pod->charges[i].uuid, &pod->charges[i].amount);
	}
}

static void take_instances(const struct books_node *node, const struct booked_pod *pod,
	books_instance_fn *take, void *context)
{
	for (size_t i = 0; i < pod->instance_count; i++) {
		const struct fit_device *device =
			registry_find(node->registry, pod->instances[i].uuid);

		if (device)
			take(context, node->name, (size_t)(device - node->registry->devices),
				&pod->instances[i]);
	}
}

void books_each_instance(struct books *books, books_instance_fn *take, void *context)
{
	for (const struct books_node *node = books->nodes; node; node = node->hh.next)
		for (const struct booked_pod *pod = node->pods; pod && node->registry;
			pod = pod->next)
			take_instances(node, pod, take, context);
}

void books_each_quota(const struct books *books, books_quota_fn *take, void *context)
{
	for (const struct quotas_namespace *its = books->quotas.namespaces; its;
		its = its->hh.next) {
		struct fit_room limit;

		if (quotas_limit(its, &limit))
			take(context, its->name, &limit, &its->used);
	}
}

void books_free(struct books *books)
{
	struct books_node *node, *next_node;
	struct booked_pod *pod, *next_pod;

	if (!books)
		return;
	HASH_ITER(hh, books->pods, pod, next_pod)
	drop(books, pod);
	HASH_ITER(hh, books->nodes, node, next_node)
	books_drop_node(books, node->name);
	quotas_deinit(&books->quotas);
	free(books);
}
