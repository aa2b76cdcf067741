/* SPDX-License-Identifier: Apache-2.0 */
/* /config/config.json: what is different on single nodes. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/config/config_keys.h"

const char *const config_mode_names[CONFIG_MODES] = {
	[CONFIG_HAMI_CORE] = "hami-core", [CONFIG_MIG] = "mig", [CONFIG_MPS] = "mps"};

struct file {
	struct config *config;
	const char *name;
	size_t entry; /* which of the list */
	struct err *err;
};

static int refuse(const struct file *file, const char *key, const char *right)
{
	return err_set(file->err, EINVAL, "%.150s, nodeconfig[%zu] (of node %.80s), %s: %s",
		file->name, file->entry, file->config->node_name, key, right);
}

/* Keys are found in any letter case. */
static const json_t *value_of(const json_t *object, const char *key)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)object, name,
		value) if (!strcasecmp(name, key) && !json_is_null(value)) return value;
	return NULL;
}

/* A value as the text that the keys of the other file have; NULL where it is no single value. */
static const char *text_of(const json_t *value, char *buffer, size_t size)
{
	if (json_is_string(value))
		return json_string_value(value);
	if (json_is_boolean(value))
		return json_is_true(value) ? "true" : "false";
	if (json_is_integer(value))
		snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
	else if (json_is_real(value))
		snprintf(buffer, size, "%.17g", json_real_value(value));
	else
		return NULL;
	return buffer;
}

/* Zero stands in these files where nothing is meant. */
static bool says_nothing(const struct key_row *row, const json_t *value)
{
	bool is_number = row->kind == KEY_WHOLE || row->kind == KEY_REAL;

	return (is_number && json_is_number(value) && json_number_value(value) == 0) ||
	       (json_is_string(value) && !*json_string_value(value));
}

static int read_keys(struct file *file, const json_t *entry)
{
	for (size_t i = 0; i < config_key_count; i++) {
		const struct key_row *row = &config_keys[i];
		const json_t *value = row->is_of_nodes ? value_of(entry, row->key) : NULL;
		const char *text, *right = "one value is right";
		char buffer[64];
		int result;

		if (!value || says_nothing(row, value))
			continue;
		text = text_of(value, buffer, sizeof(buffer));
		result = text ? config_set(file->config, row, text, &right) : -EINVAL;
		if (result)
			return result == -EINVAL ? refuse(file, row->key, right) : result;
	}
	return 0;
}

static int read_mode(struct file *file, const json_t *entry)
{
	const json_t *value = value_of(entry, "operatingmode");
	const char *text = json_string_value(value);

	if (!value || (text && !*text))
		return 0;
	for (unsigned i = 0; text && i < CONFIG_MODES; i++)
		if (!strcmp(text, config_mode_names[i])) {
			file->config->mode = i;
			return 0;
		}
	return refuse(file, "operatingmode", "hami-core, mig or mps");
}

static int read_preferred(struct file *file, const json_t *entry)
{
	const json_t *value = value_of(entry, "enablegetpreferredallocation");

	if (value && !json_is_boolean(value))
		return refuse(file, "enablegetpreferredallocation", "true or false");
	if (value)
		file->config->has_preferred_allocation = json_is_true(value);
	return 0;
}

static int refuse_list(
	const struct file *file, const char *key, const char *list, const char *right)
{
	char whole[64];

	snprintf(whole, sizeof(whole), "%s.%s", key, list);
	return refuse(file, whole, right);
}

static int read_uuids(
	struct file *file, const char *key, const json_t *list, struct config_devices *devices)
{
	size_t count = json_array_size(list);
	const char **uuids = calloc(count + 1, sizeof(*uuids));

	if (!uuids)
		return -ENOMEM;
	free(devices->uuids);
	devices->uuids = uuids;
	devices->uuid_count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (!text)
			return refuse_list(file, key, "uuid", "a list of UUIDs");
		uuids[i] = config_keep(file->config, text, strlen(text));
		if (!uuids[i])
			return -ENOMEM;
		devices->uuid_count++;
	}
	return 0;
}

static int read_indexes(
	struct file *file, const char *key, const json_t *list, struct config_devices *devices)
{
	size_t count = json_array_size(list);
	int64_t *indexes = calloc(count + 1, sizeof(*indexes));

