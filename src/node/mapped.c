/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that another process has mapped.
 *
 * A user can mount tmpfs, FUSE and overlays on FUSE in a user namespace. To open a file there, and even to ask which file
 * system that is, may wait for a program of the user's for ever. What asks nobody: to open the link with O_PATH, to stat that with
 * AT_STATX_DONT_SYNC, and to ask for the file's handle. So a file is opened where the device of its file system is
 * that of a mount of ours, of the machine's first process or of the process itself, where root alone could make that, or
 * where its handle is tmpfs's.
 */
#include "node/mapped.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "region/filesystem.h"

#define TMPFS_HANDLE_TYPE  1 /* mm/shmem.c; other file systems' of this type have 8 bytes */
#define TMPFS_HANDLE_BYTES 12

void mapped_path(pid_t pid, const struct mapping *mapping, char ret_path[MAPPED_PATH_BYTES])
{
	snprintf(ret_path, MAPPED_PATH_BYTES, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)pid,
		mapping->start, mapping->end);
}

static bool is_tmpfs(int fd)
{
	_cleanup_free_ struct file_handle *handle = calloc(1, sizeof(*handle) + MAX_HANDLE_SZ);
	int mount;

	if (!handle)
		return false;
	handle->handle_bytes = MAX_HANDLE_SZ;
	return name_to_handle_at(fd, "", handle, &mount, AT_EMPTY_PATH) == 0 &&
	       handle->handle_type == TMPFS_HANDLE_TYPE &&
	       handle->handle_bytes == TMPFS_HANDLE_BYTES;
}

/* Whether the line of mountinfo is a mount of that device, and of a file system that asks no program. */
static bool is_plain_mount(const char *line, unsigned at_major, unsigned at_minor)
{
	const char *behind = strstr(line, " - ");
	unsigned seen_major, seen_minor;
	char type[32];

	return sscanf(line, "%*s %*s %u:%u", &seen_major, &seen_minor) == 2 &&
	       seen_major == at_major && seen_minor == at_minor && behind &&
	       sscanf(behind + 3, "%31s", type) == 1 && filesystem_is_plain_type(type);
}

static bool is_mounted(const char *mounts, unsigned at_major, unsigned at_minor)
{
	_cleanup_file_ FILE *file = fopen(mounts, "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;

	while (file && getline(&line, &capacity, file) > 0)
		if (is_plain_mount(line, at_major, at_minor))
			return true;
	return false;
}

/* Whether the process is in a mount namespace that belongs to our user namespace: in another one a user may mount. */
static bool is_in_roots(pid_t pid)
{
	struct file_identity owner, own;
	_cleanup_fd_ int mounts = -1;
	_cleanup_fd_ int users = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	mounts = open(path, O_RDONLY | O_CLOEXEC);
	users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	return users >= 0 && file_identify(users, &owner) == 0 &&
	       file_identify_path("/proc/self/ns/user", &own) == 0 && owner.inode == own.inode;
}

/* Looked at afterwards: who leaves root's namespaces for one of its own does not come back. */
static bool is_mounted_by_root(pid_t pid, const struct statx *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	return is_mounted(path, s->stx_dev_major, s->stx_dev_minor) && is_in_roots(pid);
}

/* Asks no file system of a user's. */
static int check(int fd, pid_t pid)
{
	struct statx s;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &s) < 0)
		return -errno;
	if (!S_ISREG(s.stx_mode))
		return -EBADF;
	if (!is_tmpfs(fd) &&
		!is_mounted("/proc/self/mountinfo", s.stx_dev_major, s.stx_dev_minor) &&
		!is_mounted_by_root(1, &s) && !is_mounted_by_root(pid, &s))
		return -EMEDIUMTYPE;
	return filesystem_of(fd)->is_plain ? 0 : -EMEDIUMTYPE;
}

/* Names the file, and opens nothing. */
static int name(const char *path, int *ret_fd)
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);
	int pid = 0, r = fd < 0 ? -errno : 0;

	if (r == 0 && sscanf(path, "/proc/%d/", &pid) != 1)
		r = -EINVAL;
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
