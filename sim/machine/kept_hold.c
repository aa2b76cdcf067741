/* SPDX-License-Identifier: Apache-2.0 */
/* Making, holding and passing on kept memory. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/kept.h"
#include "sim/machine/reap.h"
#include "sim/machine/state_file.h"

/*
 * A descriptor of kept memory is one more open file of the machine's state, with a lock for reading on
 * the byte of its place. So /proc tells it from others by its lock. Whether it still exists, in whatever
 * process or socket, shows in the byte: it is locked still. As with the real driver, all descriptors are
 * of one file.
 */

static void describe(const struct machine *machine, uint32_t index, struct machine_kept *ret_kept)
{
	const struct layout_kept *kept = &machine->layout->kept[index];

	*ret_kept = (struct machine_kept){.index = index,
		.generation = kept->generation,
		.device = kept->device,
		.bytes = kept->bytes,
		.is_mine = kept->maker == machine->slot && kept_is_held(kept, kept->maker)};
}

/* Under the lock: a free place, or MACHINE_KEPT_MAX. */
static uint32_t find_place(struct layout *layout)
{
	uint32_t i = 0;

	while (i < MACHINE_KEPT_MAX && layout->kept[i].is_used)
		i++;
	if (i < MACHINE_KEPT_MAX && layout->kept_used <= i)
		layout->kept_used = i + 1;
	return i;
}

int machine_keep(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes,
	enum machine_shown shown, struct machine_kept *ret_kept)
{
	struct layout_slot *mine = state_file_own_slot(machine);
	struct layout_kept *kept;
	uint32_t index;
	MACHINE_SCOPE(machine);

	index = find_place(machine->layout);
	if (index == MACHINE_KEPT_MAX)
		return MACHINE_E_CROWDED;
	kept = &machine->layout->kept[index];
	*kept = (struct layout_kept){.bytes = bytes,
		.generation = kept->generation + 1,
		.device = (uint16_t)device,
		.kind = (uint16_t)kind,
		.tag = (uint16_t)mine->tag,
		.part = mine->device[device].part,
		.maker = (uint16_t)machine->slot,
		.shown = (uint16_t)shown};
	kept_set_held(kept, kept->maker, true);
	/* A process that dies here takes both with it: its slot, and what only it holds. */
	layout_fence();
	kept->is_used = 1;
	mine->device[device].bytes[kind] -= bytes;
	describe(machine, index, ret_kept);
	return 0;
}

int machine_kept_grow(struct machine *machine, uint32_t index, uint64_t bytes)
{
	struct layout_kept *kept = &machine->layout->kept[index];
	int r = machine_grow(machine, kept->device, (enum machine_kind)kept->kind, bytes);

	if (r)
		return r;
	MACHINE_SCOPE(machine);
	kept->bytes += bytes;
	state_file_own_slot(machine)->device[kept->device].bytes[kept->kind] -= bytes;
	return 0;
}

int machine_kept_hold(struct machine *machine, uint32_t index, uint32_t generation,
	bool is_from_maker, struct machine_kept *ret_kept)
{
	struct layout_kept *kept = &machine->layout->kept[index < MACHINE_KEPT_MAX ? index : 0];
	MACHINE_SCOPE(machine);

	reap_dead(machine);
	if (index >= MACHINE_KEPT_MAX || !kept->is_used || kept->generation != generation ||
		(is_from_maker && !kept_is_held(kept, kept->maker)))
		return -ENOENT;
	kept_set_held(kept, (unsigned int)machine->slot, true);
	describe(machine, index, ret_kept);
	return 0;
}

void machine_kept_drop(struct machine *machine, uint32_t index)
{
	_cleanup_fd_ int fd = state_file_reopen(machine);
	MACHINE_SCOPE(machine);

	kept_set_held(&machine->layout->kept[index], (unsigned int)machine->slot, false);
	if (fd >= 0)
		kept_sweep_place(machine->layout, index, fd);
}

int machine_kept_descriptor(struct machine *machine, uint32_t index)
{
	_cleanup_fd_ int fd = state_file_reopen(machine);
	int r = fd < 0 ? fd : state_file_lock_byte(fd, F_RDLCK, LAYOUT_KEPT_OFFSET + index);

	if (r)
		return r;
	MACHINE_SCOPE(machine);
	machine->layout->kept[index].has_descriptor = 1;
	return take_fd(&fd);
}

/* The place whose byte a line of /proc/self/fdinfo says is locked, or -1. */
static int64_t locked_place(const char *line)
{
	const char *last = strrchr(line, ' ');

	if (strncmp(line, "lock:", 5) != 0 || !last)
		return -1;
	return strtoll(last, NULL, 10) - LAYOUT_KEPT_OFFSET;
}

int machine_kept_of_descriptor(
	struct machine *machine, int fd, uint32_t *ret_index, uint32_t *ret_generation)
{
	_cleanup_file_ FILE *file = NULL;
	char line[256];

	if (!state_file_is_own(machine, fd))
		return -ENOENT;
	snprintf(line, sizeof(line), "/proc/self/fdinfo/%d", fd);
	file = fopen(line, "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof(line), file)) {
		int64_t place = locked_place(line);

		if (place < 0 || place >= MACHINE_KEPT_MAX)
			continue;
		*ret_index = (uint32_t)place;
		*ret_generation = machine->layout->kept[place].generation;
		return 0;
	}
	return -ENOENT;
}
