/* SPDX-License-Identifier: Apache-2.0 */
/* This node's pods as far as they concern the monitor. */
#include "monitor/pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/follow.h"
#include "kube/quantity.h"

#define LOG_TOPIC LOG_PODS

struct pod_names {
	struct kube_follow *follow;
	const char *resource;
	struct pod_name *first;
	bool is_known;
};

static void free_pod(struct pod_name *pod)
{
	for (size_t i = 0; i < pod->container_count; i++)
		free(pod->containers[i].name);
	free(pod->containers);
	instances_deinit(&pod->instances);
	assignment_deinit(&pod->assignment);
	free(pod->uid);
	free(pod->namespace);
	free(pod->name);
	free(pod);
}

static struct pod_name **find(struct pod_names *names, const char *uid)
{
	struct pod_name **at = &names->first;

	while (*at && strcmp((*at)->uid, uid) != 0)
		at = &(*at)->next;
	return at;
}

static const char *text_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* As the kubelet says it in the pod's status, a mark as "containerd://0123". */
static void read_status(const json_t *states, struct pod_container *container)
{
	const json_t *state;
	size_t i;

	json_array_foreach(states, i, state)
	{
		const char *name = text_at(state, "name"), *mark = text_at(state, "containerID");
		const char *behind = mark ? strstr(mark, "://") : NULL;

		if (!name || strcmp(name, container->name) != 0)
			continue;
		container->is_running = json_object_get(json_object_get(state, "state"), "running");
		if (behind && strlen(behind + 3) < sizeof(container->mark))
			strcpy(container->mark, behind + 3);
	}
}

static int read_containers(struct pod_name *pod, const json_t *object)
{
	static const char *const keys[][2] = {
		{"initContainers", "initContainerStatuses"}, {"containers", "containerStatuses"}};
	const json_t *spec = json_object_get(object, "spec"),
		     *status = json_object_get(object, "status"), *container;
	size_t most = json_array_size(json_object_get(spec, keys[0][0])) +
		      json_array_size(json_object_get(spec, keys[1][0])),
	       i;

	pod->containers = calloc(most + 1, sizeof(*pod->containers));
	if (!pod->containers)
		return -ENOMEM;
	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		json_array_foreach(json_object_get(spec, keys[k][0]), i, container)
		{
			struct pod_container *added = &pod->containers[pod->container_count];
			const char *name = text_at(container, "name");

			added->name = strdup(name ? name : "");
			if (!added->name)
				return -ENOMEM;
			pod->container_count++;
			read_status(json_object_get(status, keys[k][1]), added);
		}
	return 0;
}

static struct assignment_need need_of(const json_t *container, const char *resource, bool is_init)
{
	const json_t *resources = json_object_get(container, "resources");
	int64_t count = 0;

	if (!quantity_of(json_object_get(resources, "limits"), resource, &count) &&
		!quantity_of(json_object_get(resources, "requests"), resource, &count))
		count = 0;
	return (struct assignment_need){count > 0 ? count : 0, is_init};
}

/* An annotation of nonsense assigns nothing. */
static int read_assignment(struct pod_name *pod, const json_t *object, const char *resource)
{
	const json_t *spec = json_object_get(object, "spec"), *container;
	const char *text =
		text_at(json_object_get(json_object_get(object, "metadata"), "annotations"),
			ASSIGNMENT_ALLOCATED);
	_cleanup_free_ struct assignment_need *needs =
		calloc(pod->container_count + 1, sizeof(*needs));
	_cleanup_free_ size_t *containers = NULL;
	struct err err = ERR_NULL;
	size_t count = 0, i;
	int r;

	if (!needs)
		return -ENOMEM;
	if (!text)
		return 0;
	json_array_foreach(json_object_get(spec, "initContainers"), i, container) needs[count++] =
		need_of(container, resource, true);
	json_array_foreach(json_object_get(spec, "containers"), i, container) needs[count++] =
		need_of(container, resource, false);
	r = assignment_decode(text, &pod->assignment, &err);
	containers = calloc(pod->assignment.count + 1, sizeof(*containers));
	if (r == -ENOMEM || !containers)
		return -ENOMEM;
	pod->is_misassigned =
		r || assignment_match(&pod->assignment, needs, count, containers, &err);
	for (i = 0; i < pod->assignment.count && !pod->is_misassigned; i++)
		if (pod->assignment.slots[i].count)
			pod->containers[containers[i]].slot = &pod->assignment.slots[i];
	return 0;
}

