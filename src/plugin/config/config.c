/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's configuration, made of the flags, the environment and two files. */
#include "plugin/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/option_table.h"
#include "base/parse.h"
#include "plugin/config/config_keys.h"

#define BETWEEN(a, b, c) .least = (a), .most = (b), .otherwise = (c)
#define WORDS(list)	 .words = (list)
#define ANY

/* By the names of fields: not every flag has a name on the command line. */
static const struct option_row rows[FLAG_COUNT] = {
#define FLAG(field_, name_, variable, kind_, bounds, ...)  \
	[FLAG_##field_] = {.name = #field_,                \
		.kind = OPTION_##kind_,                    \
		.offset = offsetof(struct config, field_), \
		bounds},
#define IGNORED(name)
#define ALIAS(name, of)
#include "plugin/config/flags.def"
};

struct reading {
	const char *texts[FLAG_COUNT];
	const struct flags *flags;
	struct err *err;
	bool is_wrong;
};

static const char *look_up(void *context, const char *name)
{
	const struct reading *reading = context;

	for (unsigned i = 0; i < FLAG_COUNT; i++)
		if (!strcmp(rows[i].name, name))
			return reading->texts[i];
	return NULL;
}

static int refuse_flag(const struct reading *reading, unsigned flag, const char *why)
{
	const struct flag_row *row = &flag_rows[flag];
	bool is_variable = reading->flags->is_from_environment[flag] || !row->name;

	return err_set(reading->err, EINVAL, "%s%s '%.80s': %s", is_variable ? "" : "--",
		is_variable ? row->variable : row->name, reading->texts[flag], why);
}

static void report(void *context, const struct option_fault *fault)
{
	struct reading *reading = context;
	const char *right = fault->right ? fault->right : flag_rows[fault->row - rows].meaning;

	if (reading->is_wrong)
		return;
	reading->is_wrong = true;
	refuse_flag(reading, (unsigned)(fault->row - rows), right);
}

/* Go's spellings of true and false become ours. */
static void straighten(struct reading *reading)
{
	for (unsigned i = 0; i < FLAG_COUNT; i++) {
		bool is_on;

		if (rows[i].kind == OPTION_SWITCH && parse_switch(reading->texts[i], &is_on))
			reading->texts[i] = is_on ? "true" : "false";
	}
}

static int read_lists(const struct reading *reading, struct config *config)
{
	static const char *const words[] = {
		"envvar", "volume-mounts", "cdi-annotations", "cdi-cri"};
	const char *at = config->device_list_text;

	for (;;) {
		size_t length = strcspn(at, ","), i = 0;

		while (i < ARRAY_SIZE(words) &&
			(strlen(words[i]) != length || memcmp(words[i], at, length) != 0))
			i++;
		if (i == ARRAY_SIZE(words))
			return refuse_flag(reading, FLAG_device_list_text,
				"of envvar, volume-mounts, cdi-annotations, cdi-cri, with commas");
		config->device_lists |= 1u << i;
		if (!at[length])
			return 0;
		at += length + 1;
	}
}

static int read_channels(const struct reading *reading, struct config *config)
{
	const char *at = config->imex_text;

	while (*at) {
		size_t length = strcspn(at, ",");
		char number[16] = "";
		uint64_t channel = 0;

		if (length < sizeof(number))
			memcpy(number, at, length);
		if (parse_u64(number, 2047, &channel) ||
			config->imex_channel_count == CONFIG_IMEX_MOST)
			return refuse_flag(reading, FLAG_imex_text,
				"at most 16 numbers from 0 to 2047, with commas");
		config->imex_channels[config->imex_channel_count++] = (unsigned)channel;
		at += length + (at[length] == ',');
	}
	return 0;
}

