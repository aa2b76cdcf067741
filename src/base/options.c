/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says to the tenant library. */
#define LOG_TOPIC LOG_OPTIONS
#include "base/options.h"

#include <string.h>

#include "base/log.h"
#include "base/parse.h"

enum {
#define OPTION(field, name, kind, meaning) OPTION_##field,
#include "base/options.def"
	OPTION_COUNT
};
static const char *const names[] = {
#define OPTION(field, name, kind, meaning) [OPTION_##field] = name,
#include "base/options.def"
};

/* An empty value is what `env NAME= program` leaves behind: the same as unset. */
static const char *value_of(char *(*lookup)(const char *), const char *name)
{
	const char *value = lookup(name);

	return value && *value ? value : NULL;
}

/* One for each option, however many of a family are unclear. */
static void note_unclear(struct options *o, int option)
{
	for (unsigned i = 0; i < o->unclear_count; i++)
		if (o->unclear[i] == names[option])
			return;
	if (o->unclear_count < OPTIONS_UNCLEAR)
		o->unclear[o->unclear_count++] = names[option];
}

static uint64_t read_size(
	struct options *o, char *(*lookup)(const char *), int option, const char *name)
{
	const char *value = value_of(lookup, name);
	uint64_t bytes;
	int r;

	if (!value)
		return 0;
	r = parse_size(value, &bytes);
	if (r == 0)
		return bytes;
	o->is_broken = true;
	note_unclear(o, option);
	log_error("a memory quota cannot be read, so all device memory is refused",
		STR("option", name), STR("value", value), STR("right", parse_advice(r)));
	return 0;
}

/* 0: no limit. HAMi gives 100 or more, too, where it means none. */
static unsigned read_percent(
	struct options *o, char *(*lookup)(const char *), int option, const char *name)
{
	const char *value = value_of(lookup, name);
	uint64_t percent;

	if (!value)
		return 0;
	if (parse_u64(value, UINT32_MAX, &percent) == 0)
		return percent >= 100 ? 0 : (unsigned)percent;
	o->is_broken = true;
	note_unclear(o, option);
	log_error("a compute limit cannot be read, so all device memory is refused",
		STR("option", name), STR("value", value),
		STR("right", "a whole number of percent, 0 to 100"));
	return 0;
}

static enum options_policy read_policy(struct options *o, char *(*lookup)(const char *))
{
	const char *value = value_of(lookup, names[OPTION_policy]);

	if (!value || strcmp(value, "default") == 0 || strcmp(value, "DEFAULT") == 0)
		return OPTIONS_POLICY_DEFAULT;
	if (strcmp(value, "force") == 0 || strcmp(value, "FORCE") == 0)
		return OPTIONS_POLICY_FORCE;
	if (strcmp(value, "disable") == 0 || strcmp(value, "DISABLE") == 0)
		return OPTIONS_POLICY_DISABLE;
	note_unclear(o, OPTION_policy);
	log_warn("a policy for compute is not known, so the limit is kept as with force; default, "
		 "force and disable are",
		STR("option", names[OPTION_policy]), STR("value", value));
	return OPTIONS_POLICY_FORCE;
}

static uint64_t read_number(struct options *o, char *(*lookup)(const char *), int option,
	uint64_t least, uint64_t most, uint64_t otherwise)
{
	const char *value = value_of(lookup, names[option]);
	uint64_t number;

	if (!value)
		return otherwise;
	if (parse_u64(value, most, &number) == 0 && number >= least)
		return number;
	note_unclear(o, option);
	log_warn("an option is no number of its range and stays at its default",
		STR("option", names[option]), STR("value", value), U64("least", least),
		U64("most", most));
	return otherwise;
}

/* The name of the i-th option of a family: "<i>" at its end replaced by the number. */
static void name_of(int option, unsigned i, char *ret_name, size_t size)
{
	size_t length = strlen(names[option]) - strlen("<i>");

	if (length + 3 > size)
		length = size - 3;
	memcpy(ret_name, names[option], length);
	if (i >= 10)
		ret_name[length++] = (char)('0' + i / 10);
	ret_name[length++] = (char)('0' + i % 10);
	ret_name[length] = '\0';
}

