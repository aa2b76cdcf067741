/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the machine from outside: snapshots, truths, peaks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sim/machine/attach.h"
#include "sim/machine/machine.h"
#include "sim/machine/schedule.h"
#include "sim/machine/utilization.h"

static unsigned int permille(
	const struct layout_utilization *busy, uint64_t now, uint64_t window_ns)
{
	return window_ns > 0
		       ? (unsigned int)(utilization_within(busy, now, window_ns) * 1000 / window_ns)
		       : 0;
}

static void read_held(const struct layout_slot_device *device, uint64_t now, uint64_t window_ns,
	struct machine_held *ret_held)
{
	memset(ret_held, 0, sizeof(*ret_held));
	ret_held->has_context = device->contexts > 0;
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		ret_held->bytes[kind] = __atomic_load_n(&device->bytes[kind], __ATOMIC_RELAXED);
	ret_held->total_bytes = attach_slot_total(device);
	ret_held->held_bytes = attach_slot_held(device);
	if (ret_held->has_context)
		ret_held->shown_bytes = ret_held->held_bytes - ret_held->bytes[MACHINE_MANAGED];
	ret_held->busy_ns = device->busy.work_ns;
	ret_held->busy_permille = permille(&device->busy, now, window_ns);
}

static void add_borne(
	const struct layout *layout, uint32_t slot, int device, struct machine_held *held)
{
	uint64_t shown, borne = kept_borne(layout, (int)slot, device, held->bytes, &shown);

	held->held_bytes += borne;
	held->total_bytes += borne;
	if (held->has_context)
		held->shown_bytes += shown;
}

static void read_process(const struct layout *layout, uint32_t index, uint64_t now,
	uint64_t window_ns, struct machine_snapshot *snapshot)
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
		struct machine_device *device = &snapshot->device[i];

		read_held(&slot->device[i], now, window_ns, &process->device[i]);
		add_borne(layout, index, i, &process->device[i]);
		device->used_bytes += process->device[i].total_bytes;
	}
}

int machine_read_snapshot(
	struct machine *machine, uint64_t window_ns, struct machine_snapshot *ret_snapshot)
{
	struct layout *layout = machine->layout;
	uint64_t total = layout->board.board.total_bytes;

	ret_snapshot->window_ns = window_ns;
	ret_snapshot->device_count = layout->board.board.device_count;
	ret_snapshot->process_count = 0;
	memset(ret_snapshot->device, 0, sizeof(ret_snapshot->device));
	attach_lock(machine);
	attach_reap(machine);
	ret_snapshot->time_ns = machine_now_ns();
	for (int i = 0; i < ret_snapshot->device_count; i++) {
		const struct layout_utilization *busy = &layout->device[i].busy;

		schedule_catch_up(machine, i, ret_snapshot->time_ns);
		ret_snapshot->device[i].busy_ns = busy->work_ns;
		ret_snapshot->device[i].busy_permille =
			permille(busy, ret_snapshot->time_ns, window_ns);
	}
	for (uint32_t i = 0; i < layout->slots_used; i++) {
		if (attach_is_counted(&layout->slot[i]))
			read_process(layout, i, ret_snapshot->time_ns, window_ns, ret_snapshot);
	}
	for (int i = 0; i < ret_snapshot->device_count; i++)
		ret_snapshot->device[i].used_bytes += kept_orphaned(layout, UINT32_MAX, i);
	attach_unlock(machine);
	for (int i = 0; i < ret_snapshot->device_count; i++) {
		struct machine_device *device = &ret_snapshot->device[i];

		device->free_bytes = device->used_bytes < total ? total - device->used_bytes : 0;
	}
	return 0;
}

/* Under the lock: what the live processes of a tag hold, and what nobody bears of what it made. */
static void sum_tag(const struct layout *layout, uint32_t tag, int device, uint64_t *ret_held,
	uint64_t *ret_total)
{
	uint64_t orphaned = kept_orphaned(layout, tag, device), held = orphaned, total = orphaned;

	for (uint32_t i = 0; i < layout->slots_used; i++) {
		const struct layout_slot *slot = &layout->slot[i];
		uint64_t borne;

		if (!attach_is_counted(slot) || slot->tag != tag)
			continue;
		borne = kept_borne(layout, (int)i, device, NULL, NULL);
		held += attach_slot_held(&slot->device[device]) + borne;
		total += attach_slot_total(&slot->device[device]) + borne;
	}
	*ret_held = held;
	*ret_total = total;
}

int machine_read_truth(
	struct machine *machine, const char *tag, int device, struct machine_truth *ret_truth)
{
	struct layout *layout = machine->layout;

	if (device < 0 || device >= layout->board.board.device_count)
		return -EINVAL;
	memset(ret_truth, 0, sizeof(*ret_truth));
	snprintf(ret_truth->tag, sizeof(ret_truth->tag), "%s", tag);
	ret_truth->device = device;
	attach_lock(machine);
	attach_reap(machine);
	for (uint32_t i = 0; i < layout->tag_count; i++) {
		if (strcmp(layout->tag[i].name, ret_truth->tag) != 0)
			continue;
		ret_truth->peak_held_bytes = layout->tag[i].peak_held_bytes[device];
		ret_truth->peak_total_bytes = layout->tag[i].peak_total_bytes[device];
		for (uint32_t j = 0; j < layout->slots_used; j++) {
			if (layout->slot[j].state == LAYOUT_SLOT_USED && layout->slot[j].tag == i)
				ret_truth->process_count++;
		}
		sum_tag(layout, i, device, &ret_truth->held_bytes, &ret_truth->total_bytes);
		break;
	}
	attach_unlock(machine);
	return 0;
}

int machine_read_tag(struct machine *machine, unsigned int index, char ret_tag[MACHINE_TAG_SIZE])
{
	int r = -ENOENT;

	attach_lock(machine);
	if (index < machine->layout->tag_count) {
		memcpy(ret_tag, machine->layout->tag[index].name, MACHINE_TAG_SIZE);
		ret_tag[MACHINE_TAG_SIZE - 1] = '\0';
		r = 0;
	}
	attach_unlock(machine);
	return r;
}

void machine_reset_peaks(struct machine *machine)
{
	struct layout *layout = machine->layout;

	attach_lock(machine);
	attach_reap(machine);
	for (uint32_t i = 0; i < layout->tag_count; i++) {
		struct layout_tag *tag = &layout->tag[i];

		for (int device = 0; device < MACHINE_DEVICES_MAX; device++) {
			sum_tag(layout, i, device, &tag->peak_held_bytes[device],
				&tag->peak_total_bytes[device]);
		}
	}
	attach_unlock(machine);
}

void machine_reset(struct machine *machine)
{
	machine_reset_peaks(machine);
	inject_clear_rules(machine);
	inject_clear_kernels(machine);
	inject_clear_counts(machine);
}
