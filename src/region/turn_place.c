/* SPDX-License-Identifier: Apache-2.0 */
/* Where turn records lie: FOLDER/UUID, which many users share. */
#include "region/turn_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/mark.h"
#include "region/filesystem.h"
#include "region/turn_record.h"

#define OPEN_FOLDER  (O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
#define OPEN_RECORD  (O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
#define MARK	     "security.vgpu" /* only root of the machine can write a name that begins so */
#define MARKED	     "turns"
#define OVERFLOW_UID 65534 /* what the kernel shows of a user that a user namespace does not know */

/* Root of the machine has no number in most user namespaces, as in a container without root. */
static bool is_in_user_namespace(void)
{
	unsigned long first = 0, to = 0, count = 0;
	char text[256];
	size_t length;

	return file_read("/proc/self/uid_map", text, sizeof(text), &length) == 0 &&
	       (sscanf(text, "%lu %lu %lu", &first, &to, &count) != 3 || first != 0 || to != 0 ||
		       count != UINT32_MAX);
}

/* Whether that is root of the machine's number here, or anybody's. */
static bool is_anybody(uid_t owner)
{
	return owner == OVERFLOW_UID && is_in_user_namespace();
}

void turn_place_mark(int folder_fd)
{
	/* What has no mark counts less in a container without root, and nowhere more. */
	if (fsetxattr(folder_fd, MARK, MARKED, sizeof(MARKED) - 1, 0) < 0)
		return;
}

static bool is_marked(int fd)
{
	char value[sizeof(MARKED)];

	return fgetxattr(fd, MARK, value, sizeof(value)) == sizeof(MARKED) - 1 &&
	       memcmp(value, MARKED, sizeof(MARKED) - 1) == 0;
}

/* A mount that the machine or the container's maker has made; a file system of a user's own says what it likes. */
static bool is_mount(int fd)
{
	return file_is_mount(fd) && filesystem_of(fd)->is_plain;
}

/* Whether nobody but root, or who made the container, can have put it there. above: the folder that it is in, which counts; or NULL. */
static bool is_from_above(int fd, const struct file_identity *above)
{
	return is_marked(fd) || is_mount(fd) ||
	       (above && above->owner == OVERFLOW_UID && !(above->mode & 022));
}

static bool is_trusted(int fd, const struct file_identity *f, const struct file_identity *above)
{
	if (!f->is_folder || ((f->mode & 022) && !(f->mode & S_ISVTX)))
		return false;
	if (is_anybody(f->owner))
		return is_from_above(fd, above);
	return f->owner == 0 || f->owner == geteuid();
}

static int open_folder(int at_fd, const char *path, const struct file_identity *above, int *ret_fd)
{
	_cleanup_fd_ int fd = openat(at_fd, path, OPEN_FOLDER);
	struct file_identity id;
	int r = fd < 0 ? -errno : file_identify(fd, &id);

	if (r < 0)
		return r;
	if (!is_trusted(fd, &id, above))
		return -EPERM;
	*ret_fd = take_fd(&fd);
	return 0;
}

int turn_place_open_folder(const char *folder, int *ret_fd)
{
	return open_folder(AT_FDCWD, folder, NULL, ret_fd);
}

/* Makes a folder in which everybody may make files and remove only his own. */
static void make_folder(int at_fd, const char *path)
{
	/* A folder that stays closed is not trusted less. */
	if (file_make_folder(at_fd, path, 01777) < 0)
		return;
}

void turn_place_make(const char *folder, const char *uuid)
{
	_cleanup_fd_ int fd = -1;

	make_folder(AT_FDCWD, folder);
	if (turn_place_open_folder(folder, &fd) == 0)
		make_folder(fd, uuid);
}

int turn_place_open(const char *path, int *ret_fd)
{
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int fd = -1;
	struct file_identity above;
	char folder[256];
	int r;

	if (!slash || (size_t)(slash - path) >= sizeof(folder))
		return -ENAMETOOLONG;
	memcpy(folder, path, (size_t)(slash - path));
	folder[slash - path] = '\0';
	r = turn_place_open_folder(folder, &fd);
	if (r == 0)
		r = file_identify(fd, &above);
	return r < 0 ? r : open_folder(fd, slash + 1, &above, ret_fd);
}

