/* SPDX-License-Identifier: Apache-2.0 */
/* /config/config.json: what is different on single nodes. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/config_keys.h"

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
	static const char *const words[] = {
		[CONFIG_HAMI_CORE] = "hami-core", [CONFIG_MIG] = "mig", [CONFIG_MPS] = "mps"};
	const json_t *value = value_of(entry, "operatingmode");
	const char *text = json_string_value(value);

	if (!value || (text && !*text))
		return 0;
	for (unsigned i = 0; text && i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i])) {
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

static int read_filtered_uuids(struct file *file, const json_t *list)
{
	struct config *config = file->config;
	size_t count = json_array_size(list);
	const char **uuids = calloc(count + 1, sizeof(*uuids));

	if (!uuids)
		return -ENOMEM;
	free(config->filtered_uuids);
	config->filtered_uuids = uuids;
	config->filtered_uuid_count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i));

		if (!text)
			return refuse(file, "filterdevices.uuid", "a list of UUIDs");
		uuids[i] = config_keep(config, text, strlen(text));
		if (!uuids[i])
			return -ENOMEM;
		config->filtered_uuid_count++;
	}
	return 0;
}

static int read_filtered_indexes(struct file *file, const json_t *list)
{
	struct config *config = file->config;
	size_t count = json_array_size(list);
	int64_t *indexes = calloc(count + 1, sizeof(*indexes));

	if (!indexes)
		return -ENOMEM;
	free(config->filtered_indexes);
	config->filtered_indexes = indexes;
	config->filtered_index_count = 0;
	for (size_t i = 0; i < count; i++) {
		const json_t *item = json_array_get(list, i);

		if (!json_is_integer(item) || json_integer_value(item) < 0)
			return refuse(file, "filterdevices.index", "a list of whole numbers");
		indexes[i] = json_integer_value(item);
		config->filtered_index_count++;
	}
	return 0;
}

/* A filter that is not understood must not open what it closes. */
static int read_filters(struct file *file, const json_t *entry)
{
	const json_t *filters = value_of(entry, "filterdevices"), *uuids, *indexes;
	int result = 0;

	if (!filters)
		return 0;
	if (!json_is_object(filters))
		return refuse(file, "filterdevices", "an object with lists `uuid` and `index`");
	uuids = value_of(filters, "uuid");
	indexes = value_of(filters, "index");
	if ((uuids && !json_is_array(uuids)) || (indexes && !json_is_array(indexes)))
		return refuse(file, "filterdevices", "`uuid` and `index` are lists");
	if (uuids)
		result = read_filtered_uuids(file, uuids);
	if (!result && indexes)
		result = read_filtered_indexes(file, indexes);
	return result;
}

static int read_entry(struct file *file, const json_t *entry)
{
	int result = read_keys(file, entry);

	if (!result)
		result = read_mode(file, entry);
	if (!result)
		result = read_preferred(file, entry);
	return result ? result : read_filters(file, entry);
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
