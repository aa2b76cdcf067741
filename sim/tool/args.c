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

int args_read(
	int argc, char **argv, const struct arg *args, unsigned int arg_count, int least, int most)
{
	bool are_over = false;
	int words = 0;

	for (int i = 1; i < argc; i++) {
		const struct arg *arg;
		const char *value;

		if (are_over || argv[i][0] != '-' || !argv[i][1]) {
			argv[++words] = argv[i];
			continue;
		}
		if (!strcmp(argv[i], "--")) {
			are_over = true;
			continue;
		}
		arg = find_arg(args, arg_count, argv[i], &value);
		if (!arg) {
			tool_complain(argv[0], 0, "unknown option '%s' (see vgpu-sim help %s)",
				argv[i], argv[0]);
			return -1;
		}
		if (!arg->text && value) {
			tool_complain(argv[0], 0, "option '%s' takes no value", arg->name);
			return -1;
		}
		if (arg->text && !value && ++i < argc)
			value = argv[i];
		if (arg->text && !value) {
			tool_complain(argv[0], 0, "option '%s' needs a value", arg->name);
			return -1;
		}
		if (arg->text)
			*arg->text = value;
		if (arg->is_given)
			*arg->is_given = true;
	}
	if (state_text)
		setenv("VGPU_SIM_STATE", state_text, 1);
	if (words > most) {
		tool_complain(argv[0], 0, "too many arguments: '%s' (see vgpu-sim help %s)",
			argv[most + 1], argv[0]);
		return -1;
	}
	if (words < least) {
		tool_complain(argv[0], 0, "an argument is missing (see vgpu-sim help %s)", argv[0]);
		return -1;
	}
	return words;
}
