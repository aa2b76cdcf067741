/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container that a process is in, by the kernel's word: its control group, which the runtime has named by the container's id.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define CGROUP_ID_BYTES 13 /* twelve digits, as runtimes show it, and a zero byte */

/*
 * The container's id in the text of /proc/PID/cgroup. Of containers in containers the outermost: below its own group a container may
 * make groups of any name. False where there is none, or hierarchies differ.
 */
bool cgroup_parse_id(const char *text, char ret_id[CGROUP_ID_BYTES]);

/* The same of a process. A user who may make groups of his own may name them as he likes: an id is good beside its user. */
bool cgroup_read_id(pid_t pid, char ret_id[CGROUP_ID_BYTES]);
