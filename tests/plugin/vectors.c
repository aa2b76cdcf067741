/* SPDX-License-Identifier: Apache-2.0 */
/* The recordings of tests/plugin/vectors. */
#include "tests/plugin/vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/cmocka_ready.h"

#define LINE_BYTES (1u << 20)

static const struct {
	const char *what, *by;
} placeholders[] = {
	{"{gpu0}", VECTOR_GPU0},
	{"{gpu1}", VECTOR_GPU1},
	{"{uid}", VECTOR_UID},
	{"{uuid4}", VECTOR_UNIQUE},
	{"{unix}", "1795325538"},
	{"{rfc3339}", "2026-11-22T05:32:18Z"},
	{"{t}", "/t"},
};

/* The line with all placeholders filled in, which the caller frees. */
static char *fill_in(const char *line)
{
	char *made = malloc(2 * LINE_BYTES), *to = made;

	assert_non_null(made);
	while (*line) {
		size_t i = 0;

		while (i < ARRAY_SIZE(placeholders) &&
			strncmp(line, placeholders[i].what, strlen(placeholders[i].what)) != 0)
			i++;
		if (i == ARRAY_SIZE(placeholders)) {
			*to++ = *line++;
			continue;
		}
		to = stpcpy(to, placeholders[i].by);
		line += strlen(placeholders[i].what);
	}
	*to = '\0';
	return made;
}

void vectors_open(const char *path, struct vectors *ret_vectors)
{
	_cleanup_file_ FILE *file = fopen(path, "r");
	_cleanup_free_ char *line = malloc(LINE_BYTES);

	if (!file)
		fail_msg("%s is not there", path);
	assert_non_null(line);
	ret_vectors->count = 0;
	while (fgets(line, LINE_BYTES, file)) {
		_cleanup_free_ char *filled = fill_in(line);
		json_t *vector = json_loads(filled, 0, NULL);

		assert_non_null(vector);
		assert_true(ret_vectors->count < VECTORS_MOST);
		ret_vectors->all[ret_vectors->count++] = vector;
	}
}

void vectors_close(struct vectors *vectors)
{
	for (size_t i = 0; i < vectors->count; i++)
		json_decref(vectors->all[i]);
	vectors->count = 0;
}

const json_t *vectors_find(const struct vectors *vectors, const char *id)
{
	for (size_t i = 0; i < vectors->count; i++)
		if (!strcmp(vector_text(vectors->all[i], "id"), id))
			return vectors->all[i];
	fail_msg("no recording is %s", id);
	return NULL;
}

const json_t *vector_answer(const json_t *vector, size_t number)
{
	const json_t *response = json_array_get(json_object_get(vector, "response"), number);

	return json_array_get(json_object_get(response, "container_responses"), 0);
}

const char *vector_text(const json_t *vector, const char *key)
{
	return json_string_value(json_object_get(vector, key));
}

void vector_read_inventory(const json_t *vector, struct inventory *ret_inventory)
{
	static const struct {
		const char *board, *name;
		unsigned count, mib;
	} boards[] = {{"h100", "NVIDIA H100 80GB HBM3", 1, 81559},
		{"h200x2", "NVIDIA H200", 2, 143771}, {"t4", "Tesla T4", 1, 15360}};
	const char *board = vector_text(vector, "board");
	size_t at = 0;

	while (at < ARRAY_SIZE(boards) && strcmp(boards[at].board, board) != 0)
		at++;
	assert_true(at < ARRAY_SIZE(boards));
	memset(ret_inventory, 0, sizeof(*ret_inventory));
	ret_inventory->count = boards[at].count;
	for (unsigned i = 0; i < boards[at].count; i++) {
		struct inventory_device *d = &ret_inventory->device[i];

		d->index = d->minor = i;
		d->total_bytes = (uint64_t)boards[at].mib << 20;
		strcpy(d->uuid, placeholders[i].by);
		strcpy(d->name, boards[at].name);
	}
}