/*
 * Whether the operator has made this record for us: it is his, as the folder is, in which we can make none. Whose it is to
 * write to he says by what he mounts, because he does not know a container's user. Where his number is anybody's, that mount alone
 * tells it from another tenant's.
 */
static bool is_by_operator(int folder_fd, int fd, const struct file_identity *record)
{
	struct file_identity folder;

	return file_identify(folder_fd, &folder) == 0 && record->owner == folder.owner &&
	       !(folder.mode & 022) && faccessat(folder_fd, ".", W_OK, 0) < 0 &&
	       (!is_anybody(record->owner) || is_mount(fd));
}

/* As long as a record is, which another program may have broken. It is made whole again. */
static bool is_as_long(const struct file_identity *record)
{
	return record->size_bytes == 0 || record->size_bytes == sizeof(struct turn_record);
}

/* What is there already is ours if it has our magic in it, or is as long as ours, or is empty. */
static int check(int folder_fd, int fd)
{
	struct file_identity id;
	uint64_t magic;
	int r = file_identify(fd, &id);

	if (r < 0)
		return r;
	if (!id.is_regular)
		return -EBADMSG;
	if (is_by_operator(folder_fd, fd, &id))
		return 0;
	if (id.owner != geteuid())
		return -EEXIST;
	if (is_as_long(&id))
		return 0;
	if (pread(fd, &magic, sizeof(magic), offsetof(struct turn_record, face.magic)) !=
			(ssize_t)sizeof(magic) ||
		magic != TURN_MAGIC)
		return -EBADMSG;
	return 0;
}

static int open_existing(int folder_fd, const char *name, int *ret_fd)
{
	_cleanup_fd_ int fd = openat(folder_fd, name, OPEN_RECORD);
	int r = fd < 0 ? -errno : check(folder_fd, fd);

	/* One of ours is not closed to us. */
	if (r < 0)
		return r == -EACCES ? -EEXIST : r;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Makes a new file a record, as long as one at once. All else than its magic is right as zero. */
static int fill(int fd)
{
	static const uint64_t magic = TURN_MAGIC;
	int r = file_may_grow_to(sizeof(struct turn_record));

	if (r < 0)
		return r;
	/* fchmod, because the process's umask is the process's. */
	if (fchmod(fd, 0644) < 0 || ftruncate(fd, sizeof(struct turn_record)) < 0)
		return -errno;
	errno = ENOSPC; /* what a short write means */
	return pwrite(fd, &magic, sizeof(magic), offsetof(struct turn_record, face.magic)) ==
			       (ssize_t)sizeof(magic)
		       ? 0
		       : -errno;
}

/*
 * Makes it under a name that is no record's and then links it to its own: with its magic or not at all. The name tells nothing
 * of the record's, as everybody sees who makes what in the folder, and could be there first.
 */
static int make(int folder_fd, const char *name)
{
	_cleanup_fd_ int fd = -1;
	char temporary[40];
	int r;

	snprintf(temporary, sizeof(temporary), ".%016llx", (unsigned long long)mark_random());
	fd = openat(folder_fd, temporary, OPEN_RECORD | O_CREAT | O_EXCL, 0644);
	if (fd < 0)
		return -errno;
	r = fill(fd);
	if (r == 0 && linkat(folder_fd, temporary, folder_fd, name, 0) < 0 && errno != EEXIST)
		r = -errno;
	unlinkat(folder_fd, temporary, 0);
	return r;
}

int turn_place_open_record(int folder_fd, const char *name, int *ret_fd)
{
	int r = open_existing(folder_fd, name, ret_fd);

	if (r != -ENOENT)
		return r;
	r = make(folder_fd, name);
	return r < 0 ? r : open_existing(folder_fd, name, ret_fd);
}
