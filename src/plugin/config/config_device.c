/* SPDX-License-Identifier: Apache-2.0 */
/* device-config.yaml: the sections `nvidia` and `cantaloupe`, and the flags of NVIDIA's plugin in the same file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "plugin/config/config_keys.h"

#define LOG_TOPIC  LOG_OPTIONS
#define DEPTH_MOST 200
#define KEYS_MOST  1000

struct file {
	struct config *config;
	const char *name;
	yaml_document_t document;
	struct err *err;
};

static const char *text_of(const yaml_node_t *node)
{
	return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value
						      : NULL;
}

/* Also what stands for nothing, as "key:" and "key: null" do. */
static bool is_nothing(const yaml_node_t *node)
{
	const char *text = text_of(node);

	return text && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*text || !strcmp(text, "~") || !strcmp(text, "null") || !strcmp(text, "Null") ||
		       !strcmp(text, "NULL"));
}

static int refuse(const struct file *file, const yaml_node_t *node, const char *section,
	const char *key, const char *right)
{
	const char *text = text_of(node);

	return err_set(file->err, EINVAL, "%.150s, line %zu: %s%s%.60s%s%.60s%s: %s", file->name,
		node->start_mark.line + 1, section, *section ? "." : "", key, text ? " is '" : "",
		text ? text : "", text ? "'" : "", right);
}

static yaml_node_t *node_at(struct file *file, yaml_node_item_t item)
{
	return yaml_document_get_node(&file->document, item);
}

/* The value of a key in a mapping; NULL where there is none, or where it stands for nothing. */
static yaml_node_t *value_of(struct file *file, const yaml_node_t *mapping, const char *key)
{
	if (!mapping || mapping->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
		pair < mapping->data.mapping.pairs.top; pair++) {
		const char *name = text_of(node_at(file, pair->key));

		if (name && !strcmp(name, key)) {
			yaml_node_t *value = node_at(file, pair->value);

			return is_nothing(value) ? NULL : value;
		}
	}
	return NULL;
}

/* Of two that are alike, nobody knows which is meant. */
static int check_keys(struct file *file, const yaml_node_t *mapping, const char *section)
{
	const yaml_node_pair_t *start = mapping->data.mapping.pairs.start;
	size_t count = (size_t)(mapping->data.mapping.pairs.top - start);

	if (count > KEYS_MOST)
		return refuse(file, mapping, section, "", "there are too many keys");
	for (size_t i = 0; i < count; i++) {
		const char *name = text_of(node_at(file, start[i].key));

		if (!name)
			return refuse(
				file, node_at(file, start[i].key), section, "", "a key is no text");
		for (size_t k = 0; k < i; k++)
			if (!strcmp(name, text_of(node_at(file, start[k].key))))
				return refuse(file, node_at(file, start[i].key), section, "",
					"the key is there twice");
	}
	return 0;
}

/* The list of texts under a key, ended with NULL; an empty one where the key is not there. */
static int read_texts(
	struct file *file, const yaml_node_t *mapping, const char *key, const char ***ret_texts)
{
	yaml_node_t *list = value_of(file, mapping, key);
	size_t count = 0, used = 0;
	const char **texts;

