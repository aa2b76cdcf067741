/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of slices, of any user, and slices in them. */
#include "node/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"

static int open_folder(int at_fd, const char *path, uid_t owner, int *ret_fd, uid_t *ret_owner)
{
	_cleanup_fd_ int fd =
		openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct file_identity id;
	int r = fd < 0 ? -errno : file_identify(fd, &id);

	if (r < 0)
		return r;
	if ((owner != ROOT_OF_ANYBODY && id.owner != owner) || (id.mode & 022))
		return -EPERM;
	*ret_owner = id.owner;
	*ret_fd = take_fd(&fd);
	return 0;
}

int root_open(const char *path, uid_t owner, int *ret_fd, uid_t *ret_owner)
{
	return open_folder(AT_FDCWD, path, owner, ret_fd, ret_owner);
}

int root_open_slice(int root_fd, uid_t owner, const char *name, int *ret_fd)
{
	uid_t seen;

	return open_folder(root_fd, name, owner, ret_fd, &seen);
}

int root_open_path(const char *path, int *ret_fd, uid_t *ret_owner)
{
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int root_fd = -1;
	char root[4096];
	uid_t owner;
	int r;

	if (!slash || (size_t)snprintf(root, sizeof(root), "%.*s", (int)(slash - path), path) >=
			      sizeof(root))
		return -EINVAL;
	r = root_open(root, ROOT_OF_ANYBODY, &root_fd, &owner);
	if (r == 0)
		r = root_open_slice(root_fd, owner, slash + 1, ret_fd);
	if (r == 0)
		*ret_owner = owner;
	return r;
}
