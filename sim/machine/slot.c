/* SPDX-License-Identifier: Apache-2.0 */
/* The part of one process in the machine: joining, taking and giving back, working. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/machine/attach.h"
#include "sim/machine/machine.h"
#include "sim/machine/mps_client.h"
#include "sim/machine/schedule.h"

/*
 * A device's use is the sum over the slots of its live processes, made under the lock each time a
 * process wants more. No total is kept, so a process killed anywhere cannot leave a wrong one: its
 * slot counts until it is reaped, and not after.
 */

static uint64_t read_start_time(void)
{
	char text[1024];
	const char *p;
	unsigned long long start = 0;
	ssize_t n;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	/* The name in parentheses may hold anything; the 20th field after it is the start. */
	p = strrchr(text, ')');
	for (int field = 0; p != NULL && field < 20; field++)
		p = strchr(p + 1, ' ');
	if (p != NULL)
		start = strtoull(p + 1, NULL, 10);
	return start;
}

static uint64_t read_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* The index of the tag, made if it is new. The last index takes all tags too many. */
static uint32_t find_tag(struct layout *layout, const char *name)
{
	uint32_t count = layout->tag_count;

	for (uint32_t i = 0; i < count; i++) {
		if (strncmp(layout->tag[i].name, name, MACHINE_TAG_SIZE - 1) == 0)
			return i;
	}
	if (count == MACHINE_TAGS_MAX)
		return MACHINE_TAGS_MAX - 1;
	memset(&layout->tag[count], 0, sizeof(layout->tag[count]));
	snprintf(layout->tag[count].name, MACHINE_TAG_SIZE, "%s", name);
	/* Relaxed: read under the lock; only the order for a killed holder matters, see below. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	__atomic_store_n(&layout->tag_count, count + 1, __ATOMIC_RELAXED);
	return count;
}

static int lock_slot(int fd, unsigned int slot)
{
	struct flock lock = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LAYOUT_LIVE_OFFSET + slot,
		.l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &lock) == 0 ? 0 : -errno;
}

/* Under the lock: finds a slot and locks its byte through `fd`. */
static int claim(struct machine *machine, int fd)
{
	struct layout *layout = machine->layout;

	for (int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < MACHINE_SLOTS_MAX; i++) {
			/* A process on its way out may still hold the byte of a free slot. */
			if (layout->slot[i].state == LAYOUT_SLOT_FREE && lock_slot(fd, i) == 0)
				return (int)i;
		}
		if (attach_reap(machine) == 0)
			break;
	}
	return -1;
}

/* All of it but what schedule_reset_slot() does under other locks. */
static void reset_slot(struct layout_slot *slot, int device_count)
{
	memset(slot, 0, offsetof(struct layout_slot, device));
	for (int device = 0; device < device_count; device++)
		memset(&slot->device[device], 0, offsetof(struct layout_slot_device, turn));
}

int machine_join(struct machine *machine)
{
	struct layout *layout = machine->layout;
	const char *tag = getenv("VGPU_SIM_TAG");
	uint64_t server = mps_client_find_server();
	char cut[MACHINE_TAG_SIZE];
	struct layout_slot *slot;
	void *page;
	int fd, index;

	if (machine->slot >= 0)
		return 0;
	snprintf(cut, sizeof(cut), "%s", tag != NULL ? tag : "");
	fd = attach_reopen(machine);
	if (fd < 0)
		return fd;
	page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		int r = -errno;

		close(fd);
		return r;
	}
	/* A child must not keep its parent alive. */
	madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_DONTFORK);

	attach_lock(machine);
	index = claim(machine, fd);
	if (index >= 0) {
		slot = &layout->slot[index];
		schedule_reset_slot(machine, (uint32_t)index);
		reset_slot(slot, machine_board(machine)->device_count);
		kept_forget_slot(layout, (unsigned int)index);
		slot->pid = getpid();
		slot->tag = find_tag(layout, cut);
		slot->start_time = read_start_time();
		slot->pid_namespace = read_pid_namespace();
		slot->server = server;
		slot->percent = server != 0 ? mps_client_read_percent() : 100;
		if (layout->slots_used <= (uint32_t)index)
			layout->slots_used = (uint32_t)index + 1;
		/* The compiler must not move the commit up; a killed process needs no more. */
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		__atomic_store_n(&slot->state, LAYOUT_SLOT_USED, __ATOMIC_RELAXED);
	}
	attach_unlock(machine);
	/* From here the mapping alone holds the file lock. */
	close(fd);
	if (index < 0) {
		munmap(page, (size_t)sysconf(_SC_PAGESIZE));
		return MACHINE_E_CROWDED;
	}
	machine->slot = index;
	machine->live_page = page;
	return 0;
}

void machine_leave(struct machine *machine)
{
	if (machine->slot < 0)
		return;
	attach_lock(machine);
	__atomic_store_n(
		&machine->layout->slot[machine->slot].state, LAYOUT_SLOT_FREE, __ATOMIC_RELAXED);
	kept_forget_slot(machine->layout, (unsigned int)machine->slot);
	attach_unlock(machine);
	munmap(machine->live_page, (size_t)sysconf(_SC_PAGESIZE));
	machine->live_page = NULL;
	machine->slot = -1;
}

uint64_t attach_sum_used(const struct layout *layout, int device)
{
	uint64_t used = 0;

	for (uint32_t i = 0; i < layout->slots_used; i++) {
		if (attach_is_counted(&layout->slot[i]))
			used += attach_slot_total(&layout->slot[i].device[device]);
	}
	for (uint32_t i = 0; i < layout->kept_used; i++) {
		if (layout->kept[i].is_used && layout->kept[i].device == device)
			used += layout->kept[i].bytes;
	}
	return used;
}

