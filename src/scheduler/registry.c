/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a node, as its device plugin registered them. */
#include "scheduler/registry.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "kube/assignment.h"
#include "policy/names.h"
#include "policy/topology.h"

#define CSV_FIELDS  9 /* the last two may be missing */
#define AMOUNT_MOST INT32_MAX

/* What is being read; texts go into the registry's own. */
struct reader {
	struct registry *registry;
	size_t profile_count;
	char *text_end;
	struct err *err;
};

/* Writers differ in the case of their keys. */
static const json_t *get(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);
	const char *other;
	json_t *its;

	if (value)
		return value;
	json_object_foreach((json_t *)object, other, its) if (!strcasecmp(other, key)) return its;
	return NULL;
}

/* `before`: the same text of the device before; NULL. */
static const char *keep(struct reader *reader, const char *text, size_t length, const char *before)
{
	char *kept = reader->text_end;

	if (before && !strncmp(before, text, length) && !before[length])
		return before;
	memcpy(kept, text, length);
	kept[length] = '\0';
	reader->text_end += length + 1;
	return kept;
}

/* A number from 0 to AMOUNT_MOST; 0 where it is not there. */
static bool get_amount(const json_t *object, const char *key, int64_t *ret_value)
{
	const json_t *value = get(object, key);

	*ret_value = json_integer_value(value);
	return (!value || json_is_integer(value)) && *ret_value >= 0 && *ret_value <= AMOUNT_MOST;
}

struct fit_device *registry_find(const struct registry *registry, const char *uuid)
{
	for (size_t i = 0; i < registry->node.device_count; i++)
		if (!strcmp(registry->devices[i].uuid, uuid))
			return &registry->devices[i];
	return NULL;
}

static const struct fit_device *last_device(const struct registry *registry)
{
	return registry->node.device_count ? &registry->devices[registry->node.device_count - 1]
					   : NULL;
}

/* The devices of a node are mostly of one model, whose name is there once. */
static void keep_texts(struct reader *reader, struct fit_device *device, const char *uuid,
	const char *model, const char *mode)
{
	const struct fit_device *before = last_device(reader->registry);

	device->uuid = keep(reader, uuid, strlen(uuid), NULL);
	device->model = keep(reader, model, strlen(model), before ? before->model : NULL);
	device->mode = keep(reader, mode, strlen(mode), before ? before->mode : NULL);
	device->is_mig = !strcmp(mode, "mig");
}

static int complain(struct reader *reader, size_t at, const char *what)
{
	return err_set(reader->err, EINVAL, "device %zu of %s: %s", at, REGISTRY_DEVICES, what);
}

static bool read_places(const json_t *list, struct mig_profile *profile)
{
	const json_t *place;
	size_t i;

	json_array_foreach(list, i, place)
	{
		int64_t start, size;

		if (profile->place_count == MIG_PLACEMENTS || !get_amount(place, "start", &start) ||
			!get_amount(place, "size", &size) || start > UINT8_MAX || size > UINT8_MAX)
			return false;
		profile->places[profile->place_count] =
			(struct mig_place){(uint8_t)start, (uint8_t)size};
		if (!mig_slices(profile->places[profile->place_count++]))
			return false;
	}
	return true;
}

static bool read_profile(const json_t *object, struct mig_profile *profile)
{
	const char *name = json_string_value(get(object, "name"));
	int64_t slices;

	if (!name || !*name || strlen(name) >= sizeof(profile->name) ||
		!get_amount(object, "memoryMB", &profile->memory_mib) ||
		!get_amount(object, "core", &profile->cores) ||
		!get_amount(object, "sliceCount", &slices))
		return false;
	strcpy(profile->name, name);
	profile->slices = (unsigned)slices;
	return read_places(get(object, "placements"), profile);
}

static bool read_profiles(struct reader *reader, const json_t *list, struct fit_device *device)
{
	const json_t *object;
	size_t i;

	device->profiles = reader->registry->profiles + reader->profile_count;
	json_array_foreach(list, i,
		object) if (!read_profile(object,
				    &reader->registry
					     ->profiles[reader->profile_count +
							device->profile_count++])) return false;
	reader->profile_count += device->profile_count;
	return true;
}

/* Of the device that is being read. */
static void set_health(struct registry *registry, bool is_healthy)
{
	registry->devices[registry->node.device_count].is_healthy = is_healthy;
	registry->healthy |= (uint64_t)is_healthy << registry->node.device_count;
}

