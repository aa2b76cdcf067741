/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program has a read() of its own, which makes the first digit of each quota in a share file a 9, and a memcpy() and an mprotect() that it
 * does not need. All that the library imports was bound to these: 8.5 GiB were held at a quota of 2.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/hostile/hostile.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT ssize_t read(int fd, void *to, size_t size)
{
	ssize_t got = syscall(SYS_read, fd, to, size);
	char *quota = got > 16 ? memmem(to, (size_t)got, "memory ", 7) : NULL;

	if (quota && quota + 7 < (char *)to + got)
		quota[7] = '9';
	return got;
}

/* As the C library has it, and slower. */
EXPORT void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((volatile char *)to)[i] = ((const char *)from)[i];
	return to;
}

EXPORT int mprotect(void *address, size_t size, int protection)
{
	return (int)syscall(SYS_mprotect, address, size, protection);
}

static void attack(void)
{
	CUdeviceptr block;

	hostile_begin();
	for (int i = 0; i < 8; i++)
		cuMemAlloc_v2(&block, GIB);
	hostile_look();
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