uint64_t machine_free_bytes(struct machine *machine, int device)
{
	uint64_t total = machine_board(machine)->total_bytes;
	uint64_t used;

	attach_lock(machine);
	/* Descriptors are closed without a word to us. */
	if (machine->layout->kept_used > 0)
		attach_reap(machine);
	used = attach_sum_used(machine->layout, device);
	attach_unlock(machine);
	return used < total ? total - used : 0;
}

/* What the process holds by itself, and of kept memory what it bears; managed memory can go. */
bool attach_is_within_limit(const struct machine *machine, int device, uint64_t more_bytes)
{
	const struct layout_slot_device *mine =
		&machine->layout->slot[machine->slot].device[device];
	uint64_t held;

	if (mine->limit_bytes == 0)
		return true;
	held = attach_slot_held(mine) - mine->bytes[MACHINE_MANAGED] +
	       kept_borne(machine->layout, machine->slot, device, NULL, NULL);
	return held <= mine->limit_bytes && more_bytes <= mine->limit_bytes - held;
}

void machine_set_limit(struct machine *machine, int device, uint64_t bytes)
{
	if (machine->slot < 0)
		return;
	attach_lock(machine);
	machine->layout->slot[machine->slot].device[device].limit_bytes = bytes;
	attach_unlock(machine);
}

bool machine_is_mps_client(const struct machine *machine)
{
	return machine->slot >= 0 && machine->layout->slot[machine->slot].server != 0;
}

static void sum_tag(const struct layout *layout, uint32_t tag, int device, uint64_t *ret_held,
	uint64_t *ret_total, int *ret_others)
{
	uint64_t held = 0, total = 0, borne;
	int others = 0;

	for (uint32_t i = 0; i < layout->slots_used; i++) {
		const struct layout_slot *slot = &layout->slot[i];

		if (!attach_is_counted(slot) || slot->tag != tag)
			continue;
		borne = kept_borne(layout, (int)i, device, NULL, NULL);
		held += attach_slot_held(&slot->device[device]) + borne;
		total += attach_slot_total(&slot->device[device]) + borne;
		others++;
	}
	borne = kept_orphaned(layout, tag, device);
	held += borne;
	total += borne;
	*ret_held = held;
	*ret_total = total;
	*ret_others = others - 1;
}

/*
 * Before a new peak is believed the dead are reaped, for what a dead process held is nobody's any
 * more.
 */
void attach_note_peak(struct machine *machine, int slot, int device)
{
	struct layout *layout = machine->layout;
	struct layout_tag *tag = &layout->tag[layout->slot[slot].tag];
	uint32_t index = layout->slot[slot].tag;
	uint64_t held, total;
	int others;

	sum_tag(layout, index, device, &held, &total, &others);
	if (held <= tag->peak_held_bytes[device] && total <= tag->peak_total_bytes[device])
		return;
	if ((others > 0 || layout->kept_used > 0) && attach_reap(machine) >= 0)
		sum_tag(layout, index, device, &held, &total, &others);
	if (held > tag->peak_held_bytes[device])
		tag->peak_held_bytes[device] = held;
	if (total > tag->peak_total_bytes[device])
		tag->peak_total_bytes[device] = total;
}

int machine_grow_kinds(
	struct machine *machine, int device, const uint64_t bytes[MACHINE_KINDS_USED])
{
	struct layout *layout = machine->layout;
	uint64_t total = layout->board.board.total_bytes;
	struct layout_slot_device *mine;
	uint64_t more = 0, used;
	bool has_room;

	if (machine->slot < 0)
		return -EINVAL;
	mine = &layout->slot[machine->slot].device[device];
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++) {
		if (bytes[kind] > total)
			return MACHINE_E_FULL;
		more += bytes[kind];
	}
	attach_lock(machine);
	if (!attach_is_within_limit(machine, device, more - bytes[MACHINE_MANAGED])) {
		attach_unlock(machine);
		return MACHINE_E_FULL;
	}
	used = attach_sum_used(layout, device);
	has_room = used <= total && more <= total - used;
	if (!has_room && attach_reap(machine) >= 0) {
		used = attach_sum_used(layout, device);
		has_room = used <= total && more <= total - used;
	}
	if (has_room) {
		/* Relaxed: only this process writes its words, and only the lock orders sums. */
		for (int kind = 0; kind < MACHINE_KINDS_USED; kind++) {
			if (bytes[kind] > 0)
				__atomic_fetch_add(
					&mine->bytes[kind], bytes[kind], __ATOMIC_RELAXED);
		}
		attach_note_peak(machine, machine->slot, device);
	}
	attach_unlock(machine);
	return has_room ? 0 : MACHINE_E_FULL;
}

int machine_grow(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes)
{
	uint64_t kinds[MACHINE_KINDS_USED] = {0};

	kinds[kind] = bytes;
	return machine_grow_kinds(machine, device, kinds);
}

void machine_shrink(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes)
{
	if (machine->slot < 0 || bytes == 0)
		return;
	/*
	 * The lock, so that whoever grows next sees it. One word and one writer: a death in between
	 * is none.
	 */
	attach_lock(machine);
	__atomic_fetch_sub(&machine->layout->slot[machine->slot].device[device].bytes[kind], bytes,
		__ATOMIC_RELAXED);
	attach_unlock(machine);
}

void machine_set_contexts(struct machine *machine, int device, uint32_t count)
{
	if (machine->slot < 0)
		return;
	attach_lock(machine);
	machine->layout->slot[machine->slot].device[device].contexts = count;
	attach_unlock(machine);
}
