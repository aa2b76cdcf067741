/* SPDX-License-Identifier: Apache-2.0 */
/* The names of this node's pods. */
#include "monitor/pods.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/follow.h"

#define LOG_TOPIC LOG_PODS

struct known {
	struct known *next;
	char *uid, *namespace, *name;
	bool is_seen;
};

struct pod_names {
	struct kube_follow *follow;
	struct known *first;
	bool is_known;
};

static void free_known(struct known *known)
{
	free(known->uid);
	free(known->namespace);
	free(known->name);
	free(known);
}

static struct known **find(struct pod_names *names, const char *uid)
{
	struct known **at = &names->first;

	while (*at && strcmp((*at)->uid, uid) != 0)
		at = &(*at)->next;
	return at;
}

static void add(struct pod_names *names, const char *uid, const char *namespace, const char *name)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known)
		return;
	known->uid = strdup(uid);
	known->namespace = strdup(namespace);
	known->name = strdup(name);
	known->is_seen = true;
	if (!known->uid || !known->namespace || !known->name) {
		free_known(known);
		return;
	}
	known->next = names->first;
	names->first = known;
}

static void list_begins(void *context)
{
	struct pod_names *names = context;

	for (struct known *known = names->first; known; known = known->next)
		known->is_seen = false;
}

static void object_came(void *context, bool is_present, const json_t *object)
{
	struct pod_names *names = context;
	const json_t *metadata = json_object_get(object, "metadata");
	const char *uid = json_string_value(json_object_get(metadata, "uid"));
	const char *namespace = json_string_value(json_object_get(metadata, "namespace"));
	const char *name = json_string_value(json_object_get(metadata, "name"));
	struct known **at, *gone;

	if (!uid || !namespace || !name)
		return;
	at = find(names, uid);
	if (is_present && *at) {
		(*at)->is_seen = true;
	} else if (is_present) {
		add(names, uid, namespace, name);
	} else if (*at) {
		gone = *at;
		*at = gone->next;
		free_known(gone);
	}
}

static void list_is_complete(void *context)
{
	struct pod_names *names = context;

	for (struct known **at = &names->first, *known; (known = *at);) {
		if (known->is_seen) {
			at = &known->next;
			continue;
		}
		*at = known->next;
		free_known(known);
	}
	names->is_known = true;
}

static void trouble_came(void *context, enum kube_outcome outcome, const char *words)
{
	if (outcome != KUBE_E_CANCELLED)
		log_warn("pods cannot be followed; it is tried again", STR("why", words));
}

int pod_names_start(struct kube_client *client, const char *node_name, struct pod_names **ret_names)
{
	static const struct kube_follow_events events = {
		list_begins, object_came, list_is_complete, trouble_came};
	struct pod_names *names = calloc(1, sizeof(*names));
	_cleanup_free_ char *query = NULL;
	int r = -ENOMEM;

	if (!names)
		return -ENOMEM;
	if (asprintf(&query, "fieldSelector=spec.nodeName%%3D%s", node_name) < 0)
		query = NULL;
	if (query)
		r = kube_follow_start(client,
			&(struct kube_follow_request){.path = "/api/v1/pods", .query = query},
			&events, names, &names->follow);
	if (r)
		pod_names_stop(names);
	else
		*ret_names = names;
	return r;
}

void pod_names_stop(struct pod_names *names)
{
	if (!names)
		return;
	kube_follow_stop(names->follow);
	for (struct known *known = names->first, *next; known; known = next) {
		next = known->next;
		free_known(known);
	}
	free(names);
}

bool pod_names_are_known(const struct pod_names *names)
{
	return names->is_known;
}

bool pod_names_find(const struct pod_names *names, const char *uid, struct pod_name *ret_name)
{
	const struct known *known = names ? names->first : NULL;

	while (known && strcmp(known->uid, uid) != 0)
		known = known->next;
	if (!known)
		return false;
	*ret_name = (struct pod_name){known->namespace, known->name};
	return true;
}
