/* SPDX-License-Identifier: Apache-2.0 */
/* Which instances of GPUs the containers of a pod have reserved. */
#include "kube/instances.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define SLICES_MOST 255
#define ID_MOST	    65535

/* A name that can be a part of a path, a command line and a list with commas. */
static bool read_name(const json_t *object, const char *key, char *ret_name, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || !*text || strlen(text) >= size ||
		text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"
				  "._+")])
		return false;
	strcpy(ret_name, text);
	return true;
}

static bool read_number(const json_t *object, const char *key, json_int_t least, json_int_t most,
	unsigned *ret_number)
{
	const json_t *value = json_object_get(object, key);
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < least || number > most)
		return false;
	*ret_number = (unsigned)number;
	return true;
}

/* NULL, or what is wrong with it. */
static const char *read_given(const json_t *object, struct instance *instance)
{
	static const char *const keys[] = {"migUUID", "gpuInstanceID", "computeInstanceID"};
	unsigned there = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		there += json_object_get(object, keys[i]) != NULL;
	if (!there)
		return NULL;
	if (there != ARRAY_SIZE(keys))
		return "has not all of migUUID, gpuInstanceID and computeInstanceID";
	if (!read_name(object, keys[0], instance->uuid, sizeof(instance->uuid)))
		return "has a migUUID that is no name";
	if (!read_number(object, keys[1], 0, ID_MOST, &instance->instance) ||
		!read_number(object, keys[2], 0, ID_MOST, &instance->compute))
		return "has a gpuInstanceID or computeInstanceID that is none";
	instance->is_given = true;
	return NULL;
}

static const char *read_entry(const json_t *object, struct instance *ret_instance)
{
	const json_t *place = json_object_get(object, "placement");
	struct instance *instance = ret_instance;

	*instance = (struct instance){.container = 0};
	if (!json_is_object(object))
		return "is no object";
	if (!read_number(object, "containerIndex", 0, ASSIGNMENT_CONTAINERS_MAX - 1,
		    &instance->container))
		return "has no containerIndex of 0 or more";
	if (!read_number(object, "deviceIndex", 0, ASSIGNMENT_DEVICES_MAX - 1, &instance->device))
		return "has no deviceIndex of 0 or more";
	if (!read_name(object, "gpuUUID", instance->gpu, sizeof(instance->gpu)))
		return "has a gpuUUID that is no name";
	if (!read_name(object, "profile", instance->profile, sizeof(instance->profile)))
		return "has a profile that is no name";
	if (!read_number(place, "start", 0, SLICES_MOST, &instance->start) ||
		!read_number(place, "size", 1, SLICES_MOST, &instance->size))
		return "has no placement with a start and a size of 1 or more";
	return read_given(object, instance);
}

static bool is_there(const struct instances *instances, const struct instance *instance)
{
	for (size_t i = 0; i < instances->count; i++)
		if (instances->at[i].container == instance->container &&
			instances->at[i].device == instance->device)
			return true;
	return false;
}

/* err is NULL where entries that are broken are left out. */
static int read_all(const json_t *list, struct instances *instances, struct err *err)
{
	const json_t *object;
	size_t i;

	json_array_foreach(list, i, object)
	{
		struct instance *instance = &instances->at[instances->count];
		const char *wrong = read_entry(object, instance);

		if (!wrong && err && is_there(instances, instance))
			wrong = "is for a device that another is for";
		if (wrong && err)
			return err_set(
				err, EINVAL, INSTANCES_ANNOTATION ": entry %zu %s", i, wrong);
		instances->count += !wrong;
	}
	return 0;
}

static int decode(const char *text, struct instances *ret_instances, struct err *err)
{
	struct instances instances = INSTANCES_NULL;
	json_t *list =
		text && *text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : json_array();
	int result = -ENOMEM;

	if (err && (!json_is_array(list) || json_array_size(list) > ASSIGNMENT_DEVICES_MAX)) {
		result = err_set(err, EINVAL, INSTANCES_ANNOTATION ": it is no list of instances");
	} else {
		instances.at = calloc(json_array_size(list) + 1, sizeof(*instances.at));
		if (instances.at)
			result = read_all(list, &instances, err);
		else if (err)
			err_set(err, ENOMEM, "no memory");
	}
	json_decref(list);
	if (result)
		instances_deinit(&instances);
	else
		*ret_instances = instances;
	return result;
}

int instances_decode(const char *text, struct instances *ret_instances, struct err *err)
{
	return decode(text, ret_instances, err);
}

int instances_decode_some(const char *text, struct instances *ret_instances)
{
	return decode(text, ret_instances, NULL);
}

void instances_deinit(struct instances *instances)
{
	free(instances->at);
	*instances = (struct instances)INSTANCES_NULL;
}

static json_t *entry_of(const struct instance *instance)
{
	json_t *entry = json_pack("{s:i, s:i, s:s, s:s, s:{s:i, s:i}}", "containerIndex",
		(int)instance->container, "deviceIndex", (int)instance->device, "gpuUUID",
		instance->gpu, "profile", instance->profile, "placement", "start",
		(int)instance->start, "size", (int)instance->size);
	json_t *given = instance->is_given ? json_pack("{s:s, s:i, s:i}", "migUUID", instance->uuid,
						     "gpuInstanceID", (int)instance->instance,
						     "computeInstanceID", (int)instance->compute)
					   : json_object();

	if (!entry || !given || json_object_update(entry, given)) {
		json_decref(entry);
		entry = NULL;
	}
	json_decref(given);
	return entry;
}

int instances_encode(const struct instances *instances, char **ret_text)
{
	json_t *list = json_array();
	int result = list ? 0 : -1;

	for (size_t i = 0; i < instances->count && !result; i++)
		result = json_array_append_new(list, entry_of(&instances->at[i]));
	*ret_text = result ? NULL : json_dumps(list, JSON_COMPACT);
	json_decref(list);
	return *ret_text ? 0 : -ENOMEM;
}
