/* SPDX-License-Identifier: Apache-2.0 */
/* Locking and checkpointing processes of the machine. */
#include <errno.h>
#include <sys/stat.h>

#include "sim/machine/reap.h"
#include "sim/machine/schedule.h"
#include "sim/machine/usage.h"

/*
 * The stage is one word of the slot. A checkpointed process's holdings stay written down and just do
 * not count. So neither it nor the process that changes the stage can leave half of it behind.
 */

/* How often a locked process looks whether it may go on. */
#define LOOK_NS 200000

/* Under the lock. Returns the slot of a live process, or NULL. */
static struct layout_slot *find(struct machine *machine, int pid)
{
	struct layout *layout = machine->layout;
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) != 0)
		return NULL;
	reap_dead(machine);
	for (uint32_t i = 0; i < layout->slots_used; i++) {
		struct layout_slot *slot = &layout->slot[i];

		if (layout_is_used(slot) && slot->pid == pid && slot->pid_namespace == st.st_ino)
			return slot;
	}
	return NULL;
}

int machine_read_stage(struct machine *machine, int pid, enum machine_stage *ret_stage)
{
	const struct layout_slot *slot;
	MACHINE_SCOPE(machine);

	slot = find(machine, pid);
	if (!slot)
		return -ESRCH;
	*ret_stage = layout_stage(slot);
	return 0;
}

/* Under the lock: whether all devices have room for what the process held. */
static bool has_room(const struct layout *layout, const struct layout_slot *slot)
{
	for (int device = 0; device < layout->board.board.device_count; device++)
		if (!usage_has_room(layout, device, slot->device[device].part,
			    usage_of_slot(slot, device).total_bytes))
			return false;
	return true;
}

static void set_stage(struct machine *machine, struct layout_slot *slot, enum machine_stage to)
{
	int device_count = machine_board(machine)->device_count;

	/* Until now it was served as before. */
	for (int device = 0; device < device_count; device++)
		schedule_catch_up(machine, device, machine_now_ns());
	/* Pairs with the acquire in machine_wait_running(). */
	atomic_store_explicit(&slot->stage, to, memory_order_release);
	for (int device = 0; device < device_count; device++)
		usage_note_peak(machine, slot, device);
}

int machine_change_stage(
	struct machine *machine, int pid, enum machine_stage from, enum machine_stage to)
{
	struct layout_slot *slot;
	MACHINE_SCOPE(machine);

	slot = find(machine, pid);
	if (!slot)
		return -ESRCH;
	if (layout_stage(slot) != from)
		return MACHINE_E_STAGE;
	if (slot->is_lost)
		return MACHINE_E_LOST;
	if (from == MACHINE_CHECKPOINTED && !has_room(machine->layout, slot)) {
		/* Measured (H200, 580.159): a second try fails, too, whatever room there is by then. */
		slot->is_lost = 1;
		return MACHINE_E_FULL;
	}
	set_stage(machine, slot, to);
	return 0;
}

void machine_wait_running(struct machine *machine)
{
	const struct layout_slot *mine = state_file_own_slot(machine);

	if (!mine)
		return;
	/* Pairs with the release in set_stage(). */
	while (__builtin_expect(
		atomic_load_explicit(&mine->stage, memory_order_acquire) != MACHINE_RUNNING, 0))
		machine_sleep_ns(LOOK_NS);
}
