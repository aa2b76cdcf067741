/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim truth: the bytes really held, whatever a tenant library says. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"

/* What a listing is about: everything, or one tag. */
struct scope {
	struct machine *machine;
	const struct machine_snapshot *snapshot;
	const char *tag; /* NULL: all */
};

static bool is_wanted(const struct scope *scope, const char *tag)
{
	return !scope->tag || !strcmp(scope->tag, tag);
}

/* Calls `print` for each wanted tag on each device. */
static void each_tag(
	const struct scope *scope, void (*print)(const struct machine_truth *truth, bool is_first))
{
	char tag[MACHINE_TAG_SIZE];
	struct machine_truth truth;
	bool is_first = true;

	for (unsigned int i = 0; !machine_read_tag(scope->machine, i, tag); i++)
		for (int device = 0; device < scope->snapshot->device_count; device++)
			if (is_wanted(scope, tag) &&
				!machine_read_truth(scope->machine, tag, device, &truth)) {
				print(&truth, is_first);
				is_first = false;
			}
}

/* Calls `print` for each wanted process on each device of which it holds something. */
static void each_process(const struct scope *scope,
	void (*print)(const struct machine_process *process, int device, bool is_first))
{
	bool is_first = true;

	for (int i = 0; i < scope->snapshot->process_count; i++) {
		const struct machine_process *process = &scope->snapshot->process[i];

		for (int device = 0; device < scope->snapshot->device_count; device++)
			if (is_wanted(scope, process->tag) && process->device[device].total_bytes) {
				print(process, device, is_first);
				is_first = false;
			}
	}
}

static void print_text_tag(const struct machine_truth *truth, bool is_first)
{
	char held[TOOL_BYTES_SIZE], total[TOOL_BYTES_SIZE], peak[TOOL_BYTES_SIZE];

	(void)is_first;
	if (truth->peak_total_bytes)
		printf("%-24s %6d %9d %12s %12s %12s\n", *truth->tag ? truth->tag : "(none)",
			truth->device, truth->process_count, tool_bytes(truth->held_bytes, held),
			tool_bytes(truth->peak_held_bytes, peak),
			tool_bytes(truth->total_bytes, total));
}

static void print_text_process(const struct machine_process *process, int device, bool is_first)
{
	const struct machine_held *on = &process->device[device];
	char held[TOOL_BYTES_SIZE], part[TOOL_BYTES_SIZE];

	(void)is_first;
	printf("process %d '%s' device %d: %s", (int)process->pid, process->tag, device,
		tool_bytes(on->held_bytes, held));
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		if (on->bytes[kind])
			printf(", %s %s", machine_kind_name((enum machine_kind)kind),
				tool_bytes(on->bytes[kind], part));
	putchar('\n');
}

static void print_text(const struct scope *scope)
{
	printf("%-24s %6s %9s %12s %12s %12s\n", "TAG", "DEVICE", "PROCESSES", "HELD", "PEAK",
		"WITH DRIVER");
	each_tag(scope, print_text_tag);
	each_process(scope, print_text_process);
}

static void print_json_tag(const struct machine_truth *truth, bool is_first)
{
	printf("%s{\"tag\":", is_first ? "" : ",");
	tool_print_json_text(truth->tag);
	printf(",\"device\":%d,\"processes\":%d,\"held_bytes\":%" PRIu64 ",\"total_bytes\":%" PRIu64
	       ",\"peak_held_bytes\":%" PRIu64 ",\"peak_total_bytes\":%" PRIu64 "}",
		truth->device, truth->process_count, truth->held_bytes, truth->total_bytes,
		truth->peak_held_bytes, truth->peak_total_bytes);
}

static void print_json_process(const struct machine_process *process, int device, bool is_first)
{
	const struct machine_held *on = &process->device[device];

	printf("%s{\"pid\":%d,\"tag\":", is_first ? "" : ",", (int)process->pid);
	tool_print_json_text(process->tag);
	printf(",\"device\":%d,\"shown_bytes\":%" PRIu64 ",\"held_bytes\":%" PRIu64
	       ",\"total_bytes\":%" PRIu64 ",\"busy_permille\":%u,\"busy_ns\":%" PRIu64,
		device, on->shown_bytes, on->held_bytes, on->total_bytes, on->busy_permille,
		on->busy_ns);
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		printf("%s\"%s\":%" PRIu64, kind ? "," : ",\"bytes\":{",
			machine_kind_name((enum machine_kind)kind), on->bytes[kind]);
	printf("}}");
}

static void print_json(const struct scope *scope)
{
	printf("{\"tags\":[");
	each_tag(scope, print_json_tag);
	printf("],\"processes\":[");
	each_process(scope, print_json_process);
	printf("],\"devices\":[");
	for (int i = 0; i < scope->snapshot->device_count; i++)
		printf("%s{\"device\":%d,\"used_bytes\":%" PRIu64 ",\"free_bytes\":%" PRIu64
		       ",\"busy_permille\":%u}",
			i ? "," : "", i, scope->snapshot->device[i].used_bytes,
			scope->snapshot->device[i].free_bytes,
			scope->snapshot->device[i].busy_permille);
	printf("]}\n");
}

int command_truth(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	_cleanup_free_ struct machine_snapshot *snapshot = NULL;
	struct scope scope = {0};
	bool is_json = false;
	const struct arg args[] = {
		{.name = "--tag", .text = &scope.tag},
		{.name = "--json", .is_given = &is_json},
	};
	int result;

	if (ARGS_READ(argc, argv, args, 0, 0) < 0)
		return TOOL_USAGE;
	result = tool_open(&machine);
	if (result)
		return result;
	snapshot = tool_read_snapshot(machine);
	if (!snapshot)
		return TOOL_FAILED;
	scope.machine = machine;
	scope.snapshot = snapshot;
	if (is_json)
		print_json(&scope);
	else
		print_text(&scope);
	return TOOL_OK;
}
