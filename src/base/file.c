/* SPDX-License-Identifier: Apache-2.0 */
/* Files, for code that may run in any process on any C library. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef O_PATH
#define O_PATH 010000000
#endif
#ifndef SYS_statx
#ifdef __x86_64__
#define SYS_statx 332
#else
#define SYS_statx 291
#endif
#endif

/* The kernel's struct statx, which has no name in older C libraries, and its STATX_ATTR_MOUNT_ROOT. */
struct extended_stat {
	uint32_t mask, block_bytes;
	uint64_t attributes;
	uint32_t link_count, owner, group;
	uint16_t mode, unused;
	uint64_t inode, size, blocks, attributes_mask, rest[24];
};
_Static_assert(sizeof(struct extended_stat) == 256, "as the kernel has it");
#define IS_MOUNT UINT64_C(0x2000)

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
		.is_folder = S_ISDIR(s.st_mode),
		.is_pipe = S_ISFIFO(s.st_mode),
		.is_socket = S_ISSOCK(s.st_mode),
		.mode = s.st_mode & 07777,
		.owner = s.st_uid,
		.link_count = s.st_nlink,
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

static int ask_mount(int fd, const char *path, int flags, bool *ret_is_mount)
{
	struct extended_stat s = {.attributes = 0};

	if (syscall(SYS_statx, fd, path, flags, 0, &s) < 0)
		return -errno;
	if (!(s.attributes_mask & IS_MOUNT))
		return -EOPNOTSUPP;
	*ret_is_mount = s.attributes & IS_MOUNT;
	return 0;
}

bool file_is_mount(int fd)
{
	bool is_mount = false;

	return ask_mount(fd, "", AT_EMPTY_PATH, &is_mount) == 0 && is_mount;
}

