/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster that is planned for. */
#include "plan/world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "kube/assignment.h"
#include "plan/priority.h"
#include "plan/template.h"
#include "scheduler/object.h"
#include "scheduler/reservation.h"

#define NODES_MOST 100000

int world_init(struct world *world, const struct settings *settings, const char *namespace,
	int64_t now_s, void (*warn)(const char *words))
{
	*world = (struct world){
		.settings = settings, .namespace = namespace, .now_s = now_s, .warn = warn};
	world->classes = json_object();
	return world->classes ? books_new(&world->books) : -ENOMEM;
}

void world_deinit(struct world *world)
{
	for (size_t i = 0; i < world->node_count; i++)
		json_decref(world->nodes[i].object);
	for (size_t i = 0; i < world->pod_count; i++)
		json_decref(world->pods[i].object);
	free(world->nodes);
	free(world->pods);
	if (world->books)
		books_free(world->books);
	json_decref(world->classes);
	*world = (struct world){0};
}

/* Room for one more; lists grow when their count is a power of two. */
static void *grow(void *list, size_t count, size_t size)
{
	return count & (count - 1) ? list : realloc(list, (count ? 2 * count : 1) * size);
}

struct world_node *world_find_node(const struct world *world, const char *name)
{
	for (size_t i = 0; i < world->node_count; i++)
		if (!strcmp(world->nodes[i].name, name))
			return &world->nodes[i];
	return NULL;
}

int world_enter_node(struct world *world, json_t *object, bool is_added, struct err *err)
{
	struct registry_texts texts = object_read_node(&world->settings->rules.demand, object);
	const char *name = object_text(object, "name");
	struct world_node *more = NULL;
	int result;

	if (!*name)
		result = err_set(err, EINVAL, "metadata.name is missing; the node's name is right");
	else if (world->node_count == NODES_MOST)
		result = err_set(err, EINVAL, "there are more than %d nodes", NODES_MOST);
	else
		result = books_set_node(world->books, name, &texts, err);
	if (!result) {
		more = grow(world->nodes, world->node_count, sizeof(*more));
		if (!more)
			result = err_set(err, ENOMEM, "no memory");
	}
	if (result) {
		json_decref(object);
		return result;
	}
	world->nodes = more;
	world->nodes[world->node_count++] =
		(struct world_node){.object = object, .name = name, .is_added = is_added};
	return 0;
}

static int enter_pod(
	struct world *world, json_t *object, enum world_state state, bool is_new, struct err *err)
{
	struct world_pod *more = grow(world->pods, world->pod_count, sizeof(*more));

	if (!more) {
		json_decref(object);
		return err_set(err, ENOMEM, "no memory");
	}
	world->pods = more;
	world->pods[world->pod_count] = (struct world_pod){
		.object = object, .state = state, .is_new = is_new, .order = world->pod_count};
	world->pod_count++;
	return 0;
}

/* What an object needs that no API server has looked at. */
static int check_pod(json_t *object, struct err *err)
{
	const json_t *containers = json_object_get(json_object_get(object, "spec"), "containers"),
		     *container;
	size_t i;

	if (!json_array_size(containers))
		return err_set(err, EINVAL,
			"spec.containers is missing or no list; a list of containers is right");
	json_array_foreach(containers, i, container) if (!json_is_object(container)) return err_set(
		err, EINVAL, "spec.containers[%zu] is no mapping", i);
	if (!*object_text(object, "name") && !*object_text(object, "generateName"))
		return err_set(err, EINVAL, "metadata.name is missing; the pod's name is right");
	return 0;
}

/* A pod that is not created yet gets what the API server would give it. */
static int complete_pod(const struct world *world, json_t *object)
{
	json_t *metadata = json_object_get(object, "metadata");
	char text[WORLD_WORDS];

	if (!*object_text(object, "namespace") &&
		json_object_set_new(metadata, "namespace", json_string(world->namespace)))
		return -ENOMEM;
	snprintf(text, sizeof(text), "%.250s%zu", object_text(object, "generateName"),
		world->pod_count);
	if (!*object_text(object, "name") &&
		json_object_set_new(metadata, "name", json_string(text)))
		return -ENOMEM;
	snprintf(text, sizeof(text), "plan-%zu", world->pod_count);
	return json_object_set_new(metadata, "uid", json_string(text)) ? -ENOMEM : 0;
}

