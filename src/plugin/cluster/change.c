/* SPDX-License-Identifier: Apache-2.0 */
/* What the plugin changes at the API server for an Allocate. */
#include "plugin/cluster/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* In a JSON pointer "/" is "~1". */
#define AT(name)	      "/metadata/annotations/hami.io~1" name
#define TO_ALLOCATE	      AT("vgpu-devices-to-allocate")
#define BIND_PHASE	      AT("bind-phase")
#define LOCK		      AT("mutex.lock")
#define INSTANCES	      AT("vgpu-mig-allocations")
#define ALLOCATED	      AT("vgpu-devices-allocated")
#define WISH		      "/metadata/annotations/cantaloupe.io~1resize"

#define OPERATION	      "{s:s,s:s,s:s}"
#define DO(what, path, value) "op", what, "path", path, "value", value

int change_pod_of(const struct pod *pod, struct change_pod *ret_pod)
{
	*ret_pod = (struct change_pod){strdup(pod->space), strdup(pod->name), strdup(pod->uid)};
	if (ret_pod->space && ret_pod->name && ret_pod->uid)
		return 0;
	change_pod_deinit(ret_pod);
	return -ENOMEM;
}

void change_pod_deinit(struct change_pod *pod)
{
	free(pod->space);
	free(pod->name);
	free(pod->uid);
	*pod = (struct change_pod){.uid = NULL};
}

/* The operations are released. */
static int patch_pod(struct kube_client *client, const struct change_pod *pod, json_t *operations,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	_cleanup_free_ char *path = pod_path(pod->space, pod->name);
	int result = -ENOMEM;

	if (path && operations)
		result = kube_patch_if(client, path, operations, done, context, ret_call);
	json_decref(operations);
	return result;
}

/* 0, where it is not NULL and was appended. */
static int append(json_t *operations, json_t *operation)
{
	return json_array_append_new(operations, operation);
}

int change_slot(struct kube_client *client, const struct change_pod *pod,
	const struct change_text *slots, const struct change_text *instances, bool is_bound,
	kube_done_fn *done, void *context, struct kube_call **ret_call)
{
	json_t *operations = json_pack("[" OPERATION OPERATION OPERATION "]",
		DO("test", "/metadata/uid", pod->uid), DO("test", TO_ALLOCATE, slots->before),
		DO("replace", TO_ALLOCATE, slots->now));
	int result = 0;

	if (instances) {
		result |= append(
			operations, json_pack(OPERATION, DO("test", INSTANCES, instances->before)));
		result |= append(
			operations, json_pack(OPERATION, DO("replace", INSTANCES, instances->now)));
	}
	if (is_bound)
		result |=
			append(operations, json_pack(OPERATION, DO("add", BIND_PHASE, "success")));
	if (result) {
		json_decref(operations);
		return -ENOMEM;
	}
	return patch_pod(client, pod, operations, done, context, ret_call);
}

int change_allocation(struct kube_client *client, const struct change_pod *pod,
	const struct change_text *allocation, const char *wish, kube_done_fn *done, void *context,
	struct kube_call **ret_call)
{
	return patch_pod(client, pod,
		json_pack("[" OPERATION OPERATION OPERATION OPERATION "]",
			DO("test", "/metadata/uid", pod->uid), DO("test", WISH, wish),
			DO("test", ALLOCATED, allocation->before),
			DO("replace", ALLOCATED, allocation->now)),
		done, context, ret_call);
}

/* Its annotations may all have been removed; then there is no phase to be set. */
int change_to_failed(struct kube_client *client, const struct change_pod *pod, kube_done_fn *done,
	void *context, struct kube_call **ret_call)
{
	return patch_pod(client, pod,
		json_pack("[" OPERATION OPERATION "]", DO("test", "/metadata/uid", pod->uid),
			DO("add", BIND_PHASE, "failed")),
		done, context, ret_call);
}

int change_unlock(struct kube_client *client, const struct node *node, kube_done_fn *done,
	void *context, struct kube_call **ret_call)
{
	json_t *operations = json_pack("[" OPERATION "{s:s,s:s}]",
		DO("test", LOCK, node_state(node)->lock.text), "op", "remove", "path", LOCK);
	int result = operations ? kube_patch_if(client, node_path(node), operations, done, context,
					  ret_call)
				: -ENOMEM;

	json_decref(operations);
	return result;
}
