/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's command line and environment. */
#include "plugin/config/flags.h"

#include <errno.h>
#include <string.h>

struct name {
	const char *name;
	int flag; /* below 0: taken and not used */
	const char *alias_of;
	bool is_switch;
};

#define IS_SWITCH_TEXT	 false
#define IS_SWITCH_CHOICE false
#define IS_SWITCH_NUMBER false
#define IS_SWITCH_SWITCH true

static const struct name names[] = {
#define FLAG(field, name, variable, kind, ...) {(name), FLAG_##field, NULL, IS_SWITCH_##kind},
#define IGNORED(name)			       {(name), -1, NULL, false},
#define ALIAS(name, of)			       {(name), -1, (of), false},
#include "plugin/config/flags.def"
};

const struct flag_row flag_rows[FLAG_COUNT] = {
#define FLAG(field, name, variable, kind, bounds, otherwise, meaning) \
	[FLAG_##field] = {(name), (variable), (otherwise), (meaning)},
#define IGNORED(name)
#define ALIAS(name, of)
#include "plugin/config/flags.def"
};

static const struct name *find(const char *text, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].name && strlen(names[i].name) == length &&
			!memcmp(names[i].name, text, length))
			return names[i].alias_of
				       ? find(names[i].alias_of, strlen(names[i].alias_of))
				       : &names[i];
	return NULL;
}

/* Takes one flag, and the argument behind it where that is its value. */
static int take(char **argv, int *at, struct flags *flags, struct err *err)
{
	const char *text = argv[*at] + (argv[*at][1] == '-' ? 2 : 1), *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	const struct name *name = find(text, length);
	const char *value = equals ? equals + 1 : NULL;

	flags->wants_help |= !strcmp(text, "help") || !strcmp(text, "h");
	flags->wants_version |= !strcmp(text, "version") || !strcmp(text, "V");
	if (flags->wants_help || flags->wants_version)
		return 0;
	if (!name)
		return err_set(err, EINVAL, "unknown option '%.100s'; see --help", argv[*at]);
	if (!value && name->is_switch)
		value = "true";
	if (!value)
		value = argv[++*at];
	if (!value)
		return err_set(err, EINVAL, "--%s needs a value", name->name);
	if (name->flag >= 0)
		flags->text[name->flag] = value;
	return 0;
}

int flags_read(int argc, char **argv, char *(*lookup)(const char *name), struct flags *ret_flags,
	struct err *err)
{
	struct flags flags = {.wants_help = false};
	int result = 0;

	for (int i = 1; i < argc && !result && !flags.wants_help && !flags.wants_version; i++)
		result = argv[i][0] == '-' && argv[i][1]
				 ? take(argv, &i, &flags, err)
				 : err_set(err, EINVAL, "'%.100s' is no option; see --help",
					   argv[i]);
	if (result)
		return result;
	for (unsigned i = 0; i < FLAG_COUNT; i++) {
		const char *value = flag_rows[i].variable ? lookup(flag_rows[i].variable) : NULL;

		/* an empty variable is one that is not set, but for the socket, where it means none */
		if (flags.text[i] || !value || (!*value && i != FLAG_kubelet_socket))
			continue;
		flags.text[i] = value;
		flags.is_from_environment[i] = true;
	}
	*ret_flags = flags;
	return 0;
}

void flags_write_help(FILE *out)
{
	for (unsigned i = 0; i < FLAG_COUNT; i++) {
		const struct flag_row *row = &flag_rows[i];

		fprintf(out, "  %s%s%s%s%s\n        %s%s%s%s\n", row->name ? "--" : "",
			row->name ? row->name : "", row->name && row->variable ? ", " : "",
			row->variable ? "$" : "", row->variable ? row->variable : "", row->meaning,
			*row->otherwise ? " (" : "", row->otherwise, *row->otherwise ? ")" : "");
	}
}
