/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that another process has mapped.
 *
 * Only the kernel's own link to it (/proc/PID/map_files) is opened: that leads to the mapped file itself, whatever the
 * process has mounted over its path, and through none of its mounts.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/file.h"
#include "node/mappings.h"

#define MAPPED_PATH_BYTES 80

/* The kernel's link to it. */
void mapped_path(pid_t pid, const struct mapping *mapping, char ret_path[MAPPED_PATH_BYTES]);

/*
 * Opens what is behind such a link, for reading. -EPERM where this process may not (root alone may), -EMEDIUMTYPE where its
 * file system is none that is known to answer without asking a program of somebody's, -EBADF where it is no regular file.
 */
int mapped_open(const char *path, int *ret_fd) MUST_CHECK;

/* Which file it is; by the same rule, without opening it: somebody may have a lease on it. */
int mapped_identify(const char *path, struct file_identity *ret_identity) MUST_CHECK;
