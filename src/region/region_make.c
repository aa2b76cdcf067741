/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region file is made.
 *
 * It appears whole or not at all: it is written without a name and then linked to
 * its own, so nobody ever sees half of one and nobody waits for a maker that died.
 */
#include "region/region_make.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/mark.h"
#include "region/filesystem.h"
#include "region/region.h"

#define TEMPORARY_BYTES \
	2048 /* a region's path, and what is put behind it: half of PATH_MAX, for the stack's sake */

static void fill(struct region_file *f)
{
	struct clock_mark mark = clock_own_mark();

	f->hami.major = HAMI_MAJOR;
	f->hami.minor = HAMI_MINOR;
	/* An unlocked glibc semaphore begins with its value, 1; nobody of ours ever waits on it. */
	f->hami.semaphore[0] = 1;
	f->hami.post_init_semaphore[0] = 1;
	atomic_init(&f->hami.utilization_switch, 1);
	atomic_init(&f->hami.recent_kernel, 2);
	atomic_init(&f->hami.priority, 1);
	for (int i = 0; i < REGION_DEVICES; i++)
		atomic_init(&f->hami.sm_limit_percent[i], 100);
	f->own.version = REGION_VERSION;
	f->own.size_bytes = sizeof(*f);
	atomic_init(&f->own.clock_ticks_ns, mark.ticks_ns);
	atomic_init(&f->own.clock_wall_ns, mark.wall_ns);
	atomic_init(&f->hami.magic, HAMI_MAGIC);
	atomic_init(&f->own.magic, REGION_MAGIC);
}

/*
 * Takes the file's space now: where the file system is full, a later store into the mapping would be
 * a signal, and now it is an error.
 */
static int take_space(int fd)
{
	static const char zeroes[4096];
	int r = file_may_grow_to(sizeof(struct region_file));

	if (r < 0)
		return r;
	if (fallocate(fd, 0, 0, sizeof(struct region_file)) == 0)
		return 0;
	if (errno == ENOSPC)
		return -ENOSPC;
	for (size_t at = 0; at < sizeof(struct region_file); at += sizeof(zeroes)) {
		size_t size = sizeof(struct region_file) - at;

		if (size > sizeof(zeroes))
			size = sizeof(zeroes);
		errno = ENOSPC; /* what a short write means */
		if (pwrite(fd, zeroes, size, (off_t)at) != (ssize_t)size)
			return -errno;
	}
	return 0;
}

static int write_at(int fd, const struct region_file *file, size_t at, size_t size)
{
	errno = ENOSPC; /* what a short write means */
	return pwrite(fd, (const char *)file + at, size, (off_t)at) == (ssize_t)size ? 0 : -errno;
}

/*
 * Written, and not stored into a mapping: the first store into a file that has its space and no content makes a file system
 * fill megabytes around it.
 */
static int write_begin(int fd)
{
	const size_t tail = offsetof(struct region_file, hami.slot_count);
	struct region_file *file = mmap(NULL, sizeof(*file), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int r;

	if (file == MAP_FAILED)
		return -errno;
	fill(file);
	r = write_at(fd, file, 0, offsetof(struct region_file, hami.slots));
	if (r == 0)
		r = write_at(fd, file, tail, sizeof(file->hami) - tail);
	if (r == 0)
		r = write_at(fd, file, offsetof(struct region_file, own),
			offsetof(struct region_own, devices));
	munmap(file, sizeof(*file));
	return r;
}

/* Makes the open file a region, but for its name. */
static int fill_file(int fd, mode_t mode)
{
	int r = filesystem_of(fd)->is_remote ? REGION_E_REMOTE : take_space(fd);

	if (r == 0)
		r = write_begin(fd);
	FAULT("begin: region filled");
	/* fchmod, because the process's umask is the process's. */
	return r == 0 && fchmod(fd, mode) < 0 ? -errno : r;
}

/* The folder of a path, or of another name in it. */
static int name_beside(const char *path, const char *name, char ret_path[TEMPORARY_BYTES])
{
	const char *slash = strrchr(path, '/');
	int length = slash ? (int)(slash - path + 1) : 0;
	int r = snprintf(ret_path, TEMPORARY_BYTES, "%.*s%s", length, path, name);

	return r < 0 || r >= TEMPORARY_BYTES ? -ENAMETOOLONG : 0;
}

/* A file without a name, which is linked to its own when it is whole. *ret_is_possible: whether there can be such a file here. */
static int create_unnamed(const char *path, mode_t mode, bool *ret_is_possible)
{
	char folder[TEMPORARY_BYTES], link[32];
	_cleanup_fd_ int fd = -1;
	int r = name_beside(path, ".", folder);

	if (r == 0)
		fd = open(folder, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	*ret_is_possible = fd >= 0;
	if (fd < 0)
		return r ? r : -errno;
	r = fill_file(fd, mode);
	if (r)
		return r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 || errno == EEXIST)
		return 0;
	/* without /proc, or where that may not be looked into */
	*ret_is_possible = false;
	return -errno;
}

/* Its name tells nobody which region is being made: who has that name first keeps its maker from it. */
static int create_named(const char *path, mode_t mode)
{
	char temporary[TEMPORARY_BYTES], name[24];
	_cleanup_fd_ int fd = -1;
	int r;

	snprintf(name, sizeof(name), ".%016llx", (unsigned long long)mark_random());
	r = name_beside(path, name, temporary);
	if (r < 0)
		return r;
	fd = open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = fill_file(fd, mode);
	if (r == 0 && link(temporary, path) < 0 && errno != EEXIST)
		r = -errno;
	unlink(temporary);
	return r;
}

int region_make(const char *path, mode_t mode)
{
	bool is_possible;
	int r = create_unnamed(path, mode, &is_possible);

	if (!is_possible)
		r = create_named(path, mode);
	FAULT("begin: region linked");
	return r;
}
