/* SPDX-License-Identifier: Apache-2.0 */
/* Of device-config.yaml, what bears on a request: keys of the section `nvidia`. The rest is the device plugin's. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/parse.h"
#include "scheduler/settings.h"

#define DEPTH_MOST 200

struct settings_text {
	struct settings_text *next;
	char text[];
};

enum kind { KIND_TEXT, KIND_WHOLE, KIND_SWITCH };

static const struct row {
	const char *key, *otherwise;
	enum kind kind;
	size_t offset;
} rows[] = {
#define ROW(key, field, kind, otherwise)                                                \
	{                                                                               \
		(key), (otherwise), KIND_##kind, offsetof(struct settings, rules.field) \
	}
	ROW("resourceCountName", demand.count, TEXT, "nvidia.com/gpu"),
	ROW("resourceMemoryName", demand.memory, TEXT, "nvidia.com/gpumem"),
	ROW("resourceMemoryPercentageName", demand.percentage, TEXT,
		"nvidia.com/gpumem-percentage"),
	ROW("resourceCoreName", demand.cores, TEXT, "nvidia.com/gpucores"),
	ROW("resourcePriorityName", priority, TEXT, "nvidia.com/priority"),
	ROW("defaultMemory", demand.default_memory_mib, WHOLE, "0"),
	ROW("defaultCores", demand.default_cores, WHOLE, "0"),
	ROW("defaultGPUNum", default_count, WHOLE, "1"),
	ROW("memoryFactor", demand.memory_factor, WHOLE, "1"),
	ROW("overwriteEnv", hides_devices, SWITCH, "false"),
	ROW("gpuCorePolicy", core_policy, TEXT, "default"),
	ROW("runtimeClassName", runtime_class, TEXT, ""),
};

static int keep(struct settings *settings, const char *text, const char **ret_kept)
{
	struct settings_text *kept = malloc(sizeof(*kept) + strlen(text) + 1);

	if (!kept)
		return -ENOMEM;
	strcpy(kept->text, text);
	kept->next = settings->texts;
	settings->texts = kept;
	*ret_kept = kept->text;
	return 0;
}

void settings_deinit(struct settings *settings)
{
	while (settings->texts) {
		struct settings_text *next = settings->texts->next;

		free(settings->texts);
		settings->texts = next;
	}
	free(settings->users);
	settings->users = NULL;
}

static int set_whole(const char *text, int64_t *ret_value)
{
	bool is_negative = *text == '-';
	uint64_t value;

	if (parse_u64(text + is_negative, INT32_MAX, &value))
		return -EINVAL;
	*ret_value = is_negative ? -(int64_t)value : (int64_t)value;
	return 0;
}

static int set(struct settings *settings, const struct row *row, const char *text)
{
	void *field = (char *)settings + row->offset;

	if (row->kind == KIND_WHOLE)
		return set_whole(text, field);
	if (row->kind == KIND_TEXT)
		return keep(settings, text, field);
	*(bool *)field = !strcmp(text, "true") || !strcmp(text, "True") || !strcmp(text, "1");
	return 0;
}

static const char *text_of(const yaml_node_t *node)
{
	return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value
						      : NULL;
}

/* The value of a key; NULL where there is none, or where it stands for nothing. */
static yaml_node_t *value_of(yaml_document_t *document, const yaml_node_t *mapping, const char *key)
{
	if (!mapping || mapping->type != YAML_MAPPING_NODE)
		return NULL;
	for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
		pair < mapping->data.mapping.pairs.top; pair++) {
		const char *name = text_of(yaml_document_get_node(document, pair->key));
		yaml_node_t *value = yaml_document_get_node(document, pair->value);

		if (name && !strcmp(name, key))
			return text_of(value) &&
					       value->data.scalar.style ==
						       YAML_PLAIN_SCALAR_STYLE &&
					       (!*text_of(value) || !strcmp(text_of(value), "~") ||
						       !strcmp(text_of(value), "null"))
				       ? NULL
				       : value;
	}
	return NULL;
}

static int read_section(struct settings *settings, yaml_document_t *document, struct err *err)
{
	const yaml_node_t *section =
		value_of(document, yaml_document_get_root_node(document), "nvidia");

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const yaml_node_t *value = value_of(document, section, rows[i].key);
		const char *text = value ? text_of(value) : rows[i].otherwise;
		int result = text ? set(settings, &rows[i], text) : -EINVAL;

		if (result == -ENOMEM)
			return err_set(err, ENOMEM, "no memory");
		if (result)
			return err_set(err, EINVAL, "%.150s, line %zu: nvidia.%s is not understood",
				settings->config_file, value->start_mark.line + 1, rows[i].key);
	}
	return 0;
}

/* The time that libyaml takes grows with the square of the brackets that are open. Those in texts are counted, too. */
static bool is_too_deep(const char *text, size_t bytes)
{
	unsigned open = 0;

	for (size_t i = 0; i < bytes && open <= DEPTH_MOST; i++) {
		open += text[i] == '[' || text[i] == '{';
		open -= open && (text[i] == ']' || text[i] == '}');
	}
	return open > DEPTH_MOST;
}

int settings_read_file(struct settings *settings, const char *text, size_t bytes, struct err *err)
{
	yaml_document_t document;
	yaml_parser_t parser;
	int result;

	if (is_too_deep(text, bytes))
		return err_set(err, EINVAL, "%.200s: more than %d brackets are open at once",
			settings->config_file, DEPTH_MOST);
	if (!yaml_parser_initialize(&parser))
		return err_set(err, ENOMEM, "no memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, bytes);
	if (yaml_parser_load(&parser, &document)) {
		result = read_section(settings, &document, err);
		yaml_document_delete(&document);
	} else {
		result = err_set(err, EINVAL, "%.200s, line %zu: %s", settings->config_file,
			parser.problem_mark.line + 1, parser.problem ? parser.problem : "no YAML");
	}
	yaml_parser_delete(&parser);
	return result;
}