/* Who plans may not have the class at hand, or may not read it. */
static int give_priority(const struct world *world, json_t *pod, struct err *err)
{
	char words[sizeof(err->text) + 300];
	int result = priority_give(world->classes, pod, err);

	if (result != -EINVAL)
		return result;
	snprintf(words, sizeof(words), "Pod %s: %s; it counts as 0", object_text(pod, "name"),
		err->text);
	world->warn(words);
	*err = (struct err)ERR_NULL;
	return 0;
}

static int add_new_pod(struct world *world, json_t *object, struct err *err)
{
	int result = check_pod(object, err);

	if (!result && world->pod_count == WORLD_PODS_MOST)
		result = err_set(err, EINVAL, "there are more than %d pods", WORLD_PODS_MOST);
	if (!result && complete_pod(world, object))
		result = err_set(err, ENOMEM, "no memory");
	if (!result)
		result = give_priority(world, object, err);
	if (!result)
		return enter_pod(world, object, WORLD_WAITS, true, err);
	json_decref(object);
	return result;
}

/* The pod of a cluster that is not bound: what was promised to it counts for as long as the scheduler would keep it. */
static int read_promise(
	const struct world *world, const json_t *pod, struct reservation **ret_reservation)
{
	const json_t *annotations =
		json_object_get(json_object_get(pod, "metadata"), "annotations");
	int64_t timeout_s = (int64_t)(world->settings->reservation_ns / 1000000000);
	struct err ignored;

	if (reservation_time_s(annotations) + timeout_s <= world->now_s)
		return -ENOENT;
	return reservation_read(&world->settings->rules.demand, pod, ret_reservation, &ignored);
}

static int add_live_pod(struct world *world, json_t *object, struct err *err)
{
	struct reservation *reservation = NULL;
	bool is_bound = *object_node(object);
	int result;

	if (object_is_over(object) || books_has_pod(world->books, object_text(object, "uid")))
		return 0;
	if (is_bound)
		result = reservation_read_bound(
			&world->settings->rules.demand, object, &reservation, err);
	else
		result = read_promise(world, object, &reservation);
	if (!result)
		result = books_set_pod(world->books, reservation_pod(reservation));
	if (reservation)
		reservation_free(reservation);
	if (result == -ENOMEM)
		return err_set(err, ENOMEM, "no memory");
	if (result && is_bound)
		return result == -ENOENT ? 0 : result;
	return enter_pod(world, json_incref(object),
		is_bound  ? WORLD_RUNS
		: !result ? WORLD_PROMISED
			  : WORLD_WAITS,
		false, err);
}

static int add_quota(struct world *world, const json_t *object, struct err *err)
{
	const char *namespace = object_text(object, "namespace");
	struct fit_room limit;

	if (!object_read_quota(&world->settings->rules.demand, object, &limit))
		return 0;
	if (books_set_quota(world->books, *namespace ? namespace : world->namespace,
		    object_text(object, "name"), &limit))
		return err_set(err, ENOMEM, "no memory");
	return 0;
}

static int add_workload(struct world *world, const json_t *object, struct err *err)
{
	struct template template;
	int result = template_read(object, &template, err);

	/* pods of a workload that is in a cluster are there themselves */
	if (result || *object_text(object, "uid"))
		return result;
	for (int64_t i = 0; i < template.replicas && !result; i++) {
		json_t *pod = template_make(&template, i);

		result = pod ? add_new_pod(world, pod, err) : err_set(err, ENOMEM, "no memory");
	}
	return result;
}

static int add_node(struct world *world, json_t *object, struct err *err)
{
	const char *name = object_text(object, "name");

	if (world_find_node(world, name))
		return err_set(err, EINVAL, "node %.100s is there twice; once is right", name);
	return world_enter_node(world, json_incref(object), false, err);
}

static int add_pod(struct world *world, json_t *object, struct err *err)
{
	return *object_text(object, "uid") ? add_live_pod(world, object, err)
					   : add_new_pod(world, json_deep_copy(object), err);
}

enum pass { PASS_NODES, PASS_PODS };

static int add_one(
	struct world *world, const struct reader_object *one, enum pass pass, struct err *err)
{
	const char *kind = json_string_value(json_object_get(one->object, "kind"));
	bool is_first = pass == PASS_NODES;

	if (!strcmp(kind, "Node"))
		return is_first ? add_node(world, one->object, err) : 0;
	if (!strcmp(kind, "ResourceQuota"))
		return is_first ? add_quota(world, one->object, err) : 0;
	if (!strcmp(kind, "PriorityClass"))
		return is_first ? priority_add(world->classes, one->object, err) : 0;
	if (!strcmp(kind, "Pod"))
		return is_first ? 0 : add_pod(world, one->object, err);
	return is_first ? 0 : add_workload(world, one->object, err);
}

