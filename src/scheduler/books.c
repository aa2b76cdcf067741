/* SPDX-License-Identifier: Apache-2.0 */
/* What the cluster has, and what its pods take of it. */
#include "scheduler/books.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "scheduler/hash.h"

struct charge {
	char *uuid;
	struct rank_amount amount;
};

struct instance {
	char *uuid, *profile, *given;
	struct mig_place place;
	unsigned instance, compute;
};

struct pod {
	char *uid, *name;
	struct node *node;
	struct namespace *namespace;
	struct pod *next, **link; /* of the node's pods */
	struct charge *charges;
	size_t charge_count;
	struct instance *instances;
	size_t instance_count;
	struct books_standing standing;
	bool has_doubtful_instances, is_aside, is_marked, is_lost;
	UT_hash_handle hh;
};

/* A node stays while it is registered or has pods. */
struct node {
	char *name;
	struct registry *registry;
	struct pod *pods;
	bool is_stale, is_lost;
	UT_hash_handle hh;
};

struct quota {
	char *name;
	struct fit_room limit;
	bool is_marked;
	struct quota *next;
};

struct namespace
{
	char *name;
	struct fit_room used;
	struct quota *quotas;
	size_t pod_count;
	bool is_lost;
	UT_hash_handle hh;
};

struct books {
	struct node *nodes;
	struct pod *pods;
	struct namespace *namespaces;
};

int books_new(struct books **ret_books)
{
	*ret_books = calloc(1, sizeof(**ret_books));
	return *ret_books ? 0 : -ENOMEM;
}

static struct node *find_node(const struct books *books, const char *name)
{
	struct node *node;

	HASH_FIND_STR(books->nodes, name, node);
	return node;
}

static struct node *find_or_add_node(struct books *books, const char *name)
{
	struct node *node = find_node(books, name);

	if (node)
		return node;
	node = calloc(1, sizeof(*node));
	if (!node || !(node->name = strdup(name))) {
		free(node);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, books->nodes, node->name, strlen(node->name), node);
	if (!node->is_lost)
		return node;
	free(node->name);
	free(node);
	return NULL;
}

static void drop_node_if_empty(struct books *books, struct node *node)
{
	if (node->registry || node->pods)
		return;
	HASH_DEL(books->nodes, node);
	free(node->name);
	free(node);
}

static struct namespace *find_namespace(const struct books *books, const char *name)
{
	struct namespace *namespace;

	HASH_FIND_STR(books->namespaces, name, namespace);
	return namespace;
}

static struct namespace *find_or_add_namespace(struct books *books, const char *name)
{
	struct namespace *namespace = find_namespace(books, name);

	if (namespace)
		return namespace;
	namespace = calloc(1, sizeof(*namespace));
	if (!namespace || !(namespace->name = strdup(name))) {
		free(namespace);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, books->namespaces, namespace->name, strlen(namespace->name), namespace);
	if (!namespace->is_lost)
		return namespace;
	free(namespace->name);
	free(namespace);
	return NULL;
}

static void drop_namespace_if_empty(struct books *books, struct namespace *namespace)
{
	if (namespace->quotas || namespace->pod_count)
		return;
	HASH_DEL(books->namespaces, namespace);
	free(namespace->name);
	free(namespace);
}

int books_set_node(
	struct books *books, const char *name, const struct registry_texts *texts, struct err *err)
{
	struct registry *registry = NULL;
	int result = registry_read(texts, &registry, err);
	struct node *node;

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
	struct node *node = find_node(books, name);

	if (!node)
		return;
	registry_free(node->registry);
	node->registry = NULL;
	drop_node_if_empty(books, node);
}

static void distrust_all_mig(struct registry *registry)
{
	for (size_t i = 0; i < registry->node.device_count; i++)
		if (registry->devices[i].is_mig)
			registry->devices[i].is_healthy = false;
}

static bool has_instance(const struct pod *pod, const char *uuid)
{
	for (size_t i = 0; i < pod->instance_count; i++)
		if (!strcmp(pod->instances[i].uuid, uuid))
			return true;
	return false;
}

/*
 * Where a pod's instances do not go with its devices, nobody can say what is free there: nothing more is put on such a
 * device until the pod is gone.
 */
