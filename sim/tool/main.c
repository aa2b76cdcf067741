/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim: looks after the simulated machine. */
#include <stdio.h>
#include <string.h>

#include "sim/tool/command.h"

/* In the order of command_at(). */
static int (*const functions[])(int argc, char **argv) = {
#define COMMAND(name, arguments, summary) command_##name,
#include "sim/tool/command.def"
};

static int run(unsigned int command, int argc, char **argv)
{
	int result = functions[command](argc, argv);

	if (fflush(stdout) || ferror(stdout))
		return tool_complain(argv[0], TOOL_FAILED, "the output cannot be written");
	return result;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	const struct command *command;

	if (!name) {
		command_help(1, (char *[]){(char *)"help", NULL});
		return TOOL_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	for (unsigned int i = 0; (command = command_at(i)); i++)
		if (!strcmp(command->name, name)) {
			argv[1] = (char *)name;
			return run(i, argc - 1, argv + 1);
		}
	fprintf(stderr, "vgpu-sim: unknown command '%s' (see vgpu-sim help)\n", name);
	return TOOL_USAGE;
}
