/* SPDX-License-Identifier: Apache-2.0 */
/* A process of a slice, with its turn of a device. A program includes it once. */
#pragma once

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "region/turn.h"

#define UUID	   "GPU-5a1b"
#define LONGEST_NS UINT64_C(30000000000) /* that a living one may wait; usually 50 ms */

static struct turn turn; /* of the process */

static inline void sleep_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

static inline int open_turn(const char *folder, unsigned slice, unsigned process)
{
	char name[8];

	snprintf(name, sizeof(name), "s%u", slice);
	return turn_open(&turn, folder, UUID, name, process, clock_now_ns());
}
