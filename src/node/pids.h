/* SPDX-License-Identifier: Apache-2.0 */
/* The PID here of a process of another PID namespace. */
#pragma once

#include <stdint.h>

/*
 * The PID, in this process's namespace, of the process that is `own_pid` in its own, which has that
 * inode number, and began at start_time (/proc/PID/stat field 22); 0 where it is not to be seen.
 */
int pids_find(uint32_t own_pid, uint64_t pid_namespace, uint64_t start_time);