static void charge(struct registry *registry, const struct pod *pod)
{
	for (size_t i = 0; i < pod->charge_count; i++) {
		struct fit_device *device = registry_find(registry, pod->charges[i].uuid);

		if (!device)
			continue;
		device->used.slots += pod->charges[i].amount.slots;
		device->used.memory_mib += pod->charges[i].amount.memory_mib;
		device->used.cores += pod->charges[i].amount.cores;
		if (device->is_mig && !has_instance(pod, device->uuid))
			device->is_healthy = false;
	}
	for (size_t i = 0; i < pod->instance_count; i++) {
		struct fit_device *device = registry_find(registry, pod->instances[i].uuid);

		if (!device)
			distrust_all_mig(registry);
		else if (!device->is_mig)
			device->is_healthy = false;
		else
			device->mig_taken |= mig_slices(pod->instances[i].place);
	}
	if (pod->has_doubtful_instances)
		distrust_all_mig(registry);
}

const struct fit_node *books_node(struct books *books, const char *name)
{
	struct node *node = find_node(books, name);

	if (!node || !node->registry)
		return NULL;
	if (node->is_stale) {
		registry_reset(node->registry);
		for (const struct pod *pod = node->pods; pod; pod = pod->next)
			if (!pod->is_aside)
				charge(node->registry, pod);
		node->is_stale = false;
	}
	return &node->registry->node;
}

static void free_pod(struct pod *pod)
{
	for (size_t i = 0; i < pod->charge_count; i++)
		free(pod->charges[i].uuid);
	for (size_t i = 0; i < pod->instance_count; i++) {
		free(pod->instances[i].uuid);
		free(pod->instances[i].profile);
		free(pod->instances[i].given);
	}
	free(pod->charges);
	free(pod->instances);
	free(pod->uid);
	free(pod->name);
	free(pod);
}

static bool copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return *ret_copy || !text;
}

static bool copy_instance(const struct books_instance *from, struct instance *ret_instance)
{
	*ret_instance = (struct instance){
		.place = from->place, .instance = from->instance, .compute = from->compute};
	return copy_text(from->uuid, &ret_instance->uuid) &&
	       copy_text(from->profile, &ret_instance->profile) &&
	       copy_text(from->given, &ret_instance->given);
}

static int copy_charges(struct pod *pod, const struct books_pod *from)
{
	pod->charges = calloc(from->charge_count + 1, sizeof(*pod->charges));
	pod->instances = calloc(from->instance_count + 1, sizeof(*pod->instances));
	if (!pod->charges || !pod->instances)
		return -ENOMEM;
	for (size_t i = 0; i < from->charge_count; i++) {
		pod->charges[i].amount = from->charges[i].amount;
		pod->charges[i].uuid = strdup(from->charges[i].uuid);
		if (!pod->charges[pod->charge_count++].uuid)
			return -ENOMEM;
	}
	for (size_t i = 0; i < from->instance_count; i++)
		if (!copy_instance(&from->instances[i], &pod->instances[pod->instance_count++]))
			return -ENOMEM;
	return 0;
}

static struct pod *copy_pod(const struct books_pod *from)
{
	struct pod *pod = calloc(1, sizeof(*pod));

	if (!pod)
		return NULL;
	pod->has_doubtful_instances = from->has_doubtful_instances;
	pod->standing = from->standing;
	pod->uid = strdup(from->uid);
	pod->name = strdup(from->name ? from->name : "");
	if (!pod->uid || !pod->name || copy_charges(pod, from)) {
		free_pod(pod);
		return NULL;
	}
	return pod;
}

static void count_for_quota(struct pod *pod, int64_t times)
{
	for (size_t i = 0; i < pod->charge_count; i++) {
		pod->namespace->used.memory_mib += times * pod->charges[i].amount.memory_mib;
		pod->namespace->used.cores += times * pod->charges[i].amount.cores;
	}
}