/* The Helm chart's values. */
static const struct {
	const char *key, *value;
} chart[] = {
	{"resourceCountName", "nvidia.com/gpu"},
	{"resourceMemoryName", "nvidia.com/gpumem"},
	{"resourceMemoryPercentageName", "nvidia.com/gpumem-percentage"},
	{"resourceCoreName", "nvidia.com/gpucores"},
	{"resourcePriorityName", "nvidia.com/priority"},
	{"overwriteEnv", "false"},
	{"defaultMemory", "0"},
	{"defaultCores", "0"},
	{"defaultGPUNum", "1"},
	{"memoryFactor", "1"},
	{"deviceSplitCount", "10"},
	{"deviceMemoryScaling", "1"},
	{"deviceCoreScaling", "1"},
	{"preConfiguredDeviceMemory", "0"},
	{"libCudaLogLevel", "1"},
	{"enableNumaTopology", "false"},
	{"gpuCorePolicy", "default"},
	{"runtimeClassName", "\"\""},
};

static void write_value(FILE *out, const char *key, const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	assert_non_null(text);
	fprintf(out, "  %s: %s\n", key, text);
	free(text);
}

static char *device_text_of(const json_t *config)
{
	json_t *changed = json_object_get(config, "device_config_changed");
	const char *key;
	json_t *value;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	fputs("nvidia:\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(chart); i++)
		if (!json_object_get(changed, chart[i].key))
			fprintf(out, "  %s: %s\n", chart[i].key, chart[i].value);
	fputs("  migProfileAllowlist:\n    - models: [\"A30\"]\n      profiles: [1g.6gb, "
	      "2g.12gb]\n",
		out);
	json_object_foreach(changed, key,
		value) if (!json_is_string(value) || strcmp(json_string_value(value), "ABSENT") !=
							     0) write_value(out, key, value);
	fputs("cambricon:\n  resourceCountName: cambricon.com/vmlu\n", out);
	fclose(out);
	return text;
}

static char *node_text_of(const json_t *config)
{
	json_t *node = json_object_get(config, "config_json"), *whole;
	char *text;

	if (json_is_null(node))
		return NULL;
	if (json_is_string(node))
		return strdup(json_string_value(node));
	whole = json_pack("{sO}", "nodeconfig", node);
	text = json_dumps(whole, 0);
	json_decref(whole);
	return text;
}

void vector_make_files(const json_t *vector, char **ret_device, char **ret_node)
{
	const json_t *config = json_object_get(vector, "config");
	bool is_broken = !strcmp(vector_text(vector, "id"), "reg-noyaml");

	*ret_device = is_broken ? strdup("nvidia: [\n}") : device_text_of(config);
	*ret_node = node_text_of(config);
}

static const json_t *environment;

static char *look_up(const char *name)
{
	const json_t *given = json_object_get(environment, name);

	if (given)
		return (char *)json_string_value(given);
	if (!strcmp(name, "NODE_NAME"))
		return (char *)"node1";
	return !strcmp(name, "HOOK_PATH") ? (char *)"/usr/local" : NULL;
}

int vector_read_config(const json_t *vector, struct config **ret_config, struct err *err)
{
	const json_t *config = json_object_get(vector, "config");
	const json_t *flag_list = json_object_get(config, "flags");
	_cleanup_free_ char *device = NULL, *node = NULL;
	struct config_files files;
	char *argv[16] = {
		(char *)"vgpu-device-plugin", (char *)"--config-file=/device-config.yaml"};
	struct flags flags;
	int argc = 2, result;

	vector_make_files(vector, &device, &node);
	files = (struct config_files){device, node, strlen(device), node ? strlen(node) : 0};
	for (size_t i = 0; i < json_array_size(flag_list); i++)
		argv[argc++] = (char *)json_string_value(json_array_get(flag_list, i));
	environment = json_object_get(config, "env");
	result = flags_read(argc, argv, look_up, &flags, err);
	return result ? result : config_read(&flags, &files, ret_config, err);
}