/* Without a configuration file, the two flags that HAMi's plugin ignores are all that can say it. */
static int read_without_file(const struct reading *reading, struct config *config)
{
	int64_t count;

	if (*config->split_text) {
		if (!config_read_whole(config->split_text, &count) || count < 1 ||
			count > CONFIG_SPLIT_MOST)
			return refuse_flag(reading, FLAG_split_text, "a number from 1 to 1000");
		config->split_count = count;
	}
	if (*config->resource_text) {
		if (!config_is_resource(config->resource_text))
			return refuse_flag(
				reading, FLAG_resource_text, "a name of the form DOMAIN/NAME");
		config->resource_count = config->resource_text;
	}
	return 0;
}

static int read_flags(struct reading *reading, struct config *config, bool has_file)
{
	const struct option_source source = {
		.lookup = look_up, .report = report, .context = reading};
	int result;

	for (unsigned i = 0; i < FLAG_COUNT; i++) {
		if (reading->flags->text[i])
			reading->texts[i] = reading->flags->text[i];
		else if (!reading->texts[i])
			reading->texts[i] = flag_rows[i].otherwise;
	}
	straighten(reading);
	option_table_read(rows, FLAG_COUNT, &source, config);
	if (reading->is_wrong)
		return -EINVAL;
	/* the table has NULL for what is empty */
	for (unsigned i = 0; i < FLAG_COUNT; i++) {
		const char **field = (const char **)((char *)config + rows[i].offset);

		if (rows[i].kind == OPTION_TEXT && !*field)
			*field = "";
	}
	config->has_pair_scores = !strcmp(config->has_topology_score, "true");
	result = read_lists(reading, config);
	if (!result)
		result = read_channels(reading, config);
	if (!result && config->discovery == 2)
		result = refuse_flag(reading, FLAG_discovery, "tegra is not supported");
	if (!result && !has_file)
		result = read_without_file(reading, config);
	return result;
}

static int set_defaults(struct config *config)
{
	const char *right;

	for (size_t i = 0; i < config_key_count; i++)
		if (config_set(config, &config_keys[i], config_keys[i].otherwise, &right))
			return -ENOMEM;
	return 0;
}

int config_read(const struct flags *flags, const struct config_files *files,
	struct config **ret_config, struct err *err)
{
	struct reading reading = {.flags = flags, .err = err};
	struct config *config = calloc(1, sizeof(*config));
	int result;

	if (!config)
		return err_set(err, ENOMEM, "no memory");
	config->config_file = flags->text[FLAG_config_file] ? flags->text[FLAG_config_file] : "";
	result = set_defaults(config);
	if (!result && files->device_text)
		result = config_read_device_file(
			config, files->device_text, files->device_bytes, reading.texts, err);
	if (!result)
		result = read_flags(&reading, config, files->device_text);
	if (!result && files->node_text)
		result = config_read_node_file(config, files->node_text, files->node_bytes, err);
	if (result) {
		config_free(config);
		return result == -ENOMEM ? err_set(err, ENOMEM, "no memory") : result;
	}
	*ret_config = config;
	return 0;
}

/* A whole file with a zero byte behind it. */
static int read_file(const char *path, char **ret_text, size_t *ret_bytes, struct err *err)
{
	_cleanup_free_ char *text = malloc(CONFIG_FILE_BYTES + 1);
	int result =
		text ? file_read_regular(AT_FDCWD, path, 0, text, CONFIG_FILE_BYTES + 1, ret_bytes)
		     : -ENOMEM;

	if (result)
		return err_set(err, -result, "%.200s: %s", path, strerror(-result));
	*ret_text = text;
	text = NULL;
	return 0;
}

int config_load(const struct flags *flags, struct config **ret_config, struct err *err)
{
	const char *path = flags->text[FLAG_config_file];
	const char *node_path = flags->text[FLAG_node_config_file];
	_cleanup_free_ char *device_text = NULL, *node_text = NULL;
	struct config_files files = {.node_text = NULL};
	int result = 0;

	if (path && *path)
		result = read_file(path, &device_text, &files.device_bytes, err);
	if (result)
		return result;
	if (!node_path)
		node_path = flag_rows[FLAG_node_config_file].otherwise;
	result = read_file(node_path, &node_text, &files.node_bytes, err);
	if (result && result != -ENOENT && result != -ENOTDIR)
		return result;
	files.device_text = device_text;
	files.node_text = node_text;
	return config_read(flags, &files, ret_config, err);
}

