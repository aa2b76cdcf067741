/* SPDX-License-Identifier: Apache-2.0 */
/* A node that is not there: as one that is, or of a short description. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kube/quantity.h"
#include "plan/world.h"
#include "scheduler/object.h"

#define FORM                                                                                     \
	"'name=n9,type=NVIDIA-H100-80GB-HBM3,gpus=8,memory=81559Mi,split=10' or 'like=NODE' is " \
	"right"
#define MIB		1048576
#define SPLIT_OTHERWISE 10

struct wish {
	const char *name, *like, *type;
	uint64_t gpus, memory_mib, split;
};

static int refuse(struct err *err, const char *key, const char *value, const char *right)
{
	return err_set(err, EINVAL, "--add-node: %.40s is '%.100s'; %s", key, value, right);
}

/* "81559Mi", "80Gi", or MiB without a unit, as in a pod. */
static bool parse_memory(const char *text, uint64_t *ret_mib)
{
	int64_t value;

	if (!quantity_parse(text, &value) || value <= 0)
		return false;
	*ret_mib = (uint64_t)(text[strspn(text, "0123456789")] ? value / MIB : value);
	return *ret_mib && *ret_mib <= INT32_MAX;
}

static int take(struct wish *wish, const char *key, const char *value, struct err *err)
{
	if (!strcmp(key, "name"))
		wish->name = value;
	else if (!strcmp(key, "like"))
		wish->like = value;
	else if (!strcmp(key, "type"))
		wish->type = value;
	else if (!strcmp(key, "gpus")) {
		if (parse_u64(value, FIT_DEVICES, &wish->gpus) || !wish->gpus)
			return refuse(err, key, value, "a number from 1 to 64 is right");
	} else if (!strcmp(key, "split")) {
		if (parse_u64(value, 1000, &wish->split) || !wish->split)
			return refuse(err, key, value, "a number from 1 to 1000 is right");
	} else if (!strcmp(key, "memory")) {
		if (!parse_memory(value, &wish->memory_mib))
			return refuse(err, key, value, "an amount like 81559Mi or 80Gi is right");
	} else
		return refuse(err, "key", key, FORM);
	return *value ? 0 : refuse(err, key, value, FORM);
}

static int parse(char *text, struct wish *wish, struct err *err)
{
	for (char *rest = text, *part; (part = strsep(&rest, ","));) {
		char *value = strchr(part, '=');
		int result;

		if (!value)
			return refuse(err, "a part", part, FORM);
		*value++ = '\0';
		result = take(wish, part, value, err);
		if (result)
			return result;
	}
	if (wish->like)
		return wish->type || wish->gpus || wish->memory_mib || wish->split
			       ? refuse(err, "like", wish->like, "beside it, only name may stand")
			       : 0;
	if (!wish->name || !wish->type || !wish->gpus || !wish->memory_mib)
		return err_set(err, EINVAL,
			"--add-node: name, type, gpus and memory are needed, or like; " FORM);
	return 0;
}

/* As the device plugin registers it. */
static json_t *describe_device(const struct wish *wish, uint64_t index)
{
	char uuid[80];

	snprintf(uuid, sizeof(uuid), "GPU-%.40s-%llu", wish->name, (unsigned long long)index);
	return json_pack("{s:s, s:I, s:I, s:I, s:i, s:s, s:s, s:b}", "id", uuid, "index",
		(json_int_t)index, "count", (json_int_t)wish->split, "devmem",
		(json_int_t)wish->memory_mib, "devcore", 100, "type", wish->type, "mode",
		"hami-core", "health", 1);
}

static json_t *make(const struct world *world, struct wish *wish)
{
	json_t *devices = json_array(), *node;
	_cleanup_free_ char *text = NULL;

	if (!wish->split)
		wish->split = SPLIT_OTHERWISE;
	for (uint64_t i = 0; i < wish->gpus; i++)
		json_array_append_new(devices, describe_device(wish, i));
	text = json_dumps(devices, JSON_COMPACT);
	node = json_pack("{s:s, s:{s:s, s:{s:s}, s:{s:s}}, s:{s:{s:I}}}", "kind", "Node",
		"metadata", "name", wish->name, "labels", "kubernetes.io/hostname", wish->name,
		"annotations", REGISTRY_DEVICES, text ? text : "", "status", "allocatable",
		world->settings->rules.demand.count, (json_int_t)(wish->gpus * wish->split));
	if (json_array_size(devices) != wish->gpus || !text) {
		json_decref(node);
		node = NULL;
	}
	json_decref(devices);
	return node;
}

/* The same devices, healthy or not; nothing is kept off it. */
static json_t *copy(const struct world *world, struct wish *wish, struct err *err)
{
	const struct world_node *like = world_find_node(world, wish->like);
	json_t *node, *metadata, *labels;
	char name[300];

	if (!like) {
		refuse(err, "like", wish->like, "the name of a node that is known is right");
		return NULL;
	}
	node = json_deep_copy(like->object);
	metadata = json_object_get(node, "metadata");
	labels = json_object_get(metadata, "labels");
	snprintf(name, sizeof(name), "like-%.250s", wish->like);
	if (json_object_set_new(metadata, "name", json_string(wish->name ? wish->name : name)) ||
		(json_object_get(labels, "kubernetes.io/hostname") &&
			json_object_set(labels, "kubernetes.io/hostname",
				json_object_get(metadata, "name")))) {
		json_decref(node);
		err_set(err, ENOMEM, "no memory");
		return NULL;
	}
	json_object_del(metadata, "uid");
	json_object_del(json_object_get(node, "spec"), "unschedulable");
	json_object_del(json_object_get(metadata, "annotations"), REGISTRY_CORDON);
	return node;
}

int world_add_node(struct world *world, const char *text, struct err *err)
{
	_cleanup_free_ char *parts = strdup(text);
	struct wish wish = {0};
	json_t *node;
	int result = parts ? parse(parts, &wish, err) : err_set(err, ENOMEM, "no memory");

	if (result)
		return result;
	node = wish.like ? copy(world, &wish, err) : make(world, &wish);
	if (!node)
		return *err->text ? -EINVAL : err_set(err, ENOMEM, "no memory");
	if (world_find_node(world, object_text(node, "name"))) {
		result = refuse(
			err, "name", object_text(node, "name"), "a name that no node has is right");
		json_decref(node);
		return result;
	}
	return world_enter_node(world, node, true, err);
}
