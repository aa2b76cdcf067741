/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim card */
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/presence.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"
#include "sim/tool/number.h"

int command_card(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	const char *device_text = "0";
	const struct arg args[] = {{.name = "--device", .text = &device_text}};
	int result, words = ARGS_READ(argc, argv, args, 1, 1);
	uint64_t device;
	bool is_lost;

	if (words < 0)
		return TOOL_USAGE;
	is_lost = !strcmp(argv[1], "lose");
	if (!is_lost && strcmp(argv[1], "return") != 0)
		return tool_complain("card", TOOL_USAGE, "give lose or return");
	if (number_parse(device_text, &device) || device >= MACHINE_DEVICES_MAX)
		return tool_complain(
			"card", TOOL_USAGE, "--device %s: not a number of a device", device_text);
	result = tool_open(&machine);
	if (result)
		return result;
	if (is_lost ? presence_lose(machine, (int)device) : presence_return(machine, (int)device))
		return tool_complain(
			"card", TOOL_FAILED, "--device %s: there is no such device", device_text);
	return TOOL_OK;
}
