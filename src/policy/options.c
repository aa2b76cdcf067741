/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment of a tenant says. */
#include "policy/options.h"

#include <string.h>

#define BETWEEN(a, b, c)     .least = (a), .most = (b), .otherwise = (c)
#define WORDS(text, unknown) .words = (text), .otherwise_word = (unknown)
#define ANY

const struct option_row options_table[] = {
#define OPTION(field, text, value, bounds, meaning) \
	{.name = (text), .kind = OPTION_##value, .offset = offsetof(struct options, field), bounds},
#include "policy/options.def"
};
const size_t options_table_count = sizeof(options_table) / sizeof(options_table[0]);

struct reading {
	struct options *options;
	const struct option_source *source;
};

static const char *look_up(void *context, const char *name)
{
	const struct option_source *source = ((struct reading *)context)->source;

	return source->lookup(source->context, name);
}

/* One for each row, however many of a family are unclear. */
static void note_unclear(struct options *o, const char *name)
{
	if (o->unclear_count && o->unclear[o->unclear_count - 1] == name)
		return;
	if (o->unclear_count < OPTIONS_UNCLEAR)
		o->unclear[o->unclear_count++] = name;
}

static void report(void *context, const struct option_fault *fault)
{
	const struct reading *reading = context;

	note_unclear(reading->options, fault->row->name);
	/* It stands there, so it may lower what the share gives; its default is what it says then. */
	if (strcmp(fault->row->name, "CUDA_TASK_PRIORITY") == 0)
		reading->options->has_priority = true;
	reading->options->is_broken |=
		fault->row->kind == OPTION_SIZE || fault->row->kind == OPTION_PERCENT;
	if (reading->source->report)
		reading->source->report(reading->source->context, fault);
}

void options_read(struct options *ret_options, const struct option_source *source)
{
	struct options o = {.is_broken = false};
	struct reading reading = {.options = &o, .source = source};
	const struct option_source ours = {look_up, report, &reading, source->has_no_paths};

	option_table_read(options_table, options_table_count, &ours, &o);
	for (unsigned i = 0; i < OPTIONS_DEVICES; i++) {
		o.has_indexed_limit |= o.memory_limit_of_bytes[i] != 0;
		o.has_indexed_cores |= o.cores_of_percent[i] != 0;
	}
	if (o.priority == OPTIONS_NOT_GIVEN)
		o.priority = OPTIONS_PRIORITY;
	else
		o.has_priority = true;
	*ret_options = o;
}
