/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that are read name by name, and that anybody may have made. */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/cleanup.h"

/* Opens a folder below another one (or AT_FDCWD), which is no link. For listing_close(). NULL with errno. */
static inline DIR *listing_open(int folder_fd, const char *path)
{
	int fd = openat(
		    folder_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
	    saved_errno;
	DIR *listing = fd < 0 ? NULL : fdopendir(fd);

	if (!listing) {
		saved_errno = errno;
		cleanup_fd(&fd);
		errno = saved_errno;
	}
	return listing;
}

static inline void listing_close(DIR **listing)
{
	if (*listing)
		closedir(*listing);
}