	if (!indexes)
		return -ENOMEM;
	free(devices->indexes);
	devices->indexes = indexes;
	devices->index_count = 0;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(list, i);

		if (!json_is_integer(item) || json_integer_value(item) < 0)
			return refuse_list(file, key, "index", "a list of whole numbers");
		indexes[i] = json_integer_value(item);
		devices->index_count++;
	}
	return 0;
}

/* A list that is not understood must not open what it closes. */
static int read_devices(
	struct file *file, const char *key, const json_t *value, struct config_devices *devices)
{
	const json_t *uuids, *indexes;
	int result = 0;

	if (!value)
		return 0;
	if (!json_is_object(value))
		return refuse(file, key, "an object with lists `uuid` and `index`");
	uuids = value_of(value, "uuid");
	indexes = value_of(value, "index");
	if ((uuids && !json_is_array(uuids)) || (indexes && !json_is_array(indexes)))
		return refuse(file, key, "`uuid` and `index` are lists");
	if (uuids)
		result = read_uuids(file, key, uuids, devices);
	return !result && indexes ? read_indexes(file, key, indexes, devices) : result;
}

static int read_device_modes(struct file *file, const json_t *entry)
{
	const json_t *modes = value_of(entry, "devicemodes");
	int result = 0;

	if (modes && !json_is_object(modes))
		return refuse(file, "devicemodes", "an object with hami-core, mig, mps");
	for (unsigned i = 0; modes && i < CONFIG_MODES && !result; i++)
		result = read_devices(file, "devicemodes", value_of(modes, config_mode_names[i]),
			&file->config->of_mode[i]);
	return result;
}

static int read_entry(struct file *file, const json_t *entry)
{
	int result = read_keys(file, entry);

	if (!result)
		result = read_mode(file, entry);
	if (!result)
		result = read_preferred(file, entry);
	if (!result)
		result = read_device_modes(file, entry);
	return result ? result
		      : read_devices(file, "filterdevices", value_of(entry, "filterdevices"),
				&file->config->filtered);
}

static int read_entries(struct file *file, const json_t *root)
{
	const json_t *list = value_of(root, "nodeconfig");
	int result = 0;

	if (!json_is_object(root) || (list && !json_is_array(list)))
		return err_set(file->err, EINVAL,
			"%.200s: an object with a list `nodeconfig` is right", file->name);
	for (file->entry = 0; file->entry < json_array_size(list) && !result; file->entry++) {
		const json_t *entry = json_array_get(list, file->entry);
		const char *name = json_string_value(value_of(entry, "name"));

		if (!json_is_object(entry) || !name)
			return refuse(file, "name", "an object with the name of a node is right");
		if (!strcmp(name, file->config->node_name))
			result = read_entry(file, entry);
	}
	return result;
}

int config_read_node_file(struct config *config, const char *text, size_t bytes, struct err *err)
{
	struct file file = {.config = config, .name = config->node_config_file, .err = err};
	json_error_t error;
	json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
	int result;

	if (!root)
		return err_set(
			err, EINVAL, "%.200s, line %d: %.150s", file.name, error.line, error.text);
	result = read_entries(&file, root);
	json_decref(root);
	return result;
}

static bool is_in(const struct config_devices *list, const struct inventory_device *device)
{
	for (size_t i = 0; i < list->uuid_count; i++)
		if (!strcmp(list->uuids[i], device->uuid))
			return true;
	for (size_t i = 0; i < list->index_count; i++)
		if (list->indexes[i] == device->index)
			return true;
	return false;
}

bool config_is_filtered(const struct config *config, const struct inventory_device *device)
{
	return is_in(&config->filtered, device);
}

enum config_mode config_mode_of(const struct config *config, const struct inventory_device *device)
{
	for (unsigned i = 0; i < CONFIG_MODES; i++)
		if (is_in(&config->of_mode[i], device))
			return (enum config_mode)i;
	return (enum config_mode)config->mode;
}

uint64_t config_memory_mib(const struct config *config, const struct inventory_device *device)
{
	uint64_t mib = device->total_bytes ? device->total_bytes >> 20
					   : (uint64_t)config->preconfigured_memory_mib;

	return (uint64_t)((double)mib * config->memory_scaling);
}
