/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods of this node that want slices.
 *
 * The kubelet has the same watch, and admits what an event brings before it looks at the next; what one list brings it
 * admits by age. So the order in which pods become known here is that in which the kubelet asks for their slices.
 */
#include "plugin/cluster/pods.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "kube/follow.h"

#define LOG_TOPIC LOG_PODS

struct pods {
	struct kube_follow *follow;
	struct pods_events events;
	void *context;
	char *node_name;
	struct pod_resources resources;
	struct pod *first, *last;
	uint64_t batch;
	bool is_listing, is_known;
};

static void unlink_pod(struct pods *pods, struct pod *pod)
{
	if (pod->previous)
		pod->previous->next = pod->next;
	else
		pods->first = pod->next;
	if (pod->next)
		pod->next->previous = pod->previous;
	else
		pods->last = pod->previous;
	pod_free(pod);
}

/* Behind all of earlier batches, and the older of its own. */
static void link_pod(struct pods *pods, struct pod *pod)
{
	struct pod *before = pods->last;

	while (before && before->batch == pod->batch && strcmp(before->created, pod->created) > 0)
		before = before->previous;
	pod->previous = before;
	pod->next = before ? before->next : pods->first;
	if (before)
		before->next = pod;
	else
		pods->first = pod;
	if (pod->next)
		pod->next->previous = pod;
	else
		pods->last = pod;
}

struct pod *pods_find_uid(const struct pods *pods, const char *uid)
{
	struct pod *pod = pods->first;

	while (pod && strcmp(pod->uid, uid) != 0)
		pod = pod->next;
	return pod;
}

/* Of two of that name the later one: the earlier is about to go. */
struct pod *pods_find(const struct pods *pods, const char *space, const char *name)
{
	struct pod *pod = pods->last;

	while (pod && (strcmp(pod->space, space) != 0 || strcmp(pod->name, name) != 0))
		pod = pod->previous;
	return pod;
}

/* An answer may be older than what the watch has said meanwhile. */
static struct pod *take(struct pods *pods, const json_t *object, bool is_answer)
{
	struct pod *fresh, *known;

	if (pod_parse(object, &pods->resources, &fresh)) {
		log_warn("a pod is not understood");
		return NULL;
	}
	if (!fresh)
		return NULL;
	known = pods_find_uid(pods, fresh->uid);
	if (known && is_answer && fresh->version < known->version)
		pod_free(fresh);
	else if (known)
		pod_update(known, fresh);
	if (known)
		return known;
	fresh->batch = pods->is_listing ? pods->batch : ++pods->batch;
	link_pod(pods, fresh);
	return fresh;
}

struct pod *pods_take(struct pods *pods, const json_t *object)
{
	const char *node =
		json_string_value(json_object_get(json_object_get(object, "spec"), "nodeName"));

	return node && !strcmp(node, pods->node_name) ? take(pods, object, true) : NULL;
}

static const char *uid_of(const json_t *object)
{
	return json_string_value(json_object_get(json_object_get(object, "metadata"), "uid"));
}

int pods_read(struct kube_client *client, const char *space, const char *name, kube_done_fn *done,
	void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = pod_path(space, name);

	return path ? kube_get(client, path, done, context, ret_call) : -ENOMEM;
}

void pods_take_read(
	struct pods *pods, const char *space, const char *name, const struct kube_result *result)
{
	const char *uid = uid_of(result->body);
	bool is_changed = false;

	if (!result->outcome)
		pods_take(pods, result->body);
	else if (result->outcome != KUBE_E_NOT_FOUND)
		return;
	for (struct pod *pod = pods->first, *next; pod; pod = next) {
		next = pod->next;
		if (strcmp(pod->space, space) || strcmp(pod->name, name) ||
			(uid && !strcmp(pod->uid, uid)))
			continue;
		log_info("a pod is gone, which the watch has not said yet", STR("namespace", space),
			STR("pod", name));
		unlink_pod(pods, pod);
		is_changed = true;
	}
	if (is_changed)
		pods->events.changed(pods->context);
}

void pods_renew(struct pods *pods, const json_t *object)
{
	const char *uid = uid_of(object);

	if (uid && pods_find_uid(pods, uid))
		(void)take(pods, object, true);
}

static void list_begins(void *context)
{
	struct pods *pods = context;

	pods->is_listing = true;
	pods->batch++;
	for (struct pod *pod = pods->first; pod; pod = pod->next)
		pod->is_seen = false;
}

static void object_came(void *context, bool is_present, const json_t *object)
{
	struct pods *pods = context;
	const char *uid = uid_of(object);
	struct pod *pod;

	if (is_present) {
		pod = take(pods, object, false);
		if (pod)
			pod->is_seen = true;
	} else {
		pod = uid ? pods_find_uid(pods, uid) : NULL;
		if (pod)
			unlink_pod(pods, pod);
	}
	if (pod && !pods->is_listing)
		pods->events.changed(pods->context);
}

static void list_is_complete(void *context)
{
	struct pods *pods = context;

	for (struct pod *pod = pods->first, *next; pod; pod = next) {
		next = pod->next;
		if (!pod->is_seen)
			unlink_pod(pods, pod);
	}
	if (!pods->is_known)
		log_info("pods of the node are known", STR("node", pods->node_name));
	pods->is_listing = false;
	pods->is_known = true;
	pods->events.changed(pods->context);
}

static void trouble_came(void *context, enum kube_outcome outcome, const char *words)
{
	if (outcome != KUBE_E_CANCELLED)
		log_warn("pods cannot be followed; it is tried again", STR("why", words));
}

int pods_start(struct kube_client *client, const char *node_name,
	const struct pod_resources *resources, const struct pods_events *events, void *context,
	struct pods **ret_pods)
{
	static const struct kube_follow_events follow_events = {
		list_begins, object_came, list_is_complete, trouble_came};
	struct pods *pods = calloc(1, sizeof(*pods));
	int result = -ENOMEM;

	if (!pods)
		return -ENOMEM;
	pods->events = *events;
	pods->context = context;
	pods->node_name = strdup(node_name);
	pods->resources = *resources;
	if (pods->node_name)
		result =
			kube_follow_pods_of(client, node_name, &follow_events, pods, &pods->follow);
	if (result)
		pods_stop(pods);
	else
		*ret_pods = pods;
	return result;
}

void pods_stop(struct pods *pods)
{
	if (!pods)
		return;
	kube_follow_stop(pods->follow);
	while (pods->first)
		unlink_pod(pods, pods->first);
	free(pods->node_name);
	free(pods);
}

bool pods_are_known(const struct pods *pods)
{
	return pods->is_known;
}

struct pod *pods_first(const struct pods *pods)
{
	return pods->first;
}
