/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, for code that may run in any process on any C library: no stdio, no stat() wrapper (its
 * symbol is newer than the oldest glibc that we load into), and locks that belong to the open file
 * description.
 */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"

struct file_identity {
	dev_t device;
	ino_t inode;
	uint64_t size_bytes;
	uint64_t changed_ns; /* time of the last change of the content */
	bool is_regular, is_folder, is_pipe, is_socket;
	unsigned mode; /* permissions */
	uid_t owner;
	uint64_t link_count;
	unsigned device_major; /* of a character device; 0: it is none */
};

/* Whether a call failed for want of descriptors or memory, of which there may be more the next time. */
static inline bool file_is_want(int r)
{
	return r == -EMFILE || r == -ENFILE || r == -ENOMEM;
}

int file_identify(int fd, struct file_identity *ret_identity) MUST_CHECK;
int file_identify_path(const char *path, struct file_identity *ret_identity) MUST_CHECK;

/* The same of a path below a folder (or AT_FDCWD), whose last part may be a link, which is not followed. */
int file_identify_at(
	int folder_fd, const char *path, struct file_identity *ret_identity) MUST_CHECK;

/* Whether a file system, or a part of one, is mounted at just this file or folder. False where the kernel (before 5.8) does not say. */
bool file_is_mount(int fd);

/*
 * The same of what a path leads to, with any kernel. -ENOENT where nothing is there; -EOPNOTSUPP where a kernel before 5.8, or a filter of
 * system calls, does not say, nor does /proc.
 */
int file_is_mounted(const char *path, bool *ret_is_mount) MUST_CHECK;

/*
 * The mount that an open file is of, as a text that is the same for all files of that mount in this namespace. -EOPNOTSUPP where /proc does not
 * tell.
 */
#define FILE_MOUNT_BYTES 32
int file_find_mount(int fd, char ret_mount[FILE_MOUNT_BYTES]) MUST_CHECK;

/*
 * Opens a regular file below a folder (or AT_FDCWD). What may be anybody's is opened so: nothing else is opened at all, so
 * no FIFO waits, no device starts and no terminal becomes ours. The flags are O_RDONLY or O_RDWR, and O_NOFOLLOW
 * where the last part may be no link. -EISDIR where it is a
 * folder, -EBADF where it is something else.
 */
int file_open_regular(int folder_fd, const char *path, int flags, int *ret_fd) MUST_CHECK;

/* As file_read(), of a file that is opened so; the flags are O_NOFOLLOW or 0. */
int file_read_regular(int folder_fd, const char *path, int flags, char *buffer, size_t size,
	size_t *ret_length) MUST_CHECK;

/*
 * Reads a whole file of less than size bytes into buffer and ends it with a zero byte. -EFBIG where
 * it is larger; *ret_length without the zero byte.
 */
int file_read(const char *path, char *buffer, size_t size, size_t *ret_length) MUST_CHECK;

#define FILE_BOOT_BYTES 40 /* a UUID and its zero byte */

/* The id that the kernel has made for this boot of the machine. -errno where it does not tell it. */
int file_read_boot(char ret_boot[FILE_BOOT_BYTES]) MUST_CHECK;

/*
 * Makes a folder below a folder (or AT_FDCWD), which has this mode whatever the umask: with one that takes the owner's own rights
 * nobody could open it to change that. -EEXIST where there is one already, or anything else.
 */
int file_make_folder(int folder_fd, const char *path, unsigned mode) MUST_CHECK;

/* -EFBIG where this process may make no file so large (RLIMIT_FSIZE): to try would end it by SIGXFSZ. */
int file_may_grow_to(uint64_t size_bytes) MUST_CHECK;

/*
 * Takes, gives back, or asks for the exclusive lock on one byte, never waiting. The lock belongs to
 * the open file description: it is held while any descriptor or mapping of that description lives,
 * and the kernel gives it back when the last of them goes, however the process ends. -EAGAIN where
 * another description has it.
 */
int file_lock_byte(int fd, int64_t at) MUST_CHECK;
void file_unlock_byte(int fd, int64_t at);
int file_byte_is_locked(int fd, int64_t at, bool *ret_is_locked) MUST_CHECK;

/* Whether another description has a lock on any byte of the range; the descriptor may be for reading alone. */
int file_range_is_locked(int fd, int64_t at, int64_t length, bool *ret_is_locked) MUST_CHECK;

/* Takes the lock on a range for reading, which any number of descriptions may hold at once. */
int file_share_range(int fd, int64_t at, int64_t length) MUST_CHECK;