/* NULL: it is no pod, or there is no memory. */
static struct pod_name *read_pod(const json_t *object, const char *resource)
{
	const json_t *metadata = json_object_get(object, "metadata");
	const char *uid = text_at(metadata, "uid"), *namespace = text_at(metadata, "namespace"),
		   *name = text_at(metadata, "name");
	struct pod_name *pod = uid && namespace && name ? calloc(1, sizeof(*pod)) : NULL;

	if (!pod)
		return NULL;
	pod->uid = strdup(uid);
	pod->namespace = strdup(namespace);
	pod->name = strdup(name);
	pod->is_seen = true;
	if (pod->uid && pod->namespace && pod->name && !read_containers(pod, object) &&
		!read_assignment(pod, object, resource) &&
		!instances_decode_some(
			text_at(json_object_get(metadata, "annotations"), INSTANCES_ANNOTATION),
			&pod->instances))
		return pod;
	free_pod(pod);
	return NULL;
}

static void drop(struct pod_name **at)
{
	struct pod_name *gone = *at;

	*at = gone->next;
	free_pod(gone);
}

static void list_begins(void *context)
{
	struct pod_names *names = context;

	for (struct pod_name *pod = names->first; pod; pod = pod->next)
		pod->is_seen = false;
}

static void object_came(void *context, bool is_present, const json_t *object)
{
	struct pod_names *names = context;
	const char *uid = text_at(json_object_get(object, "metadata"), "uid");
	struct pod_name **at = uid ? find(names, uid) : NULL, *pod;

	if (!at)
		return;
	pod = is_present ? read_pod(object, names->resource) : NULL;
	if (is_present && !pod)
		return; /* what was known of it stays */
	if (*at)
		drop(at);
	if (pod) {
		pod->next = names->first;
		names->first = pod;
	}
}

static void list_is_complete(void *context)
{
	struct pod_names *names = context;

	for (struct pod_name **at = &names->first; *at;) {
		if ((*at)->is_seen)
			at = &(*at)->next;
		else
			drop(at);
	}
	names->is_known = true;
}

static void trouble_came(void *context, enum kube_outcome outcome, const char *words)
{
	if (outcome != KUBE_E_CANCELLED)
		log_warn("pods cannot be followed; it is tried again", STR("why", words));
}

int pod_names_start(struct kube_client *client, const char *node_name, const char *resource,
	struct pod_names **ret_names)
{
	static const struct kube_follow_events events = {
		list_begins, object_came, list_is_complete, trouble_came};
	struct pod_names *names = calloc(1, sizeof(*names));
	int r;

	if (!names)
		return -ENOMEM;
	names->resource = resource;
	r = kube_follow_pods_of(client, node_name, &events, names, &names->follow);
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
	while (names->first)
		drop(&names->first);
	free(names);
}

bool pod_names_are_known(const struct pod_names *names)
{
	return names->is_known;
}

const struct pod_name *pod_names_find(const struct pod_names *names, const char *uid)
{
	const struct pod_name *pod = pod_names_first(names);

	while (pod && strcmp(pod->uid, uid) != 0)
		pod = pod->next;
	return pod;
}

const struct pod_name *pod_names_find_named(
	const struct pod_names *names, const char *namespace, const char *name)
{
	const struct pod_name *pod = pod_names_first(names);

	while (pod && (strcmp(pod->name, name) != 0 || strcmp(pod->namespace, namespace) != 0))
		pod = pod->next;
	return pod;
}

const struct pod_name *pod_names_first(const struct pod_names *names)
{
	return names ? names->first : NULL;
}

const struct pod_container *pod_find_container(const struct pod_name *pod, const char *mark)
{
	for (size_t i = 0; *mark && i < pod->container_count; i++)
		if (!strcmp(pod->containers[i].mark, mark))
			return &pod->containers[i];
	return NULL;
}
