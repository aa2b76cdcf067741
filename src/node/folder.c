/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that only this user may write to. */
#include "node/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"

#define OPEN_FOLDER (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
#define PARENT_MODE 0755
#define PATH_BYTES  4096
#define ATTEMPTS    100 /* another user may be as quick */

static int make_parents(const char *path, struct err *err)
{
	char part[PATH_BYTES];

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int length = snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);

		if (length < 0 || length >= PATH_BYTES)
			return err_set(err, ENAMETOOLONG, "%.200s... is too long a path", path);
		/* What could not be made, opening the folder will tell. */
		if (file_make_folder(AT_FDCWD, part, PARENT_MODE) < 0)
			continue;
	}
	return 0;
}

static int rename_both(const char *a, const char *b)
{
	return syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */) < 0
		       ? -errno
		       : 0;
}

/*
 * What is not ours goes under another name, and a folder of ours comes in its place at the same instant: whoever waits for
 * the name to be free would have it first.
 */
static int move_aside(const char *path, struct err *err)
{
	const char *name = strrchr(path, '/') + 1;
	char aside[PATH_BYTES];
	int length = snprintf(aside, sizeof(aside), "%.*s.was-%s.%llx", (int)(name - path), path,
		name, (unsigned long long)clock_now_ns());
	int r = length < 0 || length >= PATH_BYTES ? -ENAMETOOLONG
						   : file_make_folder(AT_FDCWD, aside, 0700);

	if (r == 0)
		r = rename_both(aside, path);
	/* a file system without it, or the name is free just now */
	if (r == -EINVAL || r == -ENOSYS || r == -ENOENT) {
		rmdir(aside);
		r = r == -ENOENT || rename(path, aside) == 0 ? 0 : -errno;
	}
	return r < 0 ? err_set(err, -r, "move %.300s out of the way: %s", path, strerror(-r)) : 0;
}

static bool is_ours(const struct file_identity *id)
{
	return id->owner == geteuid() && id->is_folder;
}

int folder_make(const char *path, unsigned mode, int *ret_fd, struct err *err)
{
	struct file_identity id;
	int r = path[0] == '/' && path[1]
			? make_parents(path, err)
			: err_set(err, EINVAL, "'%.200s' is no absolute path", path);

	for (int i = 0; i < ATTEMPTS && r == 0; i++) {
		_cleanup_fd_ int fd = -1;

		if (file_identify_at(AT_FDCWD, path, &id) == 0 && !is_ours(&id))
			r = move_aside(path, err);
		if (r < 0)
			break;
		r = file_make_folder(AT_FDCWD, path, mode);
		/* Where anything is there now, another one was as quick. */
		if (r < 0 && file_identify_at(AT_FDCWD, path, &id) < 0) {
			r = err_set(err, -r, "make %.300s: %s", path, strerror(-r));
			break;
		}
		r = 0;
		fd = open(path, OPEN_FOLDER);
		if (fd < 0 || file_identify(fd, &id) < 0 || !is_ours(&id))
			continue;
		if (fchmod(fd, mode) < 0)
			return err_set(
				err, errno, "change the mode of %.300s: %s", path, strerror(errno));
		*ret_fd = take_fd(&fd);
		return 0;
	}
	return r < 0 ? r : err_set(err, EPERM, "%.300s cannot be made this user's own", path);
}

int folder_give_back(const char *path, uid_t owner, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	struct file_identity id;
	int r;

	if (file_identify_at(AT_FDCWD, path, &id) < 0 || id.owner == owner)
		return 0;
	r = move_aside(path, err);
	if (r < 0)
		return r;
	fd = open(path, OPEN_FOLDER);
	/* Where it is no folder of ours the name was free for a moment. */
	if (fd < 0 || file_identify(fd, &id) < 0 || !is_ours(&id))
		return 0;
	return fchown(fd, owner, (gid_t)-1) < 0
		       ? err_set(err, errno, "give %.300s to its user: %s", path, strerror(errno))
		       : 0;
}