/* The device plugin of v2.10 leaves every key out whose value is zero or false. */
static int read_device(struct reader *reader, size_t at, const json_t *object)
{
	struct registry *registry = reader->registry;
	struct fit_device *device = &registry->devices[registry->node.device_count];
	const char *uuid = json_string_value(get(object, "id"));
	const char *model = json_string_value(get(object, "type"));
	const char *mode = json_string_value(get(object, "mode"));
	int64_t numa;

	if (!uuid || !*uuid)
		return complain(reader, at, "it has no id");
	if (!assignment_is_uuid(uuid))
		return complain(reader, at, "its id is none that an annotation can carry");
	if (!get_amount(object, "count", &device->all.slots) ||
		!get_amount(object, "devmem", &device->all.memory_mib) ||
		!get_amount(object, "devcore", &device->all.cores) ||
		!get_amount(object, "numa", &numa))
		return complain(reader, at,
			"count, devmem, devcore and numa are numbers from 0 to 2147483647");
	if (registry_find(registry, uuid))
		return 0;
	keep_texts(reader, device, uuid, model ? model : "", mode ? mode : "");
	set_health(registry, json_is_true(get(object, "health")));
	device->numa = (unsigned)numa;
	if (!read_profiles(reader, get(object, "migProfiles"), device))
		return complain(reader, at,
			"each of migProfiles has name, memoryMB, core, sliceCount and placements");
	registry->node.device_count++;
	return 0;
}

static int read_json(struct reader *reader, const json_t *list)
{
	const json_t *object;
	size_t i;

	if (json_array_size(list) > FIT_DEVICES)
		return err_set(reader->err, EINVAL, "%s has %zu devices, not at most %d",
			REGISTRY_DEVICES, json_array_size(list), FIT_DEVICES);
	json_array_foreach(list, i, object)
	{
		int result = read_device(reader, i, object);

		if (result)
			return result;
	}
	return 0;
}

/* The fields of one device up to its colon; returns their number, 0 where they are too many. */
static size_t split(char *line, char **ret_fields)
{
	size_t count = 0;

	for (char *field = strsep(&line, ","); field; field = strsep(&line, ",")) {
		if (count == CSV_FIELDS)
			return 0;
		ret_fields[count++] = field;
	}
	return count;
}

static bool read_csv_amount(const char *text, int64_t *ret_value)
{
	uint64_t value;

	if (parse_u64(text, AMOUNT_MOST, &value))
		return false;
	*ret_value = (int64_t)value;
	return true;
}

/* UUID,count,memory,cores,type,numa,health[,index,mode] */
static int read_csv_device(struct reader *reader, size_t at, char *line)
{
	struct registry *registry = reader->registry;
	struct fit_device *device = &registry->devices[registry->node.device_count];
	char *fields[CSV_FIELDS];
	size_t count = split(line, fields);
	int64_t numa;

	if (count != CSV_FIELDS && count != CSV_FIELDS - 2)
		return complain(reader, at, "it has not 7 or 9 fields");
	if (!*fields[0] || !read_csv_amount(fields[1], &device->all.slots) ||
		!read_csv_amount(fields[2], &device->all.memory_mib) ||
		!read_csv_amount(fields[3], &device->all.cores) ||
		!read_csv_amount(fields[5], &numa))
		return complain(reader, at, "count, memory, cores and NUMA node are numbers");
	if (registry_find(registry, fields[0]))
		return 0;
	keep_texts(reader, device, fields[0], fields[4],
		count == CSV_FIELDS ? fields[8] : "hami-core");
	set_health(registry, !strcmp(fields[6], "true"));
	device->numa = (unsigned)numa;
	registry->node.device_count++;
	return 0;
}

static int read_csv(struct reader *reader, const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *rest = copy, *line;
	size_t at = 0;

	if (!copy)
		return -ENOMEM;
	while ((line = strsep(&rest, ":"))) {
		int result;

		if (!strchr(line, ','))
			continue;
		if (at == FIT_DEVICES)
			return complain(reader, at, "there are at most 64");
		result = read_csv_device(reader, at++, line);
		if (result)
			return result;
	}
	return 0;
}

