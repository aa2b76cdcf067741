/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim counts */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "sim/machine/inject.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"

static void print_count(struct machine *machine, unsigned int call, bool is_json, bool *is_first)
{
	uint64_t count = inject_read_count(machine, call);

	if (is_json)
		printf("%s\"%s\":%" PRIu64, *is_first ? "" : ",", call_name(call), count);
	else
		printf("%12" PRIu64 " %s\n", count, call_name(call));
	*is_first = false;
}

int command_counts(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	bool is_json = false, is_clear = false, is_first = true;
	const struct arg args[] = {
		{.name = "--json", .is_given = &is_json},
		{.name = "--clear", .is_given = &is_clear},
	};
	int words = ARGS_READ(argc, argv, args, 0, CALLS_MAX);
	int result;

	if (words < 0)
		return TOOL_USAGE;
	for (int i = 1; i <= words; i++)
		if (call_find(argv[i]) < 0)
			return tool_complain("counts", TOOL_FAILED,
				"the simulated driver exports no '%s'", argv[i]);
	result = tool_open(&machine);
	if (result)
		return result;
	if (is_clear) {
		inject_clear_counts(machine);
		return TOOL_OK;
	}
	if (is_json)
		putchar('{');
	for (int i = 1; i <= words; i++)
		print_count(machine, (unsigned int)call_find(argv[i]), is_json, &is_first);
	for (unsigned int call = 0; !words && call_name(call); call++)
		if (inject_read_count(machine, call))
			print_count(machine, call, is_json, &is_first);
	if (is_json)
		printf("}\n");
	return TOOL_OK;
}
