/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the configuration files: how a text becomes the value of a field. */
#include "plugin/config/config_keys.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "policy/share.h"

#define ROW(section_, field_, key_, kind_, least_, most_, otherwise_, meaning_, of_nodes) \
	{                                                                                 \
		.section = (section_),                                                    \
		.key = (key_),                                                            \
		.otherwise = (otherwise_),                                                \
		.kind = KEY_##kind_,                                                      \
		.is_of_nodes = (of_nodes),                                                \
		.offset = offsetof(struct config, field_),                                \
		.least = (least_),                                                        \
		.most = (most_),                                                          \
		.bounds = "a number from " #least_ " to " #most_ " is right",             \
	},

const struct key_row config_keys[] = {
#define KEY(...)      ROW(__VA_ARGS__, false)
#define NODE_KEY(...) ROW(__VA_ARGS__, true)
#include "plugin/config/keys.def"
};
const size_t config_key_count = ARRAY_SIZE(config_keys);

struct config_text {
	struct config_text *next;
	char text[];
};

const char *config_keep(struct config *config, const char *text, size_t length)
{
	struct config_text *kept = malloc(sizeof(*kept) + length + 1);

	if (!kept)
		return NULL;
	memcpy(kept->text, text, length);
	kept->text[length] = '\0';
	kept->next = config->texts;
	config->texts = kept;
	return kept->text;
}

static void free_devices(struct config_devices *list)
{
	free(list->uuids);
	free(list->indexes);
}

void config_free(struct config *config)
{
	if (!config)
		return;
	while (config->texts) {
		struct config_text *next = config->texts->next;

		free(config->texts);
		config->texts = next;
	}
	for (size_t i = 0; i < config->profile_count; i++) {
		free(config->profiles[i].models);
		free(config->profiles[i].profiles);
	}
	free(config->profiles);
	free_devices(&config->filtered);
	for (unsigned i = 0; i < CONFIG_MODES; i++)
		free_devices(&config->of_mode[i]);
	free(config);
}

bool config_read_whole(const char *text, int64_t *ret_number)
{
	bool is_negative = *text == '-';
	uint64_t number;

	if (parse_u64(text + is_negative, INT64_MAX, &number))
		return false;
	*ret_number = is_negative ? -(int64_t)number : (int64_t)number;
	return true;
}

static bool read_real(const char *text, double *ret_number)
{
	char *end;
	double number;

	if (!*text || strspn(text, "0123456789.eE+-") != strlen(text))
		return false;
	number = strtod(text, &end);
	if (*end || !isfinite(number))
		return false;
	*ret_number = number;
	return true;
}

/* Letters and digits, and in between marks of names. */
static bool is_name(const char *text, size_t length, size_t most)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

	if (!length || length > most || !strchr(plain, text[0]) || !strchr(plain, text[length - 1]))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!strchr(plain, text[i]) && !strchr("-_.", text[i]))
			return false;
	return true;
}

bool config_is_resource(const char *text)
{
	size_t domain = strcspn(text, "/");

	return text[domain] && is_name(text, domain, 253) &&
	       is_name(text + domain + 1, strlen(text + domain + 1), 63);
}

/* As a share file can name it. */
static bool is_path(const char *text)
{
	return *text == '/' && strlen(text) < SHARE_PATH_BYTES && !strpbrk(text, " \t\r\n");
}

static bool read_policy(const char *text, unsigned *ret_policy)
{
	static const char *const words[] = {[CONFIG_CORES_DEFAULT] = "default",
		[CONFIG_CORES_FORCE] = "force",
		[CONFIG_CORES_DISABLE] = "disable"};

	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(text, words[i]) || (!*text && i == CONFIG_CORES_DEFAULT)) {
			*ret_policy = i;
			return true;
		}
	return false;
}

static int set_text(struct config *config, const char *text, const char **field)
{
	const char *kept = config_keep(config, text, strlen(text));

	if (!kept)
		return -ENOMEM;
	*field = kept;
	return 0;
}

int config_set(
	struct config *config, const struct key_row *row, const char *text, const char **ret_right)
{
	void *field = (char *)config + row->offset;
	int64_t whole;
	double real;

	*ret_right = NULL;
	switch (row->kind) {
	case KEY_NAME:
		*ret_right = config_is_resource(text) ? NULL : "a name of the form DOMAIN/NAME";
		return *ret_right ? -EINVAL : set_text(config, text, field);
	case KEY_TEXT:
		return set_text(config, text, field);
	case KEY_PATH:
		*ret_right = is_path(text) ? NULL : "an absolute path without white space";
		return *ret_right ? -EINVAL : set_text(config, text, field);
	case KEY_SWITCH:
		*ret_right = parse_switch(text, field) ? NULL : "true or false";
		break;
	case KEY_POLICY:
		*ret_right = read_policy(text, field) ? NULL : "default, force or disable";
		break;
	case KEY_WHOLE:
		if (!config_read_whole(text, &whole) || (double)whole < row->least ||
			(double)whole > row->most)
			*ret_right = row->bounds;
		else
			*(int64_t *)field = whole;
		break;
	case KEY_REAL:
		if (!read_real(text, &real) || real < row->least || real > row->most)
			*ret_right = row->bounds;
		else
			*(double *)field = real;
		break;
	}
	return *ret_right ? -EINVAL : 0;
}
