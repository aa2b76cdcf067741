/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mark on an open file: a number that travels with its descriptors.
 *
 * A descriptor that is passed to another process can carry nothing but itself. A byte lock can say the
 * rest: it belongs to the open file description, so it goes with every copy of the descriptor, /proc
 * shows it to whoever has one, anybody who opens the same file can ask whether it is still held, and
 * the kernel drops it with the last copy, wherever that is: in a process or under way in a socket.
 * The lock is for reading, so no two marks are ever in each other's way; where it lies is the mark's
 * id, how long it is says how much the file stands for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

/* The amount is in steps of 2 MiB, and at most as large. */
#define MARK_STEP_BYTES UINT64_C(0x200000)
#define MARK_STEPS_MAX	(UINT32_C(1) << 20)

struct mark {
	uint64_t id; /* as mark_new_id() makes them; 0 is none */
	uint32_t steps;
};

/* Random bits; where the kernel has none to give, such as nobody else has. */
uint64_t mark_random(void);

/* An id that nobody else has: 33 random bits, and one that says what the file stands for. */
enum mark_of {
	MARK_OF_MEMORY,
	MARK_OF_POOL, /* whose amount is not said */
};
uint64_t mark_new_id(enum mark_of of);
enum mark_of mark_of(uint64_t id);

/* Marks the open file behind fd for all its descriptors, those to come included. */
int mark_set(int fd, struct mark mark) MUST_CHECK;

/* The mark of the open file behind fd; -ENOENT where it has none. */
int mark_get(int fd, struct mark *ret_mark) MUST_CHECK;

/*
 * Whether an open file with this mark exists still, asked through another open file of the same
 * inode.
 */
int mark_is_alive(int fd, uint64_t id, bool *ret_is_alive) MUST_CHECK;
