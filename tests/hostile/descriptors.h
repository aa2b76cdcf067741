/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of those that give a false mark to exported descriptors: processes that make 1 GiB each, export it, and end,
 * while another process of the slice keeps what it imports, and maps nothing.
 */
#pragma once

#include "tests/hostile/hostile.h"

/* The mark of an open file (base/mark.c): none, or another one. 0 steps: of a pool. */
void descriptors_take_off_mark(int fd);
void descriptors_set_mark(int fd, uint64_t id, unsigned steps);
/* The id of its mark. */
uint64_t descriptors_mark_of(int fd);

/* Created memory that can be exported, and a descriptor of it. False: there is none. */
bool descriptors_create(uint64_t bytes, int *ret_fd);

struct descriptors {
	void (*prepare)(void); /* in the process that keeps, before anything comes; or NULL */
	void (*forge)(int fd, int round);
};
void descriptors_attack(const struct descriptors *way);
