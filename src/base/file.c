/* SPDX-License-Identifier: Apache-2.0 */
/* Files, for code that may run in any process on any C library. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The kernel's struct stat is glibc's on x86-64 and aarch64; its wrapper needs glibc 2.33. */
static int stat_at(int fd, const char *path, int flags, struct file_identity *ret_identity)
{
	struct stat s;

	if (syscall(SYS_newfstatat, fd, path, &s, flags) < 0)
		return -errno;
	*ret_identity = (struct file_identity){.device = s.st_dev,
		.inode = s.st_ino,
		.size_bytes = (uint64_t)s.st_size,
		.changed_ns =
			(uint64_t)s.st_mtim.tv_sec * 1000000000u + (uint64_t)s.st_mtim.tv_nsec,
		.is_regular = S_ISREG(s.st_mode),
		.device_major = S_ISCHR(s.st_mode) ? major(s.st_rdev) : 0};
	return 0;
}

int file_identify(int fd, struct file_identity *ret_identity)
{
	return stat_at(fd, "", AT_EMPTY_PATH, ret_identity);
}

int file_identify_path(const char *path, struct file_identity *ret_identity)
{
	return stat_at(AT_FDCWD, path, 0, ret_identity);
}

int file_read(const char *path, char *buffer, size_t size, size_t *ret_length)
{
	/* O_NONBLOCK: somebody may have put a FIFO there. */
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	size_t length = 0;

	if (fd < 0)
		return -errno;
	for (;;) {
		ssize_t got = read(fd, buffer + length, size - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		length += (size_t)got;
		if (length == size)
			return -EFBIG;
	}
	buffer[length] = '\0';
	*ret_length = length;
	return 0;
}

static int lock_call(int fd, int command, int type, int64_t at, struct flock *ret_lock)
{
	struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	if (fcntl(fd, command, &l) < 0)
		return errno == EACCES ? -EAGAIN : -errno;
	if (ret_lock)
		*ret_lock = l;
	return 0;
}

int file_lock_byte(int fd, int64_t at)
{
	return lock_call(fd, F_OFD_SETLK, F_WRLCK, at, NULL);
}

void file_unlock_byte(int fd, int64_t at)
{
	/* Unlocking what we hold cannot fail on a valid descriptor. */
	if (lock_call(fd, F_OFD_SETLK, F_UNLCK, at, NULL) < 0)
		return;
}

int file_byte_is_locked(int fd, int64_t at, bool *ret_is_locked)
{
	struct flock l = {.l_type = F_UNLCK};
	int r = lock_call(fd, F_OFD_GETLK, F_WRLCK, at, &l);

	if (r < 0)
		return r;
	*ret_is_locked = l.l_type != F_UNLCK;
	return 0;
}

int file_share_range(int fd, int64_t at, int64_t length)
{
	struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = length};

	return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}
