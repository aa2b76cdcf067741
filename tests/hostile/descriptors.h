/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of those that keep memory of processes that have ended: processes that make some each, export it, and end, while
 * another process of the slice keeps what it imports.
 */
#pragma once

#include "tests/hostile/hostile.h"

/* The mark of an open file (base/mark.c): none, or another one. */
void descriptors_take_off_mark(int fd);
void descriptors_set_mark(int fd, uint64_t id, unsigned steps);
/* The id of its mark. */
uint64_t descriptors_mark_of(int fd);

/* Created memory that can be exported, and a descriptor of it. False: there is none. */
bool descriptors_create(uint64_t bytes, int *ret_fd);
/* The same, which the descriptor alone keeps. */
bool descriptors_create_kept(uint64_t bytes, int *ret_fd);

/* The program's work of import below: the memory's handle, 0 where it is refused. Closes the descriptor. */
CUmemGenericAllocationHandle descriptors_import(int fd);

/* By a socket of this machine; -1: a message without one came. */
void descriptors_send(int socket, int fd);
int descriptors_receive(int socket);

/*
 * Of programs whose processes leave children: each of so many runs in a process of its own, one after the other, and is looked at. It may
 * fork a child that does nothing, and ends by that; the children live until the last one was looked at.
 */
void descriptors_in_turn(int count, void (*run)(int index));
void descriptors_leave_child(void) __attribute__((noreturn));

/* Imports so much as memory of another interface, which it stands for on the simulated node. */
#define DESCRIPTORS_EXTERNAL_BYTES (512 * MIB)
void descriptors_import_external(int fd);

/* Loads 1.5 GiB of data, of which a fat binary tells nothing. */
void descriptors_load_data(void);

/* Takes what the slice has left, for `finish`. */
void descriptors_take_the_rest(void);

struct descriptors {
	uint64_t bytes;	       /* of each process that ends; 0: 1 GiB */
	int rounds;	       /* so many processes; 0: 5 */
	void (*prepare)(void); /* in the process that keeps, before anything comes; or NULL */
	void (*forge)(int fd, int round); /* in one that ends, to its descriptor; or NULL */
	void (*import)(
		int fd); /* in the process that keeps; NULL: as created memory, which is not mapped */
	void (*finish)(void); /* there, when all have ended; or NULL */
};
void descriptors_attack(const struct descriptors *way);

/*
 * Each exported descriptor, of 1 GiB, gets the mark of other memory of so many bytes, which the process that keeps has made by
 * descriptors_create() or descriptors_create_kept(). finish: as above.
 */
void descriptors_attack_by_mark(
	bool (*create_other)(uint64_t bytes, int *ret_fd), uint64_t bytes, void (*finish)(void));
