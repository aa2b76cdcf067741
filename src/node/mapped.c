/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that another process has mapped.
 *
 * It may be on a file system of the user's own, which is not asked (node/plain.h).
 */
#include "node/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/look.h"
#include "node/plain.h"

void mapped_path(pid_t pid, const struct mapping *mapping, char ret_path[MAPPED_PATH_BYTES])
{
	snprintf(ret_path, MAPPED_PATH_BYTES, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		mapping->start, mapping->end);
}

/* Asks no file system of a user's. */
static int check(int fd, pid_t pid)
{
	unsigned type;
	int r = plain_check(fd, pid, &type);

	return r < 0 || S_ISREG(type) ? r : -EBADF;
}

/* Names the file, and opens nothing. */
static int name(const char *path, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	int pid = 0, r = sscanf(path, "/proc/%d/", &pid) == 1 ? 0 : -EINVAL;

	if (r == 0)
		r = look_name(pid, path, &fd);
	if (r == 0)
		r = check(fd, pid);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

int mapped_identify(const char *path, struct file_identity *ret_identity)
{
	_cleanup_fd_ int fd = -1;
	int r = name(path, &fd);

	return r < 0 ? r : file_identify(fd, ret_identity);
}

int mapped_open(const char *path, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	char again[32];
	int r = name(path, &fd);

	if (r < 0)
		return r;
	snprintf(again, sizeof(again), "/proc/self/fd/%d", fd);
	return file_open_regular(AT_FDCWD, again, O_RDONLY, ret_fd);
}