int folder_make_at(int folder_fd, const char *name, unsigned mode, int *ret_fd)
{
	_cleanup_fd_ int fd = -1;
	struct file_identity id;
	int r;

	if (file_identify_at(folder_fd, name, &id) == 0 && !id.is_folder)
		unlinkat(folder_fd, name, 0);
	r = file_make_folder(folder_fd, name, mode);
	if (r < 0 && r != -EEXIST)
		return r;
	FAULT("folder: made");
	fd = openat(folder_fd, name, OPEN_FOLDER);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

bool folder_has(int folder_fd, const char *name, const void *content, size_t bytes, unsigned mode)
{
	_cleanup_free_ char *text = malloc(bytes + 2);
	struct file_identity id;
	size_t length;

	return text && file_identify_at(folder_fd, name, &id) == 0 && id.is_regular &&
	       id.mode == mode && id.owner == geteuid() && id.link_count == 1 &&
	       file_read_regular(folder_fd, name, O_NOFOLLOW, text, bytes + 2, &length) == 0 &&
	       length == bytes && memcmp(text, content, bytes) == 0;
}

static int write_all(int fd, const char *content, size_t bytes)
{
	while (bytes > 0) {
		ssize_t written = write(fd, content, bytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return written < 0 ? -errno : -ENOSPC;
		content += written;
		bytes -= (size_t)written;
	}
	return 0;
}

static bool is_listed(const struct folder_later *later, int fd)
{
	struct file_identity id, listed;

	for (unsigned i = 0; i < later->count && file_identify(fd, &id) == 0; i++)
		if (file_identify(later->fds[i], &listed) == 0 && listed.device == id.device &&
			listed.inode == id.inode)
			return true;
	return false;
}

int folder_sync_later(int fd, struct folder_later *later)
{
	int again;

	if (later && is_listed(later, fd))
		return 0;
	again = later && later->count < ARRAY_SIZE(later->fds) ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (again < 0)
		return fsync(fd) < 0 ? -errno : 0;
	later->fds[later->count++] = again;
	return 0;
}

/* Of a file that is there already the old content is on the disk until the new one is. */
static int sync_new(int fd, bool is_another, struct folder_later *later)
{
	return folder_sync_later(fd, is_another ? NULL : later);
}

static int write_new(int folder_fd, const char *name, const void *content, size_t bytes,
	unsigned mode, int *ret_fd)
{
	_cleanup_fd_ int fd =
		openat(folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 ? -errno : 0;

	FAULT("folder: file made");
	if (r == 0)
		r = write_all(fd, content, bytes);
	FAULT("folder: file written");
	/* fchmod, because the umask may be anything */
	if (r == 0 && fchmod(fd, mode) < 0)
		r = -errno;
	*ret_fd = take_fd(&fd);
	return r;
}

/* It may be of a caller that has not come to wait for the disk. */
static int sync_again(int folder_fd, const char *name, struct folder_later *later)
{
	_cleanup_fd_ int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	int r = fd < 0 ? -errno : folder_sync_later(fd, later);

	return r < 0 ? r : folder_sync_later(folder_fd, later);
}

static int put(int folder_fd, const char *name, const void *content, size_t bytes, unsigned mode,
	enum folder_sync sync, struct folder_later *later)
{
	char temporary[NAME_MAX + 1];
	struct file_identity id;
	_cleanup_fd_ int fd = -1;
	int length = snprintf(temporary, sizeof(temporary), ".%s.new", name), r;

	if (length < 0 || (size_t)length >= sizeof(temporary))
		return -ENAMETOOLONG;
	if (folder_has(folder_fd, name, content, bytes, mode))
		return later ? sync_again(folder_fd, name, later) : 0;
	unlinkat(folder_fd, temporary, 0); /* of one that was killed */
	r = write_new(folder_fd, temporary, content, bytes, mode, &fd);
	if (file_identify_at(folder_fd, name, &id) < 0)
		id = (struct file_identity){.is_folder = false};
	if (r == 0 && sync == FOLDER_SYNC)
		r = sync_new(fd, id.is_regular, later);
	/* A runtime makes a folder where it misses a file that is to be mounted. */
	if (r == 0 && id.is_folder && unlinkat(folder_fd, name, AT_REMOVEDIR) < 0)
		r = -errno;
	if (r == 0 && renameat(folder_fd, temporary, folder_fd, name) < 0)
		r = -errno;
	FAULT("folder: file renamed");
	if (r < 0)
		unlinkat(folder_fd, temporary, 0);
	else if (sync == FOLDER_SYNC)
		r = sync_new(folder_fd, false, later);
	return r;
}

int folder_put(int folder_fd, const char *name, const void *content, size_t bytes, unsigned mode,
	enum folder_sync sync)
{
	return put(folder_fd, name, content, bytes, mode, sync, NULL);
}

int folder_put_later(int folder_fd, const char *name, const void *content, size_t bytes,
	unsigned mode, struct folder_later *later)
{
	return put(folder_fd, name, content, bytes, mode, FOLDER_SYNC, later);
}

int folder_each(
	int folder_fd, int (*what)(void *context, int folder_fd, const char *name), void *context)
{
	int again = openat(folder_fd, ".", OPEN_FOLDER), r = 0;
	DIR *folder = again < 0 ? NULL : fdopendir(again);

	if (!folder) {
		r = -errno;
		cleanup_fd(&again);
		return r;
	}
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			r = what(context, folder_fd, e->d_name);
	closedir(folder);
	return r;
}

static int unlink_one(void *context, int folder_fd, const char *name)
{
	/* a folder stays, and then the one that it is in does, too */
	if (unlinkat(folder_fd, name, 0) < 0 && errno != EISDIR && errno != ENOENT)
		return -errno;
	FAULT("folder: file removed");
	return 0;
}

static int unlink_hidden(void *context, int folder_fd, const char *name)
{
	return name[0] == '.' ? unlink_one(context, folder_fd, name) : 0;
}

int folder_sweep(int folder_fd)
{
	return folder_each(folder_fd, unlink_hidden, NULL);
}

int folder_remove_at(int folder_fd, const char *name)
{
	_cleanup_fd_ int fd = openat(folder_fd, name, OPEN_FOLDER);
	int r = fd < 0 ? -errno : folder_each(fd, unlink_one, NULL);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}
