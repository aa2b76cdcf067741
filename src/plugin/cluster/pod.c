/* SPDX-License-Identifier: Apache-2.0 */
/* A pod as far as it concerns the plugin. */
#include "plugin/cluster/pod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kube/instances.h"
#include "kube/quantity.h"
#include "kube/wish.h"
#include "plugin/grant/cover.h"

#define QUANTITY_MOST INT32_MAX

static const char *text_at(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Whether it went well; what is not there stays NULL. */
static bool copy(const json_t *object, const char *key, char **ret_text)
{
	const char *text = text_at(object, key);

	*ret_text = text ? strdup(text) : NULL;
	return !text || *ret_text;
}

/* As the scheduler has it: the limit, else the request. Below 0: neither, or no number. */
static int64_t amount_of(const json_t *container, const char *resource)
{
	const json_t *resources = json_object_get(container, "resources");
	int64_t amount;

	if (!resource ||
		(!quantity_of(json_object_get(resources, "limits"), resource, &amount) &&
			!quantity_of(json_object_get(resources, "requests"), resource, &amount)))
		return -1;
	return amount <= QUANTITY_MOST ? amount : -1;
}

/* The last of that name is in force. */
static int copy_disable_control(const json_t *container, char **ret_text)
{
	const json_t *list = json_object_get(container, "env"), *variable, *last = NULL;
	size_t i;

	json_array_foreach(list, i, variable)
	{
		const char *name = text_at(variable, "name");

		if (name && !strcmp(name, "CUDA_DISABLE_CONTROL"))
			last = variable;
	}
	return last && !copy(last, "value", ret_text) ? -ENOMEM : 0;
}

static int add_container(struct pod *pod, const json_t *container, bool is_init,
	const struct pod_resources *resources)
{
	struct pod_container *added = &pod->containers[pod->container_count];
	int64_t slices = amount_of(container, resources->slices);

	pod->needs[pod->need_count++] = (struct assignment_need){slices > 0 ? slices : 0, is_init};
	if (slices <= 0)
		return 0;
	pod->container_count++;
	added->slices = (unsigned)slices;
	added->index = pod->need_count - 1;
	added->priority = amount_of(container, resources->priority);
	added->memory_mib = amount_of(container, resources->memory);
	added->memory_percent = amount_of(container, resources->memory_percentage);
	added->cores_percent = amount_of(container, resources->cores);
	if (!copy(container, "name", &added->name) ||
		copy_disable_control(container, &added->disable_control) ||
		cover_find(container, resources->hook, &added->covering))
		return -ENOMEM;
	return added->name ? 0 : -EINVAL;
}

static int read_containers(
	struct pod *pod, const json_t *spec, const struct pod_resources *resources)
{
	const json_t *lists[] = {
		json_object_get(spec, "initContainers"), json_object_get(spec, "containers")};
	size_t count = json_array_size(lists[0]) + json_array_size(lists[1]);
	int result = 0;

	pod->containers = calloc(count + 1, sizeof(*pod->containers));
	pod->needs = calloc(count + 1, sizeof(*pod->needs));
	if (!pod->containers || !pod->needs)
		return -ENOMEM;
	for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t j = 0; j < json_array_size(lists[i]) && !result; j++)
			result = add_container(pod, json_array_get(lists[i], j), i == 0, resources);
	return result;
}

static enum pod_phase phase_of(const char *text)
{
	static const char *const words[] = {"", "allocating", "success", "failed"};

	for (size_t i = 1; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i]))
			return (enum pod_phase)i;
	return POD_PHASE_NONE;
}

static int read_rest(struct pod *pod, const json_t *object)
{
	const json_t *metadata = json_object_get(object, "metadata"),
		     *annotations = json_object_get(metadata, "annotations"),
		     *status = json_object_get(object, "status");
	const char *phase = text_at(status, "phase"),
		   *created = text_at(metadata, "creationTimestamp"),
		   *version = text_at(metadata, "resourceVersion");

	if (!copy(metadata, "namespace", &pod->space) || !copy(metadata, "name", &pod->name) ||
		!copy(metadata, "uid", &pod->uid) ||
		!copy(annotations, "hami.io/vgpu-node", &pod->node) ||
		!copy(annotations, POD_TO_ALLOCATE, &pod->to_allocate) ||
		!copy(annotations, ASSIGNMENT_ALLOCATED, &pod->allocated) ||
		!copy(annotations, WISH_ANNOTATION, &pod->wish) ||
		!copy(annotations, INSTANCES_ANNOTATION, &pod->instances))
		return -ENOMEM;
	pod->phase = phase_of(text_at(annotations, POD_BIND_PHASE));
	pod->has_bind_time = text_at(annotations, "hami.io/bind-time");
	pod->is_over = phase && (!strcmp(phase, "Succeeded") || !strcmp(phase, "Failed"));
	pod->is_admitted = text_at(status, "startTime");
	pod->is_leaving = text_at(metadata, "deletionTimestamp");
	if (!version || parse_u64(version, UINT64_MAX, &pod->version))
		pod->version = 0;
	snprintf(pod->created, sizeof(pod->created), "%s", created ? created : "");
	return pod->space && pod->name && pod->uid ? 0 : -EINVAL;
}

int pod_parse(const json_t *object, const struct pod_resources *resources, struct pod **ret_pod)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	int result;

	if (!pod)
		return -ENOMEM;
	result = read_containers(pod, json_object_get(object, "spec"), resources);
	if (!result && pod->container_count)
		result = read_rest(pod, object);
	if (result || !pod->container_count) {
		pod_free(pod);
		pod = NULL;
	}
	*ret_pod = pod;
	return result;
}