	if (!list || list->type != YAML_SEQUENCE_NODE)
		return refuse(file, list ? list : mapping, "nvidia.migProfileAllowlist", key,
			"a list of names is right");
	count = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
	texts = calloc(count + 1, sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	*ret_texts = texts;
	for (size_t i = 0; i < count; i++) {
		const char *text = text_of(node_at(file, list->data.sequence.items.start[i]));

		if (!text || !*text)
			return refuse(file, list, "nvidia.migProfileAllowlist", key,
				"a list of names is right");
		texts[used] = config_keep(file->config, text, strlen(text));
		if (!texts[used++])
			return -ENOMEM;
	}
	return used ? 0 : refuse(file, list, "nvidia.migProfileAllowlist", key, "it has no entry");
}

static int read_profiles(struct file *file, const yaml_node_t *section)
{
	yaml_node_t *list = value_of(file, section, "migProfileAllowlist");
	struct config *config = file->config;
	size_t count;

	if (!list)
		return 0;
	if (list->type != YAML_SEQUENCE_NODE)
		return refuse(file, list, "nvidia", "migProfileAllowlist", "a list is right");
	count = (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
	config->profiles = calloc(count + 1, sizeof(*config->profiles));
	if (!config->profiles)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct config_profiles *entry = &config->profiles[config->profile_count++];
		yaml_node_t *node = node_at(file, list->data.sequence.items.start[i]);
		int result = read_texts(file, node, "models", &entry->models);

		if (!result)
			result = read_texts(file, node, "profiles", &entry->profiles);
		for (size_t k = 0; !result && entry->profiles[k]; k++) {
			size_t digits = strspn(entry->profiles[k], "0123456789");

			if (!digits || strncmp(entry->profiles[k] + digits, "g.", 2))
				result = refuse(file, node, "nvidia.migProfileAllowlist",
					"profiles", "a name like 1g.10gb is right");
		}
		if (result)
			return result;
	}
	return 0;
}

static int set(struct file *file, const struct key_row *row, const yaml_node_t *value)
{
	const char *text = text_of(value), *right = "one value is right";
	int result = text ? config_set(file->config, row, text, &right) : -EINVAL;

	return result == -EINVAL ? refuse(file, value, row->section, row->key, right) : result;
}

static bool is_known(const char *section, const char *key)
{
	if (!strcmp(section, "nvidia") && !strcmp(key, "migProfileAllowlist"))
		return true;
	for (size_t i = 0; i < config_key_count; i++)
		if (!strcmp(config_keys[i].section, section) && !strcmp(config_keys[i].key, key))
			return true;
	return false;
}

/* A newer chart may have keys that this version does not know, so they are no fault. */
static void say_unknown(struct file *file, const yaml_node_t *mapping, const char *section)
{
	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
		pair < mapping->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = node_at(file, pair->key);

		if (!is_known(section, text_of(key)))
			log_warn("a key of the configuration is not known and says nothing",
				STR("file", file->name), U64("line", key->start_mark.line + 1),
				STR("section", section), STR("key", text_of(key)));
	}
}

static int read_section(struct file *file, const char *section)
{
	yaml_node_t *root = yaml_document_get_root_node(&file->document);
	yaml_node_t *mapping = value_of(file, root, section);
	int result;

	if (!mapping)
		return 0;
	if (mapping->type != YAML_MAPPING_NODE)
		return refuse(file, mapping, "", section, "keys with values are right");
	result = check_keys(file, mapping, section);
	for (size_t i = 0; i < config_key_count && !result; i++) {
		const struct key_row *row = &config_keys[i];
		yaml_node_t *value =
			strcmp(row->section, section) ? NULL : value_of(file, mapping, row->key);

		if (value)
			result = set(file, row, value);
	}
	if (!result)
		say_unknown(file, mapping, section);
	return result;
}

/* Where NVIDIA's plugin has in this file what it also takes as a flag. */
static const struct place {
	const char *path[3];
	enum flag flag;
} places[] = {
	{{"flags", "migStrategy"}, FLAG_mig_strategy},
	{{"flags", "failOnInitError"}, FLAG_fails_on_init_error},
	{{"flags", "nvidiaDriverRoot"}, FLAG_driver_root},
	{{"flags", "nvidiaDevRoot"}, FLAG_dev_root},
	{{"flags", "gdrcopyEnabled"}, FLAG_has_gdrcopy},
	{{"flags", "gdsEnabled"}, FLAG_has_gds},
	{{"flags", "mofedEnabled"}, FLAG_has_mofed},
	{{"flags", "deviceDiscoveryStrategy"}, FLAG_discovery},
	{{"flags", "plugin", "passDeviceSpecs"}, FLAG_passes_device_files},
	{{"flags", "plugin", "deviceListStrategy"}, FLAG_device_list_text},
	{{"flags", "plugin", "deviceIDStrategy"}, FLAG_device_id},
	{{"flags", "plugin", "cdiAnnotationPrefix"}, FLAG_cdi_prefix},
	{{"flags", "plugin", "nvidiaCTKPath"}, FLAG_cdi_hook},
	{{"flags", "plugin", "containerDriverRoot"}, FLAG_driver_root_here},
	{{"imex", "channelIDs"}, FLAG_imex_text},
	{{"imex", "required"}, FLAG_is_imex_required},
};