int file_make_folder(int folder_fd, const char *path, unsigned mode)
{
	struct file_identity id = {.mode = 0};
	_cleanup_fd_ int fd = -1;
	char link[32];
	int r;

	if (mkdirat(folder_fd, path, mode & 0777) < 0)
		return -errno;
	fd = openat(folder_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : file_identify(fd, &id);
	/* Another one may have taken its place. */
	if (r == 0 && id.owner != geteuid())
		r = -EPERM;
	if (r < 0 || id.mode == mode)
		return r;
	/* A descriptor that only names it cannot be given to fchmod(). */
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return chmod(link, mode) < 0 ? -errno : 0;
}

int file_may_grow_to(uint64_t size_bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < size_bytes ? -EFBIG : 0;
}

int file_identify_at(int folder_fd, const char *path, struct file_identity *ret_identity)
{
	return stat_at(folder_fd, path, AT_SYMLINK_NOFOLLOW, ret_identity);
}

/* "/proc/self/fd/N", for the folder "/proc/self/fd/" */
static void name_descriptor(const char *folder, int fd, char ret_path[32])
{
	size_t length = strlen(folder);
	char digits[12], *at = digits + sizeof(digits);
	unsigned value = (unsigned)fd;

	*--at = '\0';
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	memcpy(ret_path, folder, length);
	memcpy(ret_path + length, at, (size_t)(digits + sizeof(digits) - at));
}

int file_open_regular(int folder_fd, const char *path, int flags, int *ret_fd)
{
	/* Of an O_PATH descriptor nothing is opened yet, so no device and no FIFO notices. */
	_cleanup_fd_ int at = openat(folder_fd, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW));
	int open_flags = (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	struct file_identity before, after;
	_cleanup_fd_ int fd = -1;
	char again[32];
	int r;

	if (at < 0)
		return -errno;
	r = file_identify(at, &before);
	if (r < 0)
		return r;
	if (!before.is_regular)
		return before.is_folder ? -EISDIR : -EBADF;
	name_descriptor("/proc/self/fd/", at, again);
	fd = open(again, open_flags);
	/* Without /proc the file could be exchanged in between. */
	if (fd < 0 && errno == ENOENT)
		fd = openat(folder_fd, path, open_flags | (flags & O_NOFOLLOW));
	if (fd < 0)
		return -errno;
	r = file_identify(fd, &after);
	if (r < 0)
		return r;
	if (after.device != before.device || after.inode != before.inode)
		return -ESTALE;
	*ret_fd = take_fd(&fd);
	return 0;
}

static int read_all(int fd, char *buffer, size_t size, size_t *ret_length)
{
	size_t length = 0;

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

int file_read(const char *path, char *buffer, size_t size, size_t *ret_length)
{
	/* O_NONBLOCK: somebody may have put a FIFO there. */
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : read_all(fd, buffer, size, ret_length);
}

int file_find_mount(int fd, char ret_mount[FILE_MOUNT_BYTES])
{
	char about[32], text[1024];
	const char *line;
	size_t length;

	name_descriptor("/proc/self/fdinfo/", fd, about);
	line = file_read(about, text, sizeof(text), &length) < 0 ? NULL : strstr(text, "mnt_id:");
	length = line ? strcspn(line, "\n") : 0;
	if (length == 0 || length >= FILE_MOUNT_BYTES)
		return -EOPNOTSUPP;
	memcpy(ret_mount, line, length);
	ret_mount[length] = '\0';
	return 0;
}

static int find_mount_of(const char *path, char ret_mount[FILE_MOUNT_BYTES])
{
	_cleanup_fd_ int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : file_find_mount(fd, ret_mount);
}

int file_is_mounted(const char *path, bool *ret_is_mount)
{
	int r = ask_mount(AT_FDCWD, path, 0, ret_is_mount);
	char folder[256], own[FILE_MOUNT_BYTES], above[FILE_MOUNT_BYTES];
	const char *end = strrchr(path, '/');

	if (r == 0 || r == -ENOENT)
		return r;
	if (!end || (size_t)(end - path) + 2 > sizeof(folder))
		return -EOPNOTSUPP;
	/* with its slash, which is all of the root's name */
	memcpy(folder, path, (size_t)(end - path) + 1);
	folder[end - path + 1] = '\0';
	r = find_mount_of(path, own);
	if (r == 0)
		r = find_mount_of(folder, above);
	if (r == 0)
		*ret_is_mount = strcmp(own, above) != 0;
	return r == 0 || r == -ENOENT ? r : -EOPNOTSUPP;
}

int file_read_boot(char ret_boot[FILE_BOOT_BYTES])
{
	size_t length;
	int r = file_read("/proc/sys/kernel/random/boot_id", ret_boot, FILE_BOOT_BYTES, &length);

	if (r < 0)
		return r;
	ret_boot[strcspn(ret_boot, "\n")] = '\0';
	return 0;
}

int file_read_regular(
	int folder_fd, const char *path, int flags, char *buffer, size_t size, size_t *ret_length)
{
	_cleanup_fd_ int fd = -1;
	int r = file_open_regular(folder_fd, path, O_RDONLY | flags, &fd);

	return r < 0 ? r : read_all(fd, buffer, size, ret_length);
}

static int lock_call(int fd, int command, int type, int64_t at)
{
	struct flock l = {.l_type = (short)type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

	return fcntl(fd, command, &l) < 0 ? errno == EACCES ? -EAGAIN : -errno : 0;
}

int file_lock_byte(int fd, int64_t at)
{
	return lock_call(fd, F_OFD_SETLK, F_WRLCK, at);
}

void file_unlock_byte(int fd, int64_t at)
{
	/* Unlocking what we hold cannot fail on a valid descriptor. */
	if (lock_call(fd, F_OFD_SETLK, F_UNLCK, at) < 0)
		return;
}

int file_byte_is_locked(int fd, int64_t at, bool *ret_is_locked)
{
	return file_range_is_locked(fd, at, 1, ret_is_locked);
}

int file_range_is_locked(int fd, int64_t at, int64_t length, bool *ret_is_locked)
{
	struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = length};

	if (fcntl(fd, F_OFD_GETLK, &l) < 0)
		return -errno;
	*ret_is_locked = l.l_type != F_UNLCK;
	return 0;
}

int file_share_range(int fd, int64_t at, int64_t length)
{
	struct flock l = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = length};

	return fcntl(fd, F_OFD_SETLK, &l) < 0 ? -errno : 0;
}