/* After this nothing fails any more. */
static int find_places(struct books *books, struct pod *pod, const struct books_pod *from)
{
	pod->node = find_or_add_node(books, from->node);
	if (!pod->node)
		return -ENOMEM;
	pod->namespace = find_or_add_namespace(books, from->namespace);
	if (!pod->namespace) {
		drop_node_if_empty(books, pod->node);
		return -ENOMEM;
	}
	HASH_ADD_KEYPTR(hh, books->pods, pod->uid, strlen(pod->uid), pod);
	if (!pod->is_lost)
		return 0;
	drop_node_if_empty(books, pod->node);
	drop_namespace_if_empty(books, pod->namespace);
	return -ENOMEM;
}

static struct pod *find_pod(const struct books *books, const char *uid)
{
	struct pod *pod;

	HASH_FIND_STR(books->pods, uid, pod);
	return pod;
}

static void drop(struct books *books, struct pod *pod)
{
	*pod->link = pod->next;
	if (pod->next)
		pod->next->link = pod->link;
	pod->node->is_stale = true;
	count_for_quota(pod, -1);
	pod->namespace->pod_count--;
	HASH_DEL(books->pods, pod);
	drop_node_if_empty(books, pod->node);
	drop_namespace_if_empty(books, pod->namespace);
	free_pod(pod);
}

