/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim describe */
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"

static void print_text(
	const char *path, const struct board *board, const struct machine_snapshot *snapshot)
{
	char total[TOOL_BYTES_SIZE], used[TOOL_BYTES_SIZE];

	printf("machine  %s\nstate    %s\ndriver   %s, CUDA %d.%d\n", board->name, path,
		board->driver_version, board->cuda_version / 1000, board->cuda_version % 1000 / 10);
	for (int i = 0; i < board->device_count; i++) {
		char text[MACHINE_UUID_SIZE];
		uint8_t uuid[16];
		unsigned int bus, slot;

		board_uuid(board, i, uuid);
		machine_uuid_text(uuid, text);
		board_pci(board, i, &bus, &slot);
		printf("device %d %s at 0000:%02X:%02X.0, NUMA node %d\n"
		       "         %s, %d SMs, compute %d.%d\n"
		       "         %s of %s used, busy %u.%u %%\n",
			i, text, bus, slot, board_numa_node(board, i), board->device_name,
			board->sm_count, board->compute_major, board->compute_minor,
			tool_bytes(snapshot->device[i].used_bytes, used),
			tool_bytes(board->total_bytes, total),
			snapshot->device[i].busy_permille / 10,
			snapshot->device[i].busy_permille % 10);
	}
	printf("%d processes\n", snapshot->process_count);
}

static void print_json(
	const char *path, const struct board *board, const struct machine_snapshot *snapshot)
{
	printf("{\"board\":");
	tool_print_json_text(board->name);
	printf(",\"state\":");
	tool_print_json_text(path);
	printf(",\"driver_version\":");
	tool_print_json_text(board->driver_version);
	printf(",\"cuda_version\":%d,\"process_count\":%d,\"devices\":[", board->cuda_version,
		snapshot->process_count);
	for (int i = 0; i < board->device_count; i++) {
		char text[MACHINE_UUID_SIZE];
		uint8_t uuid[16];
		unsigned int bus, slot;

		board_uuid(board, i, uuid);
		machine_uuid_text(uuid, text);
		board_pci(board, i, &bus, &slot);
		printf("%s{\"index\":%d,\"uuid\":\"%s\",\"name\":", i ? "," : "", i, text);
		tool_print_json_text(board->device_name);
		printf(",\"pci\":\"00000000:%02X:%02X.0\",\"numa_node\":%d,\"total_bytes\":%" PRIu64
		       ",\"reserved_bytes\":%" PRIu64 ",\"used_bytes\":%" PRIu64
		       ",\"free_bytes\":%" PRIu64 ",\"busy_permille\":%u,\"sm_count\":%d,"
		       "\"compute_major\":%d,\"compute_minor\":%d}",
			bus, slot, board_numa_node(board, i), board->total_bytes,
			board->reserved_bytes, snapshot->device[i].used_bytes,
			snapshot->device[i].free_bytes, snapshot->device[i].busy_permille,
			board->sm_count, board->compute_major, board->compute_minor);
	}
	printf("]}\n");
}

int command_describe(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;
	bool is_json = false;
	const struct arg args[] = {{.name = "--json", .is_given = &is_json}};
	char path[4096];
	int result;

	if (ARGS_READ(argc, argv, args, 0, 0) < 0)
		return TOOL_USAGE;
	if (machine_state_path(path, sizeof(path)))
		return tool_complain("describe", TOOL_FAILED, "the path of the state is too long");
	result = tool_open(&machine);
	if (result)
		return result;
	snapshot = tool_read_snapshot(machine);
	if (!snapshot)
		return TOOL_FAILED;
	if (is_json)
		print_json(path, machine_board(machine), snapshot);
	else
		print_text(path, machine_board(machine), snapshot);
	return TOOL_OK;
}
