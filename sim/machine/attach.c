/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of the shared file, and who of its processes is still alive. */
#include "sim/machine/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A process is alive exactly as long as it holds a file lock on its slot's byte. The lock belongs
 * to an open file description that only a mapping of the process keeps (slot.c), so it falls when
 * the address space goes: at exit, exec, or any signal, and never by closing descriptors. PIDs were
 * rejected: they are reused, and mean nothing across PID namespaces.
 */

void attach_lock(struct machine *machine)
{
	pthread_mutex_t *mutex = &machine->layout->lock.mutex;

	if (pthread_mutex_lock(mutex) == EOWNERDEAD)
		pthread_mutex_consistent(mutex);
}

bool attach_try_lock(struct machine *machine)
{
	pthread_mutex_t *mutex = &machine->layout->lock.mutex;
	int r = pthread_mutex_trylock(mutex);

	if (r == EOWNERDEAD)
		r = pthread_mutex_consistent(mutex);
	return r == 0;
}

void attach_unlock(struct machine *machine)
{
	pthread_mutex_unlock(&machine->layout->lock.mutex);
}

int attach_reopen(const struct machine *machine)
{
	struct stat st;
	int fd = open(machine->path, O_RDWR | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0 || st.st_dev != machine->file_dev ||
		st.st_ino != machine->file_ino) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static bool is_alive(int fd, unsigned int slot)
{
	struct flock lock = {.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_start = LAYOUT_LIVE_OFFSET + slot,
		.l_len = 1};

	/* A lock that cannot be asked for is taken to be held: memory is never given away twice. */
	return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

int attach_reap(struct machine *machine)
{
	struct layout *layout = machine->layout;
	int reaped = 0;
	int fd = attach_reopen(machine);

	if (fd < 0)
		return 0;
	for (unsigned int i = 0; i < layout->slots_used; i++) {
		struct layout_slot *slot = &layout->slot[i];

		if (slot->state != LAYOUT_SLOT_USED || is_alive(fd, i))
			continue;
		/* Relaxed: all writers of `state` hold the lock. */
		__atomic_store_n(&slot->state, LAYOUT_SLOT_FREE, __ATOMIC_RELAXED);
		kept_forget_slot(layout, i);
		reaped++;
	}
	kept_sweep(layout, fd);
	close(fd);
	return reaped;
}

bool attach_is_counted(const struct layout_slot *slot)
{
	return slot->state == LAYOUT_SLOT_USED && slot->stage != MACHINE_CHECKPOINTED;
}

/* Relaxed throughout: each word is right by itself, and sums that decide are made under the lock.
 */
uint64_t attach_slot_total(const struct layout_slot_device *device)
{
	uint64_t sum = 0;

	for (int kind = 0; kind < MACHINE_KINDS_USED; kind++)
		sum += __atomic_load_n(&device->bytes[kind], __ATOMIC_RELAXED);
	return sum;
}

uint64_t attach_slot_held(const struct layout_slot_device *device)
{
	return attach_slot_total(device) -
	       __atomic_load_n(&device->bytes[MACHINE_INIT], __ATOMIC_RELAXED) -
	       __atomic_load_n(&device->bytes[MACHINE_CONTEXT_EXTRA], __ATOMIC_RELAXED);
}