/* [{"uuid":"GPU-a","score":{"GPU-b":100}}] */
static int read_scores(struct registry *registry, const char *text)
{
	size_t count = registry->node.device_count, i;
	json_t *list = text ? json_loads(text, 0, NULL) : NULL, *value;
	const json_t *row;
	const char *uuid;

	if (!json_is_array(list)) {
		json_decref(list);
		return 0;
	}
	registry->joins = calloc(count * count, sizeof(*registry->joins));
	if (!registry->joins) {
		json_decref(list);
		return -ENOMEM;
	}
	json_array_foreach(list, i, row)
	{
		const char *from_uuid = json_string_value(get(row, "uuid"));
		const struct fit_device *from =
			from_uuid ? registry_find(registry, from_uuid) : NULL;

		json_object_foreach((json_t *)get(row, "score"), uuid, value)
		{
			const struct fit_device *to = registry_find(registry, uuid);
			json_int_t score = json_integer_value(value);

			if (from && to && from != to && score > 0)
				registry->joins[(size_t)(from - registry->devices) * count +
						(size_t)(to - registry->devices)] =
					score < TOPOLOGY_SCORE_MAX ? (uint32_t)score
								   : TOPOLOGY_SCORE_MAX;
		}
	}
	registry->node.joins = registry->joins;
	json_decref(list);
	return 0;
}

static size_t count_profiles(const json_t *list)
{
	const json_t *object;
	size_t count = 0, i;

	json_array_foreach(list, i, object) count += json_array_size(get(object, "migProfiles"));
	return count;
}

static size_t count_devices(const char *text, const json_t *list)
{
	size_t count = json_array_size(list);

	for (const char *at = list ? NULL : text; at; at = strchr(at + 1, ':'))
		count++;
	return count < FIT_DEVICES ? count : FIT_DEVICES;
}

static int read_all(struct reader *reader, const struct registry_texts *texts, const json_t *list)
{
	struct registry *registry = reader->registry;
	int result;

	/*
	 * What is kept was part of the text, and each ends with a zero where the text had a quote, a comma or a colon; but for a
	 * mode that was not said, once.
	 */
	registry->texts = reader->text_end =
		malloc(strlen(texts->devices) + 1 + sizeof("hami-core") * FIT_DEVICES);
	registry->profiles = calloc(count_profiles(list) + 1, sizeof(*registry->profiles));
	registry->devices =
		calloc(count_devices(texts->devices, list) + 1, sizeof(*registry->devices));
	if (!registry->texts || !registry->profiles || !registry->devices)
		return -ENOMEM;
	registry->node.devices = registry->devices;
	if (!list && strchr("[{", texts->devices[strspn(texts->devices, " \t\r\n")]))
		return err_set(reader->err, EINVAL, "%s is no JSON array", REGISTRY_DEVICES);
	result = list ? read_json(reader, list) : read_csv(reader, texts->devices);
	if (result)
		return result;
	if (!registry->node.device_count)
		return -ENOENT;
	for (size_t i = 0; i < registry->node.device_count; i++)
		registry->devices[i].is_cordoned =
			texts->cordon && names_have(texts->cordon, registry->devices[i].uuid);
	return read_scores(registry, texts->scores);
}

static void move(const char **text, const char *from, char *to)
{
	*text = to + (*text - from);
}

/* The JSON text is much longer than what is kept of it. */
static void trim(struct registry *registry, const char *end)
{
	size_t bytes = (size_t)(end - registry->texts);
	char *old = registry->texts, *texts = malloc(bytes);

	if (!texts)
		return;
	memcpy(texts, old, bytes);
	registry->texts = texts;
	for (size_t i = 0; i < registry->node.device_count; i++) {
		move(&registry->devices[i].uuid, old, texts);
		move(&registry->devices[i].model, old, texts);
		move(&registry->devices[i].mode, old, texts);
	}
	free(old);
}

int registry_read(
	const struct registry_texts *texts, struct registry **ret_registry, struct err *err)
{
	struct reader reader = {.err = err};
	json_t *list;
	int result;

	if (!texts->devices || !*texts->devices)
		return -ENOENT;
	reader.registry = calloc(1, sizeof(*reader.registry));
	if (!reader.registry)
		return err_set(err, ENOMEM, "no memory");
	list = json_loads(texts->devices, 0, NULL);
	if (!json_is_array(list)) {
		json_decref(list);
		list = NULL;
	}
	result = read_all(&reader, texts, list);
	json_decref(list);
	if (result) {
		registry_free(reader.registry);
		return result == -ENOMEM ? err_set(err, ENOMEM, "no memory") : result;
	}
	trim(reader.registry, reader.text_end);
	*ret_registry = reader.registry;
	return 0;
}

void registry_reset(struct registry *registry)
{
	for (size_t i = 0; i < registry->node.device_count; i++) {
		struct fit_device *device = &registry->devices[i];

		device->used = (struct rank_amount){0};
		device->mig_taken = 0;
		device->is_healthy = registry->healthy >> i & 1;
	}
}

void registry_free(struct registry *registry)
{
	if (!registry)
		return;
	free(registry->devices);
	free(registry->profiles);
	free(registry->joins);
	free(registry->texts);
	free(registry);
}