static void warn_of(
	const struct world *world, const struct reader_object *one, const struct err *err)
{
	char words[sizeof(err->text) + 300];

	snprintf(words, sizeof(words), "%s %s/%s: %s",
		json_string_value(json_object_get(one->object, "kind")),
		object_text(one->object, "namespace"), object_text(one->object, "name"), err->text);
	world->warn(words);
}

static void say_where(const struct reader_object *one, struct err *err)
{
	char where[READER_WHERE_BYTES];

	reader_say_where(one, where);
	err_wrap(err, "%s: %s %.100s", where,
		json_string_value(json_object_get(one->object, "kind")),
		object_text(one->object, "name"));
}

/* Nodes and quotas first: pods may stand before them. */
int world_add(struct world *world, const struct reader_list *list, bool are_live, struct err *err)
{
	for (enum pass pass = PASS_NODES; pass <= PASS_PODS; pass++)
		for (size_t i = 0; i < list->count; i++) {
			int result = add_one(world, &list->at[i], pass, err);

			if (result == -EINVAL && are_live) {
				warn_of(world, &list->at[i], err);
				*err = (struct err)ERR_NULL;
			} else if (result) {
				say_where(&list->at[i], err);
				return result;
			}
		}
	return 0;
}

static bool ends_with_node(const json_t *pod)
{
	const json_t *owners = json_object_get(json_object_get(pod, "metadata"), "ownerReferences"),
		     *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
	{
		const char *kind = json_string_value(json_object_get(owner, "kind"));

		if (kind && (!strcmp(kind, "DaemonSet") || !strcmp(kind, "Node")))
			return true;
	}
	return false;
}

/* Its controller makes it anew: without a node, and without what it had. */
static int move_pod(struct world *world, struct world_pod *pod)
{
	static const char *const keys[] = {RESERVATION_NODE, RESERVATION_TIME,
		ASSIGNMENT_TO_ALLOCATE, ASSIGNMENT_ALLOCATED, RESERVATION_INSTANCES};
	json_t *copy = json_deep_copy(pod->object), *annotations;

	if (!copy)
		return -ENOMEM;
	books_drop_pod(world->books, object_text(pod->object, "uid"));
	annotations = json_object_get(json_object_get(copy, "metadata"), "annotations");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		json_object_del(annotations, keys[i]);
	json_object_del(json_object_get(copy, "spec"), "nodeName");
	json_object_del(copy, "status");
	json_decref(pod->object);
	pod->object = copy;
	pod->is_moved = true;
	pod->state = ends_with_node(copy) ? WORLD_GOES : WORLD_WAITS;
	return 0;
}

int world_drain(struct world *world, const char *name, struct err *err)
{
	struct world_node *node = world_find_node(world, name);

	if (!node)
		return err_set(err, EINVAL,
			"--drain '%.100s': there is no such node among the %zu that are known",
			name, world->node_count);
	node->is_drained = true;
	for (size_t i = 0; i < world->pod_count; i++) {
		struct world_pod *pod = &world->pods[i];
		const char *its = pod->state == WORLD_PROMISED
					  ? demand_annotation(pod->object, RESERVATION_NODE)
					  : object_node(pod->object);

		if (pod->state <= WORLD_PROMISED && its && !strcmp(its, name) &&
			move_pod(world, pod))
			return err_set(err, ENOMEM, "no memory");
	}
	return 0;
}

static int64_t priority_of(const struct world_pod *pod)
{
	return json_integer_value(
		json_object_get(json_object_get(pod->object, "spec"), "priority"));
}

/* Those that are made only now come last. */
static int compare_age(const struct world_pod *a, const struct world_pod *b)
{
	const char *one = a->is_moved ? "" : object_text(a->object, "creationTimestamp");
	const char *other = b->is_moved ? "" : object_text(b->object, "creationTimestamp");

	if (!*one != !*other)
		return *one ? -1 : 1;
	return strcmp(one, other);
}

static int compare(const void *one, const void *other)
{
	const struct world_pod *a = one, *b = other;
	int64_t difference = priority_of(b) - priority_of(a);
	int age = difference ? 0 : compare_age(a, b);

	if (difference || age)
		return difference ? (difference > 0) - (difference < 0) : age;
	return a->order < b->order ? -1 : 1;
}

void world_sort(struct world *world)
{
	if (world->pod_count)
		qsort(world->pods, world->pod_count, sizeof(*world->pods), compare);
}
