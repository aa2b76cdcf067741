/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim kernel */
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/inject.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"
#include "sim/tool/number.h"

int command_kernel(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	bool is_clear = false;
	const struct arg args[] = {{.name = "--clear", .is_given = &is_clear}};
	int words = ARGS_READ(argc, argv, args, 0, 2);
	uint64_t duration_ns = 0;
	int result;

	if (words < 0)
		return TOOL_USAGE;
	if (words != (is_clear ? 0 : 2))
		return tool_complain("kernel", TOOL_USAGE,
			"give NAME and DURATION, or --clear (see vgpu-sim help kernel)");
	if (words && strlen(argv[1]) >= INJECT_KERNEL_NAME_SIZE)
		return tool_complain("kernel", TOOL_USAGE, "a name has at most %d bytes",
			INJECT_KERNEL_NAME_SIZE - 1);
	if (words && (number_parse_duration(argv[2], &duration_ns) || !duration_ns))
		return tool_complain("kernel", TOOL_USAGE,
			"duration '%s': not right; it must be above 0 with a unit, such as 5ms or "
			"200us",
			argv[2]);
	result = tool_open(&machine);
	if (result)
		return result;
	if (is_clear)
		inject_clear_kernels(machine);
	else if (inject_set_kernel(machine, argv[1], duration_ns))
		return tool_complain("kernel", TOOL_FAILED,
			"%d kernels have a duration already (kernel --clear drops them)",
			INJECT_KERNELS_MAX);
	return TOOL_OK;
}
