/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the machine from outside: snapshots, truths, peaks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine/kept.h"
#include "sim/machine/reap.h"
#include "sim/machine/schedule.h"
#include "sim/machine/usage.h"
#include "sim/machine/utilization.h"

static unsigned int permille(
	const struct layout_utilization *utilization, const struct machine_snapshot *snapshot)
{
	uint64_t window_ns = snapshot->window_ns;

	if (!window_ns)
		return 0;
	return (unsigned int)(utilization_within(utilization, snapshot->time_ns, window_ns) * 1000 /
			      window_ns);
}

static void read_held(const struct layout *layout, uint32_t index, int device,
	const struct machine_snapshot *snapshot, struct machine_held *ret_held)
{
	const struct layout_slot_device *from = &layout->slot[index].device[device];
	struct usage usage = usage_of_slot(&layout->slot[index], device);
	struct kept_sum kept;

	memset(ret_held, 0, sizeof(*ret_held));
	ret_held->has_context = from->contexts > 0;
	ret_held->has_part = from->part != 0;
	if (from->part) {
		ret_held->instance = (from->part - 1) >> 8;
		ret_held->compute = (from->part - 1) & 0xff;
	}
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		ret_held->bytes[kind] = from->bytes[kind];
	kept = kept_of_slot(layout, (int)index, device, ret_held->bytes);
	ret_held->held_bytes = usage.held_bytes + kept.bytes;
	ret_held->total_bytes = usage.total_bytes + kept.bytes;
	if (ret_held->has_context)
		ret_held->shown_bytes =
			usage.held_bytes - from->bytes[MACHINE_MANAGED] + kept.shown_bytes;
	ret_held->busy_ns = from->utilization.work_ns;
	ret_held->busy_permille = permille(&from->utilization, snapshot);
	ret_held->seen_percent = utilization_seen_percent(&from->utilization, snapshot->time_ns);
}

static void read_process(
	const struct layout *layout, uint32_t index, struct machine_snapshot *snapshot)
{
	const struct layout_slot *slot = &layout->slot[index];
	struct machine_process *process = &snapshot->process[snapshot->process_count++];

	memset(process, 0, sizeof(*process));
	process->pid = slot->pid;
	process->pid_namespace = slot->pid_namespace;
	process->start_time = slot->start_time;
	process->slot = index;
	process->is_mps_client = slot->server != 0;
	if (slot->tag < MACHINE_TAGS_MAX)
		memcpy(process->tag, layout->tag[slot->tag].name, MACHINE_TAG_SIZE - 1);
	for (int i = 0; i < snapshot->device_count; i++) {
		read_held(layout, index, i, snapshot, &process->device[i]);
		snapshot->device[i].used_bytes += process->device[i].total_bytes;
	}
}

static void read_device(struct machine *machine, int index, struct machine_snapshot *snapshot)
{
	const struct layout_utilization *utilization = &machine->layout->device[index].utilization;
	struct machine_device *device = &snapshot->device[index];

	schedule_catch_up(machine, index, snapshot->time_ns);
	device->busy_ns = utilization->work_ns;
	device->busy_permille = permille(utilization, snapshot);
	device->used_bytes = kept_of_nobody(machine->layout, KEPT_ANY_TAG, index);
}

int machine_read_snapshot(
	struct machine *machine, uint64_t window_ns, struct machine_snapshot *ret_snapshot)
{
	const struct layout *layout = machine->layout;
	uint64_t total = layout->board.board.total_bytes;
	MACHINE_SCOPE(machine);

	reap_dead(machine);
	ret_snapshot->time_ns = machine_now_ns();
	ret_snapshot->window_ns = window_ns;
	ret_snapshot->device_count = layout->board.board.device_count;
	ret_snapshot->process_count = 0;
	for (int i = 0; i < ret_snapshot->device_count; i++)
		read_device(machine, i, ret_snapshot);
	for (uint32_t i = 0; i < layout->slots_used; i++)
		if (usage_is_counted(&layout->slot[i]))
			read_process(layout, i, ret_snapshot);
	for (int i = 0; i < ret_snapshot->device_count; i++) {
		struct machine_device *device = &ret_snapshot->device[i];

		device->free_bytes = device->used_bytes < total ? total - device->used_bytes : 0;
	}
	return 0;
}

/* Under the lock: the index of a tag, or the number of tags. */
static uint32_t find_tag(const struct layout *layout, const char *name)
{
	uint32_t i = 0;

	while (i < layout->tag_count && strcmp(layout->tag[i].name, name) != 0)
		i++;
	return i;
}

/* Under the lock: the live processes of a tag, the checkpointed ones among them. */
static int count_processes(const struct layout *layout, uint32_t tag)
{
	int count = 0;

	for (uint32_t i = 0; i < layout->slots_used; i++)
		count += layout_is_used(&layout->slot[i]) && layout->slot[i].tag == tag;
	return count;
}

int machine_read_truth(
	struct machine *machine, const char *tag, int device, struct machine_truth *ret_truth)
{
	const struct layout *layout = machine->layout;
	struct usage usage;
	uint32_t index;

	if (device < 0 || device >= layout->board.board.device_count)
		return -EINVAL;
	memset(ret_truth, 0, sizeof(*ret_truth));
	snprintf(ret_truth->tag, sizeof(ret_truth->tag), "%s", tag);
	ret_truth->device = device;
	MACHINE_SCOPE(machine);
	reap_dead(machine);
	index = find_tag(layout, ret_truth->tag);
	if (index == layout->tag_count)
		return 0;
	usage = usage_of_tag(layout, index, device);
	ret_truth->process_count = count_processes(layout, index);
	ret_truth->held_bytes = usage.held_bytes;
	ret_truth->total_bytes = usage.total_bytes;
	ret_truth->peak_held_bytes = layout->tag[index].peak_held_bytes[device];
	ret_truth->peak_total_bytes = layout->tag[index].peak_total_bytes[device];
	return 0;
}

int machine_read_tag(struct machine *machine, unsigned int index, char ret_tag[MACHINE_TAG_SIZE])
{
	MACHINE_SCOPE(machine);

	if (index >= machine->layout->tag_count)
		return -ENOENT;
	snprintf(ret_tag, MACHINE_TAG_SIZE, "%s", machine->layout->tag[index].name);
	return 0;
}

void machine_reset_peaks(struct machine *machine)
{
	struct layout *layout = machine->layout;
	MACHINE_SCOPE(machine);

	reap_dead(machine);
	for (uint32_t i = 0; i < layout->tag_count; i++)
		for (int device = 0; device < MACHINE_DEVICES_MAX; device++) {
			struct usage usage = usage_of_tag(layout, i, device);

			layout->tag[i].peak_held_bytes[device] = usage.held_bytes;
			layout->tag[i].peak_total_bytes[device] = usage.total_bytes;
		}
}
