/* SPDX-License-Identifier: Apache-2.0 */
/* Kept memory: what processes share, and what only descriptors keep. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine/attach.h"
#include "sim/machine/machine.h"

/*
 * A descriptor of kept memory is one more open file of the machine's state, with a lock for reading on
 * the byte of its place. So it is told from others by what /proc shows of its locks, and its end, in
 * whatever process or socket, by asking whether the byte is locked still. As with the real driver, all
 * descriptors are of one file.
 */

#define HOLDER_WORDS (MACHINE_SLOTS_MAX / 64)

static bool holds(const struct layout_kept *kept, unsigned int slot)
{
	return kept->holders[slot / 64] >> (slot % 64) & 1;
}

int kept_bearer(const struct layout *layout, const struct layout_kept *kept)
{
	if (holds(kept, kept->maker))
		return kept->maker;
	for (uint32_t i = 0; i < layout->slots_used; i++) {
		if (holds(kept, i))
			return (int)i;
	}
	return -1;
}

uint64_t kept_borne(const struct layout *layout, int slot, int device, uint64_t *kinds,
	uint64_t *ret_shown_bytes)
{
	uint64_t borne = 0, shown = 0;

	for (uint32_t i = 0; i < layout->kept_used; i++) {
		const struct layout_kept *kept = &layout->kept[i];

		if (!kept->is_used || kept->device != device || kept_bearer(layout, kept) != slot)
			continue;
		borne += kept->bytes;
		if (kept->shows == MACHINE_SHOWN_HOLDER || kept->maker == slot)
			shown += kept->bytes;
		if (kinds != NULL)
			kinds[kept->kind] += kept->bytes;
	}
	if (ret_shown_bytes != NULL)
		*ret_shown_bytes = shown;
	return borne;
}

uint64_t kept_orphaned(const struct layout *layout, uint32_t tag, int device)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < layout->kept_used; i++) {
		const struct layout_kept *kept = &layout->kept[i];

		if (kept->is_used && kept->device == device &&
			(tag == UINT32_MAX || kept->tag == tag) && kept_bearer(layout, kept) < 0)
			bytes += kept->bytes;
	}
	return bytes;
}

