/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu-sim mig */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/mig.h"
#include "sim/tool/args.h"
#include "sim/tool/command.h"
#include "sim/tool/number.h"

#define ALL_DEVICES (-1)

static int set_mode(struct machine *machine, int device, bool is_enabled)
{
	int count = machine_board(machine)->device_count;

	if (device >= count)
		return tool_complain(
			"mig", TOOL_FAILED, "--device %d: there is no such device", device);
	if (!mig_profile_at(machine_board(machine), 0))
		return tool_complain("mig", TOOL_FAILED, "cards of this board have no MIG");
	for (int i = device < 0 ? 0 : device; i < (device < 0 ? count : device + 1); i++)
		if (mig_set_mode(machine, i, is_enabled))
			return tool_complain("mig", TOOL_FAILED,
				"device %d has instances or is in use: its mode is pending", i);
	return TOOL_OK;
}

/* Its first compute instance, or -1: programs cannot use it. */
static int first_compute(const struct mig_instance *instance)
{
	for (int i = 0; i < MIG_COMPUTES_MAX; i++)
		if (instance->compute[i].is_used)
			return i;
	return -1;
}

static void print_instance(const struct board *board, int device,
	const struct mig_instance *instance, bool is_json, bool is_first)
{
	const struct mig_profile *profile = mig_profile_of_id(board, instance->profile_id);
	int compute = first_compute(instance);
	char uuid[MACHINE_UUID_SIZE] = "";

	if (compute >= 0)
		mig_uuid_text(board, device, instance->id, (unsigned int)compute, uuid);
	printf(is_json ? "%s{\"id\":%u,\"profile\":\"%s\",\"start\":%u,\"size\":%u,\"uuid\":\"%s\"}"
		       : "%s  instance %u %s at %u:%u %s\n",
		is_json && !is_first ? "," : "", instance->id, profile->name, instance->start,
		profile->memory_slices, uuid);
}

static void print_card(struct machine *machine, int device, bool is_json)
{
	const struct board *board = machine_board(machine);
	struct mig_card card;
	bool is_first = true;

	mig_read(machine, device, &card);
	printf(is_json ? "{\"index\":%d,\"mode\":\"%s\",\"pending\":\"%s\",\"instances\":["
		       : "device %d %s, pending %s\n",
		device, card.is_enabled ? "mig" : "whole", card.is_pending ? "mig" : "whole");
	for (int i = 0; i < MIG_INSTANCES_MAX; i++) {
		if (!card.instance[i].is_used)
			continue;
		print_instance(board, device, &card.instance[i], is_json, is_first);
		is_first = false;
	}
	if (is_json)
		printf("]}");
}

static void print_cards(struct machine *machine, bool is_json)
{
	for (int i = 0; i < machine_board(machine)->device_count; i++) {
		if (is_json)
			putchar(i ? ',' : '[');
		print_card(machine, i, is_json);
	}
	if (is_json)
		printf("]\n");
}

int command_mig(int argc, char **argv)
{
	_cleanup_(tool_close) struct machine *machine = NULL;
	const char *device_text = NULL;
	bool is_json = false;
	const struct arg args[] = {{.name = "--device", .text = &device_text},
		{.name = "--json", .is_given = &is_json}};
	int result, words = ARGS_READ(argc, argv, args, 0, 1);
	uint64_t device = 0;

	if (words < 0)
		return TOOL_USAGE;
	if (words && strcmp(argv[1], "on") != 0 && strcmp(argv[1], "off") != 0)
		return tool_complain("mig", TOOL_USAGE, "give on, off or nothing");
	if (device_text && (number_parse(device_text, &device) || device >= MACHINE_DEVICES_MAX))
		return tool_complain(
			"mig", TOOL_USAGE, "--device %s: not a number of a device", device_text);
	result = tool_open(&machine);
	if (result)
		return result;
	if (words)
		return set_mode(
			machine, device_text ? (int)device : ALL_DEVICES, !strcmp(argv[1], "on"));
	print_cards(machine, is_json);
	return TOOL_OK;
}
