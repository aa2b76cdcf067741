/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of files (fcntl(2), F_SETLEASE). */
#pragma once

#include <sys/types.h>

/* The process that has a lease on the file; 0 where nothing tells. The file itself is not opened. */
pid_t lease_holder(int folder_fd, const char *name);
pid_t lease_holder_of(dev_t device, ino_t inode);
