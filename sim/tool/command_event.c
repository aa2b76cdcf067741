/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim event */
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/event.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"
#include "sim/tool/number.h"

#define USAGE "give xid NUMBER, ecc-corrected or ecc-uncorrected (see vgpu-sim help event)"

static int read_report(int words, char **argv, struct event_report *ret_report)
{
	*ret_report = (struct event_report){.type = EVENT_XID};
	if (words == 2 && !strcmp(argv[1], "xid"))
		return number_parse(argv[2], &ret_report->data);
	if (words != 1)
		return -1;
	if (!strcmp(argv[1], "ecc-corrected"))
		ret_report->type = EVENT_ECC_CORRECTED;
	else if (!strcmp(argv[1], "ecc-uncorrected"))
		ret_report->type = EVENT_ECC_UNCORRECTED;
	else
		return -1;
	return 0;
}

int command_event(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	const char *device_text = "0";
	const struct arg args[] = {{.name = "--device", .text = &device_text}};
	int words = ARGS_READ(argc, argv, args, 1, 2);
	struct event_report report;
	uint64_t device;
	int result;

	if (words < 0)
		return TOOL_USAGE;
	if (read_report(words, argv, &report))
		return tool_complain("event", TOOL_USAGE, USAGE);
	if (number_parse(device_text, &device) || device >= MACHINE_DEVICES_MAX)
		return tool_complain(
			"event", TOOL_USAGE, "--device %s: not a number of a device", device_text);
	result = tool_open(&machine);
	if (result)
		return result;
	if (event_raise(machine, (int)device, &report))
		return tool_complain(
			"event", TOOL_FAILED, "--device %s: there is no such device", device_text);
	return TOOL_OK;
}
