/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, of processes whose first call comes from a thread with a filter of system calls by which /proc/self/status
 * cannot be read.
 */
#include <fcntl.h>
#include <sys/syscall.h>

#include "tests/hostile/filtered.h"
#include "tests/hostile/signless.h"

static void begin(void)
{
	filtered_begin(SYS_openat, O_RDONLY | O_CLOEXEC);
}

static void attack(void)
{
	signless_attack_after(begin);
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
