/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much of its stack the program's thread has left.
 *
 * The C library tells where a stack ends by functions that are not in it before glibc 2.32. The kernel tells which pages can
 * be read, and below a stack is one that cannot. The main thread's has pages only once they were used: there the limit says
 * it.
 */
#include "tenant/slice/stack.h"

#include <errno.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE_BYTES 4096u /* or a multiple of it */
#define PAGES_MOST (STACK_BUSY_BYTES / PAGE_BYTES)

static bool main_has_room(size_t bytes)
{
	struct rlimit limit;

	/* what is used of it already is the smaller part */
	return getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur / 2 >= bytes;
}

static bool can_read_below(uintptr_t at, size_t pages)
{
	struct iovec from[PAGES_MOST], to;
	char bytes[PAGES_MOST];
	long got;

	for (size_t i = 0; i < pages; i++)
		from[i] = (struct iovec){
			.iov_base = (void *)(at - (i + 1) * PAGE_BYTES), .iov_len = 1};
	to = (struct iovec){.iov_base = bytes, .iov_len = pages};
	got = syscall(SYS_process_vm_readv, getpid(), &to, 1, from, pages, 0);
	return got < 0 ? errno != EFAULT : (size_t)got == pages;
}

bool stack_has_room(size_t bytes)
{
	int saved_errno = errno;
	size_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	bool has_room = syscall(SYS_gettid) == getpid()
				? main_has_room(bytes)
				: can_read_below((uintptr_t)__builtin_frame_address(0),
					  pages < PAGES_MOST ? pages : PAGES_MOST);

	errno = saved_errno;
	return has_room;
}
