/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim version */
#include <stdio.h>

#include "sim/tool/args.h"
#include "sim/tool/command.h"

int command_version(int argc, char **argv)
{
	if (args_read(argc, argv, NULL, 0, 0, 0) < 0)
		return TOOL_USAGE;
	printf("vgpu-sim %s\n", VGPU_VERSION);
	return TOOL_OK;
}
