/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim start */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"

/* Without a name whatever machine there is will do. */
int command_start(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	const char *name = NULL;
	const struct arg args[] = {{.name = "--board", .text = &name}};
	char why[512] = "";
	char path[4096];
	const struct board *board;
	struct board wanted;
	bool is_named;
	int result;

	if (ARGS_READ(argc, argv, args, 0, 0) < 0)
		return TOOL_USAGE;
	if (!name)
		name = getenv("VGPU_SIM_BOARD");
	is_named = name && *name;
	if (!is_named)
		name = BOARD_DEFAULT;
	if (board_load(name, &wanted, why, sizeof(why)))
		return tool_complain("start", TOOL_FAILED, "%s", why);
	if (machine_state_path(path, sizeof(path)))
		return tool_complain("start", TOOL_FAILED, "the path of the state is too long");
	setenv("VGPU_SIM_BOARD", name, 1);
	result = tool_open(&machine);
	if (result)
		return result;
	board = machine_board(machine);
	if (is_named && memcmp(board, &wanted, sizeof(wanted)))
		return tool_complain("start", TOOL_FAILED,
			"a machine with another board exists already: %s is a %s, not %s as asked "
			"for (vgpu-sim reset drops it)",
			path, board->name, name);
	printf("%s: %s, %d x %s\n", path, board->name, board->device_count, board->device_name);
	return TOOL_OK;
}