void kept_forget_slot(struct layout *layout, unsigned int slot)
{
	for (uint32_t i = 0; i < layout->kept_used; i++)
		layout->kept[i].holders[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
}

static bool is_locked(int fd, uint32_t index)
{
	struct flock lock = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LAYOUT_KEPT_OFFSET + index,
		.l_len = 1};

	return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

void kept_sweep(struct layout *layout, int fd)
{
	for (uint32_t i = 0; i < layout->kept_used; i++) {
		struct layout_kept *kept = &layout->kept[i];

		if (!kept->is_used || kept_bearer(layout, kept) >= 0 ||
			(kept->has_descriptor && is_locked(fd, i)))
			continue;
		/* Relaxed: under the lock. */
		__atomic_store_n(&kept->is_used, 0, __ATOMIC_RELAXED);
	}
}

static void describe(const struct machine *machine, uint32_t index, struct machine_kept *ret_kept)
{
	const struct layout_kept *kept = &machine->layout->kept[index];

	*ret_kept = (struct machine_kept){.index = index,
		.turn = kept->turn,
		.device = kept->device,
		.bytes = kept->bytes,
		.is_mine = kept->maker == machine->slot && holds(kept, kept->maker)};
}

/* Under the lock: a free place, or MACHINE_KEPT_MAX. */
static uint32_t find_place(struct machine *machine)
{
	struct layout *layout = machine->layout;
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
	struct layout *layout = machine->layout;
	struct layout_kept *kept;
	unsigned int slot = (unsigned int)machine->slot;
	uint32_t index;

	attach_lock(machine);
	index = find_place(machine);
	if (index == MACHINE_KEPT_MAX) {
		attach_unlock(machine);
		return MACHINE_E_CROWDED;
	}
	kept = &layout->kept[index];
	*kept = (struct layout_kept){.bytes = bytes,
		.turn = kept->turn + 1,
		.device = (uint16_t)device,
		.kind = (uint16_t)kind,
		.tag = (uint16_t)layout->slot[slot].tag,
		.maker = (uint16_t)slot,
		.shows = (uint16_t)shown};
	kept->holders[slot / 64] = UINT64_C(1) << (slot % 64);
	/* Whoever dies here takes both with it: its slot, and what only it holds. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&kept->is_used, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&layout->slot[slot].device[device].bytes[kind], bytes, __ATOMIC_RELAXED);
	describe(machine, index, ret_kept);
	attach_unlock(machine);
	return 0;
}

int machine_kept_grow(struct machine *machine, uint32_t index, uint64_t bytes)
{
	struct layout_kept *kept = &machine->layout->kept[index];
	int r = machine_grow(machine, kept->device, (enum machine_kind)kept->kind, bytes);

	if (r != 0)
		return r;
	attach_lock(machine);
	kept->bytes += bytes;
	__atomic_fetch_sub(
		&machine->layout->slot[machine->slot].device[kept->device].bytes[kept->kind], bytes,
		__ATOMIC_RELAXED);
	attach_unlock(machine);
	return 0;
}

int machine_kept_hold(struct machine *machine, uint32_t index, uint32_t turn, bool is_from_maker,
	struct machine_kept *ret_kept)
{
	struct layout_kept *kept = &machine->layout->kept[index < MACHINE_KEPT_MAX ? index : 0];
	unsigned int slot = (unsigned int)machine->slot;
	int r = -ENOENT;

	attach_lock(machine);
	attach_reap(machine);
	if (index < MACHINE_KEPT_MAX && kept->is_used && kept->turn == turn &&
		(!is_from_maker || holds(kept, kept->maker))) {
		kept->holders[slot / 64] |= UINT64_C(1) << (slot % 64);
		describe(machine, index, ret_kept);
		r = 0;
	}
	attach_unlock(machine);
	return r;
}

void machine_kept_drop(struct machine *machine, uint32_t index)
{
	unsigned int slot = (unsigned int)machine->slot;

	attach_lock(machine);
	machine->layout->kept[index].holders[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	attach_reap(machine);
	attach_unlock(machine);
}

int machine_kept_descriptor(struct machine *machine, uint32_t index)
{
	struct flock lock = {.l_type = F_RDLCK,
		.l_whence = SEEK_SET,
		.l_start = LAYOUT_KEPT_OFFSET + index,
		.l_len = 1};
	int fd = attach_reopen(machine);

	if (fd < 0)
		return fd;
	if (fcntl(fd, F_OFD_SETLK, &lock) != 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	attach_lock(machine);
	machine->layout->kept[index].has_descriptor = 1;
	attach_unlock(machine);
	return fd;
}

static bool is_of_machine(const struct machine *machine, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_dev == machine->file_dev &&
	       st.st_ino == machine->file_ino;
}

int machine_kept_of_descriptor(
	struct machine *machine, int fd, uint32_t *ret_index, uint32_t *ret_turn)
{
	char path[64], line[256];
	FILE *file;
	int r = -ENOENT;

	if (!is_of_machine(machine, fd))
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	if (file == NULL)
		return -errno;
	while (r != 0 && fgets(line, sizeof(line), file) != NULL) {
		const char *last = strrchr(line, ' ');
		long long at = last != NULL ? strtoll(last, NULL, 10) - LAYOUT_KEPT_OFFSET : -1;

		if (strncmp(line, "lock:", 5) == 0 && at >= 0 && at < MACHINE_KEPT_MAX) {
			*ret_index = (uint32_t)at;
			*ret_turn = machine->layout->kept[at].turn;
			r = 0;
		}
	}
	fclose(file);
	return r;
}
