/* SPDX-License-Identifier: Apache-2.0 */
/* The part of one process in the machine: joining, taking and giving back. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sim/machine/kept.h"
#include "sim/machine/mps_client.h"
#include "sim/machine/reap.h"
#include "sim/machine/schedule.h"
#include "sim/machine/usage.h"

static uint64_t read_start_time(void)
{
	_cleanup_fd_ int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[1024];
	const char *p;
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	/* The name in parentheses may hold anything; the 20th field after it is the start. */
	p = strrchr(text, ')');
	for (int field = 0; p && field < 20; field++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static uint64_t read_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* The index of the tag $VGPU_SIM_TAG, made if it is new. The last index takes all tags too many. */
static uint32_t find_tag(struct layout *layout)
{
	const char *name = getenv("VGPU_SIM_TAG");
	uint32_t count = layout->tag_count;

	if (!name)
		name = "";
	for (uint32_t i = 0; i < count; i++)
		if (strncmp(layout->tag[i].name, name, MACHINE_TAG_SIZE - 1) == 0)
			return i;
	if (count == MACHINE_TAGS_MAX)
		return MACHINE_TAGS_MAX - 1;
	memset(&layout->tag[count], 0, sizeof(layout->tag[count]));
	snprintf(layout->tag[count].name, MACHINE_TAG_SIZE, "%s", name);
	layout_fence();
	layout->tag_count = count + 1;
	return count;
}

/* Under the lock: finds a free slot and locks its byte through `fd`; -1: there is none. */
static int claim(struct machine *machine, int fd)
{
	do {
		/* A process on its way out may still hold the byte of a free slot. */
		for (int i = 0; i < MACHINE_PROCESSES_MAX; i++)
			if (!layout_is_used(&machine->layout->slot[i]) &&
				state_file_lock_byte(fd, F_WRLCK, LAYOUT_LIVE_OFFSET + i) == 0)
				return i;
	} while (reap_dead(machine) > 0);
	return -1;
}

/* Under the lock: a slot begins anew. schedule_reset_slot() clears what is under other locks. */
static void fill(struct machine *machine, unsigned int index)
{
	struct layout *layout = machine->layout;
	struct layout_slot *slot = &layout->slot[index];

	schedule_reset_slot(machine, index);
	memset(slot, 0, offsetof(struct layout_slot, device));
	for (int device = 0; device < layout->board.board.device_count; device++)
		memset(&slot->device[device], 0, offsetof(struct layout_slot_device, schedule));
	kept_forget_slot(layout, index);
	slot->pid = getpid();
	slot->tag = find_tag(layout);
	slot->start_time = read_start_time();
	slot->pid_namespace = read_pid_namespace();
	slot->server = mps_client_find_server();
	slot->percent = slot->server ? mps_client_read_percent() : 100;
	if (layout->slots_used <= index)
		layout->slots_used = index + 1;
	layout_set_state(slot, LAYOUT_SLOT_USED);
}

/* Returns a slot whose byte is locked through `fd`, or -1. */
static int take_slot(struct machine *machine, int fd)
{
	int slot;
	MACHINE_SCOPE(machine);

	slot = claim(machine, fd);
	if (slot >= 0)
		fill(machine, (unsigned int)slot);
	return slot;
}

int machine_join(struct machine *machine)
{
	size_t page_size = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_fd_ int fd = -1;
	int slot;
	void *page;

	if (machine->slot >= 0)
		return 0;
	fd = state_file_reopen(machine);
	if (fd < 0)
		return fd;
	/*
	 * The mapping holds the lock of the byte, and so does the descriptor, in this process and in children of fork() that
	 * do not call exec: theirs are open files of the driver, too, and with these the memory stays.
	 */
	page = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	/* A child that closes its descriptors does not keep its parent's memory. */
	madvise(page, page_size, MADV_DONTFORK);
	slot = take_slot(machine, fd);
	if (slot < 0) {
		munmap(page, page_size);
		return MACHINE_E_CROWDED;
	}
	machine->slot = slot;
	machine->live_page = page;
	machine->live_fd = take_fd(&fd);
	return 0;
}

static void free_slot(struct machine *machine)
{
	MACHINE_SCOPE(machine);

	schedule_catch_up_all(machine);
	layout_set_state(state_file_own_slot(machine), LAYOUT_SLOT_FREE);
	kept_forget_slot(machine->layout, (unsigned int)machine->slot);
}

void machine_leave(struct machine *machine)
{
	if (machine->slot < 0)
		return;
	free_slot(machine);
	munmap(machine->live_page, (size_t)sysconf(_SC_PAGESIZE));
	machine->live_page = NULL;
	/* Unless the program has closed it, and the number is another file's by now. */
	if (state_file_is_own(machine, machine->live_fd))
		close(machine->live_fd);
	machine->slot = -1;
}

uint64_t machine_free_bytes(struct machine *machine, int device)
{
	const struct layout_slot *mine = state_file_own_slot(machine);
	MACHINE_SCOPE(machine);

	/* Nobody tells us when a descriptor is closed. */
	if (machine->layout->kept_used > 0)
		reap_dead(machine);
	return usage_free_bytes(machine->layout, device, mine ? mine->device[device].part : 0);
}

void machine_set_limit(struct machine *machine, int device, uint64_t bytes)
{
	struct layout_slot *mine = state_file_own_slot(machine);

	if (!mine)
		return;
	MACHINE_SCOPE(machine);
	mine->device[device].limit_bytes = bytes;
}

void machine_set_contexts(struct machine *machine, int device, uint32_t count)
{
	struct layout_slot *mine = state_file_own_slot(machine);

	if (!mine)
		return;
	MACHINE_SCOPE(machine);
	mine->device[device].contexts = count;
}

bool machine_is_mps_client(const struct machine *machine)
{
	const struct layout_slot *mine = state_file_own_slot(machine);

	return mine && mine->server != 0;
}

/* All bytes together, or UINT64_MAX where one kind alone is more than the device has. */
static uint64_t sum_kinds(const uint64_t bytes[MACHINE_KINDS_USED], uint64_t total_bytes)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++) {
		if (bytes[kind] > total_bytes)
			return UINT64_MAX;
		sum += bytes[kind];
	}
	return sum;
}

