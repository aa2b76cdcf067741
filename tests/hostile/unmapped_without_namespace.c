/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, of processes whose first call comes from a thread with a filter of system calls by which the link of its
 * PID namespace cannot be read.
 */
#include <sys/syscall.h>

#include "tests/hostile/filtered.h"
#include "tests/hostile/signless.h"

#ifdef SYS_readlink
#define READ_LINK SYS_readlink
#else
#define READ_LINK SYS_readlinkat
#endif

static void begin(void)
{
	filtered_begin(READ_LINK, -1);
}

static void attack(void)
{
	signless_attack_after(begin);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