/* Numbers and words that are asked for anew each time, and so may change under way. */
static bool is_live(const struct key_row *row)
{
	return row->kind != KEY_NAME && row->kind != KEY_PATH;
}

static bool is_same_text(const void *a, const void *b)
{
	return !strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_same_flag(const struct option_row *row, const void *a, const void *b)
{
	if (row->kind == OPTION_TEXT)
		return is_same_text(a, b);
	return !memcmp(a, b, row->kind == OPTION_SWITCH ? sizeof(bool) : sizeof(unsigned));
}

static bool are_same_devices(const struct config_devices *a, const struct config_devices *b)
{
	if (a->uuid_count != b->uuid_count || a->index_count != b->index_count)
		return false;
	for (size_t i = 0; i < a->uuid_count; i++)
		if (strcmp(a->uuids[i], b->uuids[i]) != 0)
			return false;
	for (size_t i = 0; i < a->index_count; i++)
		if (a->indexes[i] != b->indexes[i])
			return false;
	return true;
}

static bool are_same_texts(const char *const *a, const char *const *b)
{
	while (*a && *b && !strcmp(*a, *b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static bool are_same_profiles(const struct config *a, const struct config *b)
{
	if (a->profile_count != b->profile_count)
		return false;
	for (size_t i = 0; i < a->profile_count; i++)
		if (!are_same_texts(a->profiles[i].models, b->profiles[i].models) ||
			!are_same_texts(a->profiles[i].profiles, b->profiles[i].profiles))
			return false;
	return true;
}

static bool is_same_node(const struct config *a, const struct config *b)
{
	for (unsigned i = 0; i < CONFIG_MODES; i++)
		if (!are_same_devices(&a->of_mode[i], &b->of_mode[i]))
			return false;
	return a->mode == b->mode && a->has_preferred_allocation == b->has_preferred_allocation &&
	       are_same_devices(&a->filtered, &b->filtered);
}

static bool is_same_otherwise(const struct config *a, const struct config *b)
{
	const char *of_a = (const char *)a, *of_b = (const char *)b;

	for (unsigned i = 0; i < FLAG_COUNT; i++)
		if (!is_same_flag(&rows[i], of_a + rows[i].offset, of_b + rows[i].offset))
			return false;
	for (size_t i = 0; i < config_key_count; i++)
		if (!is_live(&config_keys[i]) &&
			!is_same_text(of_a + config_keys[i].offset, of_b + config_keys[i].offset))
			return false;
	return is_same_node(a, b) && are_same_profiles(a, b);
}

static int take_value(const struct key_row *row, struct config *config, const struct config *fresh)
{
	void *to = (char *)config + row->offset;
	const void *from = (const char *)fresh + row->offset;
	const char *text = row->kind == KEY_TEXT ? *(const char *const *)from : NULL;

	if (text && !is_same_text(to, from)) {
		text = config_keep(config, text, strlen(text));
		if (!text)
			return -ENOMEM;
		*(const char **)to = text;
	} else if (row->kind == KEY_SWITCH) {
		*(bool *)to = *(const bool *)from;
	} else if (row->kind == KEY_POLICY) {
		*(unsigned *)to = *(const unsigned *)from;
	} else if (row->kind == KEY_WHOLE || row->kind == KEY_REAL) {
		memcpy(to, from, sizeof(int64_t));
	}
	return 0;
}

int config_absorb(struct config *config, const struct config *fresh)
{
	int result = 0;

	if (!is_same_otherwise(config, fresh))
		return CONFIG_E_OTHER;
	for (size_t i = 0; i < config_key_count && !result; i++)
		if (is_live(&config_keys[i]))
			result = take_value(&config_keys[i], config, fresh);
	return result;
}