int machine_grow_kinds(
	struct machine *machine, int device, const uint64_t bytes[MACHINE_KINDS_USED])
{
	struct layout *layout = machine->layout;
	struct layout_slot *mine = state_file_own_slot(machine);
	uint64_t more = sum_kinds(bytes, layout->board.board.total_bytes);

	if (!mine)
		return -EINVAL;
	if (more == UINT64_MAX)
		return MACHINE_E_FULL;
	MACHINE_SCOPE(machine);
	if (!usage_is_within_limit(machine, device, more - bytes[MACHINE_MANAGED]))
		return MACHINE_E_FULL;
	if (!usage_has_room(layout, device, mine->device[device].part, more)) {
		reap_dead(machine);
		if (!usage_has_room(layout, device, mine->device[device].part, more))
			return MACHINE_E_FULL;
	}
	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		mine->device[device].bytes[kind] += bytes[kind];
	usage_note_peak(machine, mine, device);
	return 0;
}

int machine_grow(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes)
{
	uint64_t kinds[MACHINE_KINDS_USED] = {0};

	kinds[kind] = bytes;
	return machine_grow_kinds(machine, device, kinds);
}

/*
 * With the lock, so that a process that grows next sees it. One word and one writer: a death in between
 * is none.
 */
void machine_shrink(struct machine *machine, int device, enum machine_kind kind, uint64_t bytes)
{
	struct layout_slot *mine = state_file_own_slot(machine);

	if (!mine || bytes == 0)
		return;
	MACHINE_SCOPE(machine);
	mine->device[device].bytes[kind] -= bytes;
}