void pod_free(struct pod *pod)
{
	if (!pod)
		return;
	for (unsigned i = 0; i < pod->container_count; i++) {
		free(pod->containers[i].name);
		free(pod->containers[i].disable_control);
		free(pod->containers[i].covering);
	}
	free(pod->containers);
	free(pod->needs);
	free(pod->allocated);
	free(pod->wish);
	free(pod->space);
	free(pod->name);
	free(pod->uid);
	free(pod->node);
	free(pod->to_allocate);
	free(pod->instances);
	free(pod);
}

char *pod_path(const char *space, const char *name)
{
	char *path;

	return asprintf(&path, "/api/v1/namespaces/%s/pods/%s", space, name) < 0 ? NULL : path;
}

void pod_update(struct pod *pod, struct pod *fresh)
{
	char *node = pod->node, *to_allocate = pod->to_allocate, *instances = pod->instances,
	     *allocated = pod->allocated, *wish = pod->wish;

	if (!wish || !fresh->wish || strcmp(wish, fresh->wish) != 0)
		pod->wish_rests_ns = 0;
	pod->node = fresh->node;
	pod->to_allocate = fresh->to_allocate;
	pod->instances = fresh->instances;
	pod->allocated = fresh->allocated;
	pod->wish = fresh->wish;
	pod->phase = fresh->phase;
	pod->has_bind_time = fresh->has_bind_time;
	pod->is_over = fresh->is_over;
	pod->is_admitted = fresh->is_admitted;
	pod->is_leaving = fresh->is_leaving;
	pod->version = fresh->version;
	fresh->node = node;
	fresh->to_allocate = to_allocate;
	fresh->instances = instances;
	fresh->allocated = allocated;
	fresh->wish = wish;
	pod_free(fresh);
}

/* Old writers have ",,0,0:" for a container without devices. What is not understood is not empty. */
static bool has_device(const char *slot, size_t length)
{
	_cleanup_(assignment_deinit) struct assignment read = ASSIGNMENT_NULL;
	_cleanup_free_ char *text = length ? strndup(slot, length) : NULL;
	struct err err = ERR_NULL;

	return text && (assignment_decode(text, &read, &err) || read.slots[0].count);
}

/* A slot is what stands before a ';', and has no device where nothing of it is left. */
static const char *next_slot(const char *at, size_t *ret_length)
{
	while (at && *at) {
		*ret_length = strcspn(at, ";");
		if (has_device(at, *ret_length))
			return at;
		at += *ret_length + (at[*ret_length] == ';');
	}
	*ret_length = 0;
	return at;
}

unsigned pod_slots_left(const struct pod *pod)
{
	const char *at = pod->to_allocate;
	unsigned slots = 0;
	size_t length;

	for (at = next_slot(at, &length); length; at = next_slot(at + length, &length))
		slots++;
	return slots;
}

int pod_take_slot(const struct pod *pod, char **ret_slot, char **ret_rest)
{
	size_t length;
	const char *slot = next_slot(pod->to_allocate, &length);

	*ret_slot = strndup(slot ? slot : "", length);
	if (asprintf(ret_rest, "%.*s%s", (int)(slot - pod->to_allocate),
		    slot ? pod->to_allocate : "", slot ? slot + length : "") < 0)
		*ret_rest = NULL;
	if (*ret_slot && *ret_rest)
		return 0;
	free(*ret_slot);
	free(*ret_rest);
	*ret_slot = *ret_rest = NULL;
	return -ENOMEM;
}

/* What stands before the semicolon with that number, counted from 0; NULL where there are not as many. */
static const char *slot_at(const char *text, unsigned number, size_t *ret_length)
{
	while (number && (text = strchr(text, ';'))) {
		text++;
		number--;
	}
	*ret_length = text ? strcspn(text, ";") : 0;
	return text;
}

/* By the reservation as it was written, because emptied slots are not told from those of containers without devices. */
static int match(const struct pod *pod, unsigned slot, size_t *ret_index)
{
	_cleanup_(assignment_deinit) struct assignment written = ASSIGNMENT_NULL;
	_cleanup_free_ size_t *containers = NULL;
	struct err err = ERR_NULL;
	int result = assignment_decode(pod->allocated, &written, &err);

	if (result || slot >= written.count)
		return -EINVAL;
	containers = calloc(written.count, sizeof(*containers));
	if (!containers)
		return -ENOMEM;
	result = assignment_match(&written, pod->needs, pod->need_count, containers, &err);
	if (!result)
		*ret_index = containers[slot];
	return result;
}

/* The number of the next slot, where it is as it was written at first. */
static bool find_written(const struct pod *pod, unsigned *ret_number)
{
	size_t length, written_length;
	const char *slot = next_slot(pod->to_allocate, &length), *written;
	unsigned number = 0;

	if (!length || !pod->allocated)
		return false;
	for (const char *at = pod->to_allocate; at < slot; at++)
		number += *at == ';';
	*ret_number = number;
	written = slot_at(pod->allocated, number, &written_length);
	return written && written_length == length && !memcmp(written, slot, length);
}

bool pod_has_written_slot(const struct pod *pod)
{
	unsigned number;

	return find_written(pod, &number);
}

const struct pod_container *pod_next_container(const struct pod *pod)
{
	unsigned number;
	size_t index;

	if (!find_written(pod, &number) || match(pod, number, &index))
		return NULL;
	for (unsigned i = 0; i < pod->container_count; i++)
		if (pod->containers[i].index == index)
			return &pod->containers[i];
	return NULL;
}

bool pod_is_reserved(const struct pod *pod, const char *node_name)
{
	return pod->node && !strcmp(pod->node, node_name) && pod->has_bind_time &&
	       pod->phase == POD_PHASE_ALLOCATING && pod_slots_left(pod) > 0;
}