static bool read_switch(struct options *o, char *(*lookup)(const char *), int option)
{
	const char *value = value_of(lookup, names[option]);

	if (!value || strcmp(value, "false") == 0 || strcmp(value, "0") == 0)
		return false;
	if (strcmp(value, "true") == 0 || strcmp(value, "1") == 0)
		return true;
	note_unclear(o, option);
	log_warn("an option that is a switch is neither on (true, 1) nor off (false, 0): it stays "
		 "off",
		STR("option", names[option]), STR("value", value));
	return false;
}

/* is_check: the levels stay off. */
static void read_log(struct options *o, char *(*lookup)(const char *), bool is_check)
{
	const char *value = value_of(lookup, names[OPTION_log_number]), *unknown = NULL;
	uint64_t level;

	if (value && parse_u64(value, 4, &level) != 0) {
		note_unclear(o, OPTION_log_number);
		log_warn("the log level is not a number from 0 to 4",
			STR("option", names[OPTION_log_number]), STR("value", value));
	} else if (value && !is_check) {
		log_set_level((enum log_level)level);
	}
	value = value_of(lookup, names[OPTION_log_levels]);
	if (value)
		log_set_levels(value, &unknown);
	if (is_check)
		log_set_level(LOG_OFF);
	if (!unknown)
		return;
	note_unclear(o, OPTION_log_levels);
	log_warn("a log level is not known; off, error, warn, info, debug and trace are",
		STR("option", names[OPTION_log_levels]), STR("value", unknown));
}

static bool read_shows_slice(struct options *o, char *(*lookup)(const char *))
{
	const char *value = value_of(lookup, names[OPTION_show_utilization]);

	if (value && strcmp(value, "slice") != 0 && strcmp(value, "device") != 0) {
		note_unclear(o, OPTION_show_utilization);
		log_warn("what utilization is to be shown is not known; device and slice are",
			STR("option", names[OPTION_show_utilization]), STR("value", value));
	}
	return value && strcmp(value, "slice") == 0;
}

static void read_rest(struct options *o, char *(*lookup)(const char *name))
{
	char name[64];

	o->memory_limit_bytes =
		read_size(o, lookup, OPTION_memory_limit, names[OPTION_memory_limit]);
	for (unsigned i = 0; i < OPTIONS_DEVICES; i++) {
		name_of(OPTION_memory_limit_of, i, name, sizeof(name));
		o->memory_limit_of_bytes[i] = read_size(o, lookup, OPTION_memory_limit_of, name);
		if (o->memory_limit_of_bytes[i])
			o->has_indexed_limit = true;
	}
	o->cores_percent = read_percent(o, lookup, OPTION_cores, names[OPTION_cores]);
	for (unsigned i = 0; i < OPTIONS_DEVICES; i++) {
		name_of(OPTION_cores_of, i, name, sizeof(name));
		o->cores_of_percent[i] = read_percent(o, lookup, OPTION_cores_of, name);
		if (o->cores_of_percent[i])
			o->has_indexed_cores = true;
	}
	o->policy = read_policy(o, lookup);
	o->priority = (unsigned)read_number(
		o, lookup, OPTION_priority, 0, OPTIONS_MAX_PRIORITY, OPTIONS_PRIORITY);
	o->has_priority = value_of(lookup, names[OPTION_priority]) != NULL;
	o->turns_path = value_of(lookup, names[OPTION_turns_path]);
	o->burst_ns =
		1000000 * read_number(o, lookup, OPTION_burst, 1, 1000, OPTIONS_BURST_NS / 1000000);
	o->region_path = value_of(lookup, names[OPTION_region_path]);
	o->share_path = value_of(lookup, names[OPTION_share_path]);
	o->is_oversubscribed = read_switch(o, lookup, OPTION_oversubscribe);
	o->has_oom_killer = read_switch(o, lookup, OPTION_oom_killer);
	o->shows_slice_utilization = read_shows_slice(o, lookup);
}

void options_read(struct options *ret_options, char *(*lookup)(const char *name))
{
	struct options o = {0};

	read_log(&o, lookup, false);
	read_rest(&o, lookup);
	*ret_options = o;
}

void options_check(struct options *ret_options, char *(*lookup)(const char *name))
{
	struct options o = {0};

	log_set_level(LOG_OFF);
	read_log(&o, lookup, true);
	read_rest(&o, lookup);
	*ret_options = o;
}
