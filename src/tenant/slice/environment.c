/* SPDX-License-Identifier: Apache-2.0 */
/* What this process's environment says. */
#define LOG_TOPIC LOG_OPTIONS
#include "tenant/slice/environment.h"

#include <stdlib.h>
#include <sys/auxv.h>

#include "base/log.h"

struct environment {
	char *(*lookup)(const char *name);
};

static const char *look_up(void *context, const char *name)
{
	return ((struct environment *)context)->lookup(name);
}

static void report(void *context, const struct option_fault *fault)
{
	switch (fault->row->kind) {
	case OPTION_SIZE:
		log_error("a memory quota cannot be read, so all device memory is refused",
			STR("option", fault->name), STR("value", fault->value),
			STR("right", fault->right));
		break;
	case OPTION_PERCENT:
		log_error("a compute limit cannot be read, so all device memory is refused",
			STR("option", fault->name), STR("value", fault->value),
			STR("right", fault->right));
		break;
	case OPTION_NUMBER:
		log_warn("an option is no number of its range and stays at its default",
			STR("option", fault->name), STR("value", fault->value),
			U64("least", fault->row->least), U64("most", fault->row->most));
		break;
	case OPTION_CHOICE:
		/* a policy that is not known is the strict one */
		log_warn("an option is none of its words", STR("option", fault->name),
			STR("value", fault->value), STR("right", fault->row->words));
		break;
	default:
		log_warn("an option is not understood", STR("option", fault->name),
			STR("value", fault->value), STR("right", fault->right));
	}
}

/* Levels are set before the rest is read, as they count for what is said of it. */
static void set_levels(const struct option_source *source)
{
	const struct option_source quiet = {.lookup = source->lookup, .context = source->context};
	const char *unknown;
	struct options o;

	option_table_read(options_table, OPTIONS_LOG_ROWS, &quiet, &o);
	if (o.log_number != OPTIONS_NOT_GIVEN)
		log_set_level((enum log_level)o.log_number);
	if (o.log_levels)
		log_set_levels(o.log_levels, &unknown);
}

bool environment_is_anothers(void)
{
	return getauxval(AT_SECURE) != 0;
}

const char *environment_value(const char *name)
{
	return getenv(name);
}

void environment_read(
	struct options *ret_options, char *(*lookup)(const char *name), bool is_anothers)
{
	struct environment environment = {lookup};
	const struct option_source source = {look_up, report, &environment, is_anothers};

	if (!is_anothers)
		set_levels(&source);
	options_read(ret_options, &source);
}

void environment_read_own(struct options *ret_options)
{
	environment_read(ret_options, getenv, environment_is_anothers());
}
