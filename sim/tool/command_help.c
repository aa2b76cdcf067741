/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim help */
#include <stdio.h>
#include <string.h>

#include "sim/tool/args.h"
#include "sim/tool/command.h"

static int help_one(const char *name)
{
	const struct command *command;

	for (unsigned int i = 0; (command = command_at(i)); i++)
		if (!strcmp(command->name, name)) {
			printf("vgpu-sim %s %s\n    %s\n", command->name, command->arguments,
				command->summary);
			return TOOL_OK;
		}
	return tool_complain("help", TOOL_USAGE, "there is no command '%s'", name);
}

int command_help(int argc, char **argv)
{
	const struct command *command;
	int words = args_read(argc, argv, NULL, 0, 0, 1);

	if (words < 0)
		return TOOL_USAGE;
	if (words)
		return help_one(argv[1]);
	printf("vgpu-sim COMMAND [--state PATH] ...: looks after the simulated machine\n\n");
	for (unsigned int i = 0; (command = command_at(i)); i++)
		printf("  %-9s %s\n", command->name, command->summary);
	printf("\nEnvironment:\n"
	       "  VGPU_SIM_STATE  the file that is the machine\n"
	       "  VGPU_SIM_BOARD  the board of a machine that is made on first use\n"
	       "  VGPU_SIM_TAG    under which name a process is counted by truth and inject\n"
	       "  VGPU_SIM_NVML   words: host-pids (lists name processes as an older driver "
	       "does),\n"
	       "                  accounting (accounting mode is on), sessions (each process "
	       "encodes and captures)\n"
	       "  NVIDIA_VISIBLE_DEVICES  which cards are seen at all, as in a container\n");
	return TOOL_OK;
}
