/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim boards */
#include <stdio.h>
#include <string.h>

#include "sim/tool/args.h"
#include "sim/tool/command.h"

static int print_text(const char *name)
{
	for (unsigned int i = 0; board_builtin_name(i); i++)
		if (!strcmp(board_builtin_name(i), name)) {
			fputs(board_builtin_text(i), stdout);
			return TOOL_OK;
		}
	return tool_complain("boards", TOOL_FAILED, "no board '%s' is built in", name);
}

int command_boards(int argc, char **argv)
{
	char size[TOOL_BYTES_SIZE];
	char why[512] = "";
	struct board board;
	int words = args_read(argc, argv, NULL, 0, 0, 1);

	if (words < 0)
		return TOOL_USAGE;
	if (words)
		return print_text(argv[1]);
	for (unsigned int i = 0; board_builtin_name(i); i++) {
		if (board_load(board_builtin_name(i), &board, why, sizeof(why)))
			return tool_complain("boards", TOOL_FAILED, "%s", why);
		printf("%-8s %d x %s, %s each%s\n", board.name, board.device_count,
			board.device_name, tool_bytes(board.total_bytes, size),
			strcmp(board.name, BOARD_DEFAULT) ? "" : " (the default)");
	}
	return TOOL_OK;
}
