/* SPDX-License-Identifier: Apache-2.0 */
/* Cleanup by attribute: what a function acquires, its scope gives back. */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

static inline void cleanup_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_file(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define _cleanup_fd_   _cleanup_(cleanup_fd)
#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_file_ _cleanup_(cleanup_file)

/* Moves ownership of a descriptor out of a variable with _cleanup_fd_. */
static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}
