/* SPDX-License-Identifier: Apache-2.0 */
/* Locking and checkpointing processes of the machine. */
#include <errno.h>
#include <sys/stat.h>

#include "sim/machine/attach.h"
#include "sim/machine/machine.h"
#include "sim/machine/schedule.h"

/*
 * The stage is one word of the slot: what a checkpointed process holds stays written down and just
 * does not count, so neither it nor the one who changes the stage can leave half of it behind.
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
	attach_reap(machine);
	for (uint32_t i = 0; i < layout->slots_used; i++) {
		struct layout_slot *slot = &layout->slot[i];

		if (slot->state == LAYOUT_SLOT_USED && slot->pid == pid &&
			slot->pid_namespace == st.st_ino)
			return slot;
	}
	return NULL;
}

int machine_read_stage(struct machine *machine, int pid, enum machine_stage *ret_stage)
{
	const struct layout_slot *slot;
	int r = -ESRCH;

	attach_lock(machine);
	slot = find(machine, pid);
	if (slot != NULL) {
		*ret_stage = (enum machine_stage)slot->stage;
		r = 0;
	}
	attach_unlock(machine);
	return r;
}

/* Under the lock: whether all devices have room for what the process held. */
static bool has_room(const struct layout *layout, const struct layout_slot *slot)
{
	uint64_t total = layout->board.board.total_bytes;

	for (int device = 0; device < layout->board.board.device_count; device++) {
		uint64_t used = attach_sum_used(layout, device);

		if (used > total || attach_slot_total(&slot->device[device]) > total - used)
			return false;
	}
	return true;
}

int machine_change_stage(
	struct machine *machine, int pid, enum machine_stage from, enum machine_stage to)
{
	struct layout *layout = machine->layout;
	struct layout_slot *slot;
	int r = 0;

	attach_lock(machine);
	slot = find(machine, pid);
	if (slot == NULL)
		r = -ESRCH;
	else if (slot->stage != from)
		r = MACHINE_E_STAGE;
	else if (slot->is_lost)
		r = MACHINE_E_LOST;
	else if (from == MACHINE_CHECKPOINTED && !has_room(layout, slot))
		r = MACHINE_E_FULL;
	/* Measured (H200, 580.159): a second try fails, too, whatever room there is by then. */
	if (r == MACHINE_E_FULL)
		slot->is_lost = 1;
	if (r == 0) {
		/* Until now it was served as before. */
		for (int device = 0; device < layout->board.board.device_count; device++)
			schedule_catch_up(machine, device, machine_now_ns());
		/* Pairs with the acquire in machine_wait_running(). */
		__atomic_store_n(&slot->stage, to, __ATOMIC_RELEASE);
		for (int device = 0; device < layout->board.board.device_count; device++)
			attach_note_peak(machine, (int)(slot - layout->slot), device);
	}
	attach_unlock(machine);
	return r;
}

void machine_wait_running(struct machine *machine)
{
	const struct layout_slot *slot;

	if (machine->slot < 0)
		return;
	slot = &machine->layout->slot[machine->slot];
	/* Pairs with the release in machine_change_stage(). */
	while (__builtin_expect(
		__atomic_load_n(&slot->stage, __ATOMIC_ACQUIRE) != MACHINE_RUNNING, 0))
		machine_sleep_ns(LOOK_NS);
}
