/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim reset */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"

/* Names who is in the way; returns how many there are. */
static int print_holders(const struct machine_snapshot *snapshot)
{
	char amount[TOOL_BYTES_SIZE];
	int count = 0;

	for (int i = 0; i < snapshot->process_count; i++) {
		const struct machine_process *process = &snapshot->process[i];
		uint64_t bytes = 0;

		for (int j = 0; j < snapshot->device_count; j++)
			bytes += process->device[j].total_bytes;
		if (!bytes)
			continue;
		count++;
		fprintf(stderr, "  process %d, tag '%s', holds %s\n", (int)process->pid,
			process->tag, tool_bytes(bytes, amount));
	}
	return count;
}

/*
 * The file goes, so that the next machine may have another board. With --force processes may still
 * be attached to it: they go on in the old machine, which nobody else can see any more.
 */
int command_reset(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;
	bool is_forced = false;
	const struct arg args[] = {{.name = "--force", .is_given = &is_forced}};
	char path[4096];
	int result;

	if (ARGS_READ(argc, argv, args, 0, 0) < 0)
		return TOOL_USAGE;
	if (machine_state_path(path, sizeof(path)))
		return tool_complain("reset", TOOL_FAILED, "the path of the state is too long");
	if (access(path, F_OK)) {
		printf("%s: there was no machine\n", path);
		return TOOL_OK;
	}
	if (!is_forced) {
		result = tool_open(&machine);
		if (result)
			return tool_complain("reset", result, "reset --force drops it unread");
		snapshot = tool_read_snapshot(machine);
		if (!snapshot)
			return TOOL_FAILED;
		if (print_holders(snapshot))
			return tool_complain("reset", TOOL_FAILED,
				"processes hold memory; end them, or use reset --force");
	}
	if (unlink(path) && errno != ENOENT)
		return tool_complain("reset", TOOL_FAILED, "%s: %s", path, strerror(errno));
	printf("%s: dropped\n", path);
	return TOOL_OK;
}