/* A value, or a list of them with commas. */
static int read_flag(
	struct file *file, const yaml_node_t *value, const char *key, const char **flag)
{
	char joined[256];
	const char *text = text_of(value);
	size_t used = 0, length;

	if (value->type == YAML_MAPPING_NODE)
		return refuse(file, value, "flags", key, "a value, or a list of values, is right");
	if (text)
		used = (size_t)snprintf(joined, sizeof(joined), "%s", text);
	for (size_t i = 0;
		!text && value->data.sequence.items.start + i < value->data.sequence.items.top &&
		used < sizeof(joined);
		i++) {
		const char *item = text_of(node_at(file, value->data.sequence.items.start[i]));

		if (!item)
			return refuse(file, value, "flags", key, "a list of values is right");
		used += (size_t)snprintf(
			joined + used, sizeof(joined) - used, "%s%s", i ? "," : "", item);
	}
	if (used >= sizeof(joined))
		return refuse(file, value, "flags", key, "it is too long");
	length = used;
	*flag = length ? config_keep(file->config, joined, length) : NULL;
	return length && !*flag ? -ENOMEM : 0;
}

static int read_flags(struct file *file, const char *flags[FLAG_COUNT])
{
	yaml_node_t *root = yaml_document_get_root_node(&file->document);
	int result = 0;

	for (size_t i = 0; i < ARRAY_SIZE(places) && !result; i++) {
		yaml_node_t *node = root;

		for (size_t k = 0; k < ARRAY_SIZE(places[i].path) && places[i].path[k] && node; k++)
			node = value_of(file, node, places[i].path[k]);
		if (node)
			result = read_flag(file, node, places[i].path[places[i].path[2] ? 2 : 1],
				&flags[places[i].flag]);
	}
	return result;
}

/* How NVIDIA's plugin counts slices. To be silent about it would offer another number of them than is asked for. */
static int refuse_sharing(struct file *file, const yaml_node_t *root)
{
	static const char *const ways[] = {"timeSlicing", "mps"};
	const yaml_node_t *sharing = value_of(file, root, "sharing"), *way;

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		way = value_of(file, sharing, ways[i]);
		if (way)
			return refuse(file, way, "sharing", ways[i],
				i ? "operatingmode mps of the node is right"
				  : "nvidia.deviceSplitCount says how many slices a device has");
	}
	return 0;
}

static int read_document(struct file *file, const char *flags[FLAG_COUNT])
{
	yaml_node_t *root = yaml_document_get_root_node(&file->document);
	int result;

	if (!root || is_nothing(root))
		return 0; /* an empty file says nothing */
	if (root->type != YAML_MAPPING_NODE)
		return refuse(file, root, "", "", "sections with keys are right");
	result = check_keys(file, root, "");
	if (!result)
		result = read_section(file, "nvidia");
	if (!result)
		result = read_profiles(file, value_of(file, root, "nvidia"));
	if (!result)
		result = read_section(file, "cantaloupe");
	if (!result)
		result = refuse_sharing(file, root);
	return result ? result : read_flags(file, flags);
}

/* The time that libyaml takes grows with the square of the brackets that are open. Those in texts are counted, too. */
static bool is_too_deep(const char *text, size_t bytes)
{
	unsigned open = 0;

	for (size_t i = 0; i < bytes; i++) {
		open += text[i] == '[' || text[i] == '{';
		open -= open && (text[i] == ']' || text[i] == '}');
		if (open > DEPTH_MOST)
			return true;
	}
	return false;
}

int config_read_device_file(struct config *config, const char *text, size_t bytes,
	const char *flags[FLAG_COUNT], struct err *err)
{
	struct file file = {.config = config, .name = config->config_file, .err = err};
	yaml_parser_t parser;
	int result;

	if (is_too_deep(text, bytes))
		return err_set(err, EINVAL, "%.200s: more than %d brackets are open at once",
			file.name, DEPTH_MOST);
	if (!yaml_parser_initialize(&parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
	if (!yaml_parser_load(&parser, &file.document)) {
		result = err_set(err, EINVAL, "%.200s, line %zu: %s", file.name,
			parser.problem_mark.line + 1, parser.problem ? parser.problem : "no YAML");
	} else {
		result = read_document(&file, flags);
		yaml_document_delete(&file.document);
	}
	yaml_parser_delete(&parser);
	return result;
}