int books_set_pod(struct books *books, const struct books_pod *from)
{
	struct pod *pod = copy_pod(from), *old = find_pod(books, from->uid);

	/* the old one goes after the new one is there, so that a failure leaves it */
	if (!pod || find_places(books, pod, from)) {
		if (pod)
			free_pod(pod);
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
	struct pod *pod = find_pod(books, uid);

	if (pod)
		drop(books, pod);
}

void books_set_aside(struct books *books, const char *uid, bool is_aside)
{
	struct pod *pod = find_pod(books, uid);

	if (!pod || pod->is_aside == is_aside)
		return;
	pod->is_aside = is_aside;
	pod->node->is_stale = true;
	count_for_quota(pod, is_aside ? -1 : 1);
}

void books_each_occupant(
	const struct books *books, const char *name, books_occupant_fn *take, void *context)
{
	const struct node *node = find_node(books, name);

	for (const struct pod *pod = node ? node->pods : NULL; pod; pod = pod->next)
		take(context, pod->uid, &pod->standing);
}

void books_mark_pods(struct books *books)
{
	for (struct pod *pod = books->pods; pod; pod = pod->hh.next)
		pod->is_marked = true;
}

void books_see_pod(struct books *books, const char *uid)
{
	struct pod *pod = find_pod(books, uid);

	if (pod)
		pod->is_marked = false;
}

bool books_has_pod(const struct books *books, const char *uid)
{
	return find_pod(books, uid);
}

void books_sweep_pods(struct books *books)
{
	struct pod *pod, *next;

	HASH_ITER(hh, books->pods, pod, next)
	{
		if (pod->is_marked)
			drop(books, pod);
	}
}

static struct quota **find_quota(struct namespace *namespace, const char *name)
{
	struct quota **link = &namespace->quotas;

	while (*link && strcmp((*link)->name, name) != 0)
		link = &(*link)->next;
	return link;
}

int books_set_quota(struct books *books, const char *namespace_name, const char *name,
	const struct fit_room *limit)
{
	struct namespace *namespace = find_or_add_namespace(books, namespace_name);
	struct quota **link, *quota;

	if (!namespace)
		return -ENOMEM;
	link = find_quota(namespace, name);
	if (!*link) {
		quota = calloc(1, sizeof(*quota));
		if (!quota || !(quota->name = strdup(name))) {
			free(quota);
			drop_namespace_if_empty(books, namespace);
			return -ENOMEM;
		}
		*link = quota;
	}
	(*link)->limit = *limit;
	(*link)->is_marked = false;
	return 0;
}

static void remove_quota(struct quota **link)
{
	struct quota *quota = *link;

	*link = quota->next;
	free(quota->name);
	free(quota);
}

void books_drop_quota(struct books *books, const char *namespace_name, const char *name)
{
	struct namespace *namespace = find_namespace(books, namespace_name);
	struct quota **link = namespace ? find_quota(namespace, name) : NULL;

	if (!link || !*link)
		return;
	remove_quota(link);
	drop_namespace_if_empty(books, namespace);
}

void books_mark_quotas(struct books *books)
{
	for (struct namespace *namespace = books->namespaces; namespace;
		namespace = namespace->hh.next)
		for (struct quota *quota = namespace->quotas; quota; quota = quota->next)
			quota->is_marked = true;
}

void books_sweep_quotas(struct books *books)
{
	struct namespace *namespace, *next;

	HASH_ITER(hh, books->namespaces, namespace, next)
	{
		struct quota **link = &namespace->quotas;

		while (*link) {
			if ((*link)->is_marked)
				remove_quota(link);
			else
				link = &(*link)->next;
		}
		drop_namespace_if_empty(books, namespace);
	}
}

static int64_t rest(int64_t limit, int64_t used)
{
	return limit == INT64_MAX ? limit : limit - used;
}

static struct fit_room strictest(const struct namespace *namespace)
{
	struct fit_room limit = {INT64_MAX, INT64_MAX};

	for (const struct quota *quota = namespace->quotas; quota; quota = quota->next) {
		if (quota->limit.memory_mib < limit.memory_mib)
			limit.memory_mib = quota->limit.memory_mib;
		if (quota->limit.cores < limit.cores)
			limit.cores = quota->limit.cores;
	}
	return limit;
}

struct fit_room books_room(const struct books *books, const char *namespace_name)
{
	const struct namespace *namespace = find_namespace(books, namespace_name);
	struct fit_room room = {INT64_MAX, INT64_MAX};

	if (namespace) {
		room = strictest(namespace);
		room.memory_mib = rest(room.memory_mib, namespace->used.memory_mib);
		room.cores = rest(room.cores, namespace->used.cores);
	}
	return room;
}

void books_each_device(struct books *books, books_device_fn *take, void *context)
{
	for (const struct node *node = books->nodes; node; node = node->hh.next) {
		const struct fit_node *its = books_node(books, node->name);

		for (size_t i = 0; its && i < its->device_count; i++)
			take(context, node->name, i, &its->devices[i]);
	}
}

void books_each_charge(const struct books *books, books_charge_fn *take, void *context)
{
	for (const struct pod *pod = books->pods; pod; pod = pod->hh.next) {
		struct books_pod its = {.uid = pod->uid,
			.namespace = pod->namespace->name,
			.node = pod->node->name,
			.name = pod->name};

		for (size_t i = 0; i < pod->charge_count; i++)
			take(context, &its, pod->charges[i].uuid, &pod->charges[i].amount);
	}
}

static void take_instances(
	const struct node *node, const struct pod *pod, books_instance_fn *take, void *context)
{
	for (size_t i = 0; i < pod->instance_count; i++) {
		const struct instance *its = &pod->instances[i];
		const struct fit_device *device = registry_find(node->registry, its->uuid);

		if (device)
			take(context, node->name, (size_t)(device - node->registry->devices),
				&(struct books_instance){its->uuid, its->place, its->profile,
					its->given, its->instance, its->compute});
	}
}

void books_each_instance(struct books *books, books_instance_fn *take, void *context)
{
	for (const struct node *node = books->nodes; node; node = node->hh.next)
		for (const struct pod *pod = node->pods; pod && node->registry; pod = pod->next)
			take_instances(node, pod, take, context);
}

void books_each_quota(const struct books *books, books_quota_fn *take, void *context)
{
	for (const struct namespace *namespace = books->namespaces; namespace;
		namespace = namespace->hh.next) {
		struct fit_room limit = strictest(namespace);

		if (namespace->quotas)
			take(context, namespace->name, &limit, &namespace->used);
	}
}

void books_free(struct books *books)
{
	struct node *node, *next_node;
	struct pod *pod, *next_pod;
	struct namespace *namespace, *next_namespace;

	if (!books)
		return;
	HASH_ITER(hh, books->pods, pod, next_pod)
	drop(books, pod);
	HASH_ITER(hh, books->nodes, node, next_node)
	books_drop_node(books, node->name);
	HASH_ITER(hh, books->namespaces, namespace, next_namespace)
	{
		while (namespace->quotas->next)
			remove_quota(&namespace->quotas->next);
		books_drop_quota(books, namespace->name, namespace->quotas->name);
	}
	free(books);
}
