/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: what each may take, and what its pods take. */
#include "scheduler/quotas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct quota {
	struct fit_room limit;
	bool is_marked;
	struct quota *next;
	char name[];
};

static struct quotas_namespace *find(const struct quotas *quotas, const char *name)
{
	struct quotas_namespace *namespace;

	HASH_FIND_STR(quotas->namespaces, name, namespace);
	return namespace;
}

struct quotas_namespace *quotas_namespace(struct quotas *quotas, const char *name)
{
	struct quotas_namespace *namespace = find(quotas, name);

	if (namespace)
		return namespace;
	namespace = calloc(1, sizeof(*namespace) + strlen(name) + 1);
	if (!namespace)
		return NULL;
	strcpy(namespace->name, name);
	HASH_ADD_STR(quotas->namespaces, name, namespace);
	if (!namespace->is_lost)
		return namespace;
	free(namespace);
	return NULL;
}

void quotas_let_go(struct quotas *quotas, struct quotas_namespace *namespace)
{
	if (namespace->quotas || namespace->pod_count)
		return;
	HASH_DEL(quotas->namespaces, namespace);
	free(namespace);
}

static struct quota **find_quota(struct quotas_namespace *namespace, const char *name)
{
	struct quota **link = &namespace->quotas;

	while (*link && strcmp((*link)->name, name) != 0)
		link = &(*link)->next;
	return link;
}

int quotas_set(struct quotas *quotas, const char *namespace_name, const char *name,
	const struct fit_room *limit)
{
	struct quotas_namespace *namespace = quotas_namespace(quotas, namespace_name);
	struct quota **link;

	if (!namespace)
		return -ENOMEM;
	link = find_quota(namespace, name);
	if (!*link) {
		*link = calloc(1, sizeof(**link) + strlen(name) + 1);
		if (!*link) {
			quotas_let_go(quotas, namespace);
			return -ENOMEM;
		}
		strcpy((*link)->name, name);
	}
	(*link)->limit = *limit;
	(*link)->is_marked = false;
	return 0;
}

static void remove_quota(struct quota **link)
{
	struct quota *quota = *link;

	*link = quota->next;
	free(quota);
}

void quotas_drop(struct quotas *quotas, const char *namespace_name, const char *name)
{
	struct quotas_namespace *namespace = find(quotas, namespace_name);
	struct quota **link = namespace ? find_quota(namespace, name) : NULL;

	if (!link || !*link)
		return;
	remove_quota(link);
	quotas_let_go(quotas, namespace);
}

void quotas_mark(struct quotas *quotas)
{
	for (struct quotas_namespace *its = quotas->namespaces; its; its = its->hh.next)
		for (struct quota *quota = its->quotas; quota; quota = quota->next)
			quota->is_marked = true;
}

void quotas_sweep(struct quotas *quotas)
{
	struct quotas_namespace *namespace, *next;

	HASH_ITER(hh, quotas->namespaces, namespace, next)
	{
		struct quota **link = &namespace->quotas;

		while (*link) {
			if ((*link)->is_marked)
				remove_quota(link);
			else
				link = &(*link)->next;
		}
		quotas_let_go(quotas, namespace);
	}
}

static int64_t rest(int64_t limit, int64_t used)
{
	return limit == INT64_MAX ? limit : limit - used;
}

bool quotas_limit(const struct quotas_namespace *namespace, struct fit_room *ret_limit)
{
	struct fit_room limit = {INT64_MAX, INT64_MAX};

	for (const struct quota *quota = namespace->quotas; quota; quota = quota->next) {
		if (quota->limit.memory_mib < limit.memory_mib)
			limit.memory_mib = quota->limit.memory_mib;
		if (quota->limit.cores < limit.cores)
			limit.cores = quota->limit.cores;
	}
	*ret_limit = limit;
	return namespace->quotas;
}

struct fit_room quotas_room(
	const struct quotas *quotas, const char *name, const struct fit_room *uncounted)
{
	const struct quotas_namespace *namespace = find(quotas, name);
	struct fit_room room = {INT64_MAX, INT64_MAX};

	if (namespace && quotas_limit(namespace, &room)) {
		room.memory_mib =
			rest(room.memory_mib, namespace->used.memory_mib - uncounted->memory_mib);
		room.cores = rest(room.cores, namespace->used.cores - uncounted->cores);
	}
	return room;
}

void quotas_deinit(struct quotas *quotas)
{
	quotas_mark(quotas);
	quotas_sweep(quotas);
}
