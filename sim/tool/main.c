/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim: looks after the simulated machine. */
#include <stdio.h>
#include <string.h>

#include "sim/tool/command.h"

static const struct command commands[] = {
#define COMMAND(name, arguments, summary) {#name, arguments, summary, command_##name},
#include "sim/tool/command.def"
};

const struct command *command_at(unsigned int i)
{
	return i < sizeof(commands) / sizeof(commands[0]) ? &commands[i] : NULL;
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
	if (!strcmp(name, "--version"))
		name = "version";
	for (unsigned int i = 0; (command = command_at(i)); i++) {
		int result;

		if (strcmp(command->name, name))
			continue;
		argv[1] = (char *)name;
		result = command->run(argc - 1, argv + 1);
		if (fflush(stdout) || ferror(stdout))
			return tool_complain(name, TOOL_FAILED, "the output cannot be written");
		return result;
	}
	fprintf(stderr, "vgpu-sim: unknown command '%s' (see vgpu-sim help)\n", name);
	return TOOL_USAGE;
}
