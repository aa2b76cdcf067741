/* SPDX-License-Identifier: Apache-2.0 */
/* An attachment to the shared file of the machine: its mapping, its lock, the locks of its bytes. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sim/machine/layout.h"
#include "sim/machine/lock.h"

struct machine {
	struct layout *layout;
	int slot;	 /* of this process, or -1 */
	void *live_page; /* the mapping that keeps the slot's byte locked, or NULL */
	int live_fd;	 /* the descriptor by which children do; of a process in a slot */
	_Atomic uint64_t without_lock_until_ns;		     /* see schedule.c */
	pthread_mutex_t *schedule_lock[MACHINE_DEVICES_MAX]; /* from schedule_begin() on, or NULL */
	dev_t file_dev;
	ino_t file_ino;
	char path[4096];
};

/*
 * Holds the lock of the shared file until the end of the enclosing scope. The lock survives the death
 * of its holder at any instant: all that it guards is committed by single words, so there is nothing
 * to repair.
 */
#define MACHINE_SCOPE(machine) LOCK_SCOPE(&(machine)->layout->lock.mutex)

/* The slot of the calling process, or NULL. */
static inline struct layout_slot *state_file_own_slot(const struct machine *machine)
{
	return machine->slot >= 0 ? &machine->layout->slot[machine->slot] : NULL;
}

/* What a sentence for a person is written to. */
struct state_file_why {
	char *text;
	size_t size; /* may be 0 */
};

/*
 * Maps the file at machine->path and makes it, with this board, where there is none. Returns 0,
 * MACHINE_E_FOREIGN or -errno.
 */
int state_file_attach(
	struct machine *machine, const char *board_name, const struct state_file_why *why);

/* A fresh descriptor of the attached file, or -errno (-ESTALE: the path now names another file). */
int state_file_reopen(const struct machine *machine);

/* Whether the descriptor is of the attached file. */
bool state_file_is_own(const struct machine *machine, int fd);

/*
 * Locks a byte for as long as the open file description of `fd` lives: F_RDLCK or F_WRLCK. Returns 0 or
 * -errno.
 */
int state_file_lock_byte(int fd, short type, int64_t offset);

/*
 * Whether somebody has the byte locked. Where that cannot be asked, it is: memory is never given away
 * twice.
 */
bool state_file_is_byte_locked(int fd, int64_t offset);
