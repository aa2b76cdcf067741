/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a command's options. */
#include <stdlib.h>
#include <string.h>

#include "sim/tool/args.h"
#include "sim/tool/command.h"

static const char *state_text;
static const struct arg state_arg = {.name = "--state", .text = &state_text};

/* The option that `word` is, and the value written to it with '='. */
static const struct arg *find_arg(
	const struct arg *args, unsigned int arg_count, const char *word, const char **ret_value)
{
	size_t length = strcspn(word, "=");

	*ret_value = word[length] ? word + length + 1 : NULL;
	if (strlen(state_arg.name) == length && !strncmp(word, state_arg.name, length))
		return &state_arg;
	for (unsigned int i = 0; i < arg_count; i++)
		if (strlen(args[i].name) == length && !strncmp(word, args[i].name, length))
			return &args[i];
	return NULL;
}

/*
 * Takes the option argv[*at], and the word after it where that is its value. Returns 0, or -1 after a
 * sentence on stderr.
 */
static int take_option(
	int argc, char **argv, const struct arg *args, unsigned int arg_count, int *at)
{
	const char *value, *word = argv[*at];
	const struct arg *arg = find_arg(args, arg_count, word, &value);

	if (!arg)
		return tool_complain(
			argv[0], -1, "unknown option '%s' (see vgpu-sim help %s)", word, argv[0]);
	if (!arg->text && value)
		return tool_complain(argv[0], -1, "option '%s' takes no value", arg->name);
	if (arg->text && !value && ++*at < argc)
		value = argv[*at];
	if (arg->text && !value)
		return tool_complain(argv[0], -1, "option '%s' needs a value", arg->name);
	if (arg->text)
		*arg->text = value;
	if (arg->is_given)
		*arg->is_given = true;
	return 0;
}

int args_read(
	int argc, char **argv, const struct arg *args, unsigned int arg_count, int least, int most)
{
	bool are_over = false;
	int words = 0;

	for (int i = 1; i < argc; i++) {
		if (are_over || argv[i][0] != '-' || !argv[i][1])
			argv[++words] = argv[i];
		else if (!strcmp(argv[i], "--"))
			are_over = true;
		else if (take_option(argc, argv, args, arg_count, &i))
			return -1;
	}
	if (state_text)
		setenv("VGPU_SIM_STATE", state_text, 1);
	if (words > most)
		return tool_complain(argv[0], -1, "too many arguments: '%s' (see vgpu-sim help %s)",
			argv[most + 1], argv[0]);
	if (words < least)
		return tool_complain(
			argv[0], -1, "an argument is missing (see vgpu-sim help %s)", argv[0]);
	return words;
}
