/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim driver */
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/presence.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"

int command_driver(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	int result;

	if (args_read(argc, argv, NULL, 0, 1, 1) < 0)
		return TOOL_USAGE;
	if (strcmp(argv[1], "stop") != 0 && strcmp(argv[1], "start") != 0)
		return tool_complain("driver", TOOL_USAGE, "give stop or start");
	result = tool_open(&machine);
	if (result)
		return result;
	if (!strcmp(argv[1], "stop"))
		presence_stop(machine);
	else
		presence_start(machine);
	return TOOL_OK;
}
