/* SPDX-License-Identifier: Apache-2.0 */
/* Freeing what dead processes held. */
#include "sim/machine/reap.h"

#include "base/cleanup.h"
#include "sim/machine/kept.h"
#include "sim/machine/schedule_view.h"

/*
 * A process is alive exactly as long as it holds a file lock on its slot's byte. The lock belongs
 * to an open file description that a mapping of the process keeps, and a descriptor of its children of fork() (slot.c). So
 * it falls when the address space goes and no child has the descriptor: at exit, exec, or any signal. PIDs were
 * rejected: they are reused, and mean nothing across PID namespaces.
 */

/* What the devices have served until now is counted, before a process is forgotten. */
static void catch_up(struct machine *machine)
{
	for (int i = 0; i < LAYOUT_UNITS; i++) {
		if (!layout_has_unit(machine->layout, i))
			continue;
		LOCK_SCOPE_AS(lock, lock_try(&machine->layout->device[i].lock.mutex));

		/* One that is stopped with the lock holds nobody up. */
		if (lock)
			schedule_view_advance(machine, i, machine_now_ns());
	}
}

int reap_dead(struct machine *machine)
{
	struct layout *layout = machine->layout;
	_cleanup_fd_ int fd = state_file_reopen(machine);
	int reaped = 0;

	if (fd < 0)
		return 0;
	for (unsigned int i = 0; i < layout->slots_used; i++) {
		if (!layout_is_used(&layout->slot[i]) ||
			state_file_is_byte_locked(fd, LAYOUT_LIVE_OFFSET + i))
			continue;
		catch_up(machine);
		layout_set_state(&layout->slot[i], LAYOUT_SLOT_FREE);
		kept_forget_slot(layout, i);
		reaped++;
	}
	kept_sweep(layout, fd);
	return reaped;
}
