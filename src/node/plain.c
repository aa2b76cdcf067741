/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems that may be asked.
 *
 * A user can mount tmpfs, FUSE and overlays on FUSE in a user namespace. To look a name up there, to open a file, and even to ask
 * which file system that is, may wait for a program of the user's for ever. What asks nobody: to come to a mount, to open a
 * link of the kernel's with O_PATH, to stat that with AT_STATX_DONT_SYNC, and to ask for the file's handle. So a file or folder may be
 * asked where the device of its file system is that of a mount of ours, of the machine's first process or of the process
 * itself, where root alone could make that, or of our root, or where its handle is tmpfs's.
 */
#include "node/plain.h"

#include <errno.h>
#include <fcntl.h>
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
#include "node/look.h"
#include "region/filesystem.h"

#define TMPFS_HANDLE_TYPE  1 /* mm/shmem.c; other file systems' of this type have 8 bytes */
#define TMPFS_HANDLE_BYTES 12

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

bool plain_is_in_roots(pid_t pid)
{
	struct file_identity owner, own;
	_cleanup_fd_ int mounts = -1;
	_cleanup_fd_ int users = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	mounts = look_is_allowed(pid) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	users = mounts < 0 ? -1 : ioctl(mounts, NS_GET_USERNS);
	return users >= 0 && file_identify(users, &owner) == 0 &&
	       file_identify_path("/proc/self/ns/user", &own) == 0 && owner.inode == own.inode;
}

/*
 * Looked at before, as a user's own namespace has as many mounts as she likes, and afterwards: who leaves root's namespaces for one of its own does
 * not come back.
 */
static bool is_mounted_by_root(pid_t pid, const struct statx *s)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	return plain_is_in_roots(pid) && is_mounted(path, s->stx_dev_major, s->stx_dev_minor) &&
	       plain_is_in_roots(pid);
}

/* As this program does itself, whatever that is: a container's root may be FUSE of the runtime's. */
static bool is_on_own_root(const struct statx *s)
{
	struct statx own;

	return statx(AT_FDCWD, "/", AT_STATX_DONT_SYNC, STATX_TYPE, &own) == 0 &&
	       own.stx_dev_major == s->stx_dev_major && own.stx_dev_minor == s->stx_dev_minor;
}

static bool may_be_asked(int fd, pid_t pid, const struct statx *s)
{
	return is_tmpfs(fd) ||
	       is_mounted("/proc/self/mountinfo", s->stx_dev_major, s->stx_dev_minor) ||
	       is_mounted_by_root(1, s) || is_mounted_by_root(pid, s);
}

int plain_check(int fd, pid_t pid, unsigned *ret_type)
{
	struct statx s;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &s) < 0)
		return -errno;
	/* The file system itself is asked what it is once it is known that it may be. */
	if (!is_on_own_root(&s) && !(may_be_asked(fd, pid, &s) && filesystem_of(fd)->is_plain))
		return -EMEDIUMTYPE;
	*ret_type = s.stx_mode & S_IFMT;
	return 0;
}
