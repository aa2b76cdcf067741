/* SPDX-License-Identifier: Apache-2.0 */
/* The path here of a file that another process has by a path of its own. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/file.h"

#define HERE_PATH_BYTES 4096

/* A file, as a process has it. */
struct there {
	pid_t pid;
	const char *path;		      /* by the process's mounts */
	const struct file_identity *identity; /* and what it is */
};

/* Whether just that file is at the path here, on which nobody of a user's is asked. */
bool here_is_at(const char *path, const struct file_identity *identity);

/*
 * Finds it by where the process's mount of it begins on its file system, and looks whether the same file is there; *ret_is_own where
 * that mount is the process's root, so that no other's has the file. It reads lists of mounts, of which a user's process may have any number:
 * *lines counts theirs, up to most. -ENOENT where the file is nowhere here, or the process has something else at the path by now.
 */
int here_find(const struct there *there, unsigned *lines, unsigned most,
	char ret_path[HERE_PATH_BYTES], bool *ret_is_own) MUST_CHECK;
