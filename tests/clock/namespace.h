/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of a process's own, by time namespaces. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of Linux 5.6, which the headers may not know. */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static inline bool namespace_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_done;
}

/* Enters a user namespace, in which an ordinary user may make time namespaces. False where there is none to be had. */
static inline bool namespace_become_free(void)
{
	unsigned uid = getuid();
	char map[64];

	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	return unshare(CLONE_NEWUSER) == 0 && namespace_write("/proc/self/uid_map", map);
}

/* The children that this process forks from now on have a CLOCK_MONOTONIC that is so far ahead of the machine's. */
static inline bool namespace_set_ahead(uint64_t ms)
{
	char offset[64];

	snprintf(offset, sizeof(offset), "monotonic %llu %llu\n", (unsigned long long)(ms / 1000),
		(unsigned long long)(ms % 1000 * 1000000));
	return unshare(CLONE_NEWTIME) == 0 && namespace_write("/proc/self/timens_offsets", offset);
}

/* The clock of its children becomes the process's own. Not where it has threads. */
static inline bool namespace_come_to_children(void)
{
	int fd = open("/proc/self/ns/time_for_children", O_RDONLY | O_CLOEXEC);
	bool is_done = fd >= 0 && setns(fd, CLONE_NEWTIME) == 0;

	if (fd >= 0)
		close(fd);
	return is_done;
}

/* What this machine lacks for all that, or NULL. */
static inline const char *namespace_find_missing(void)
{
	int status = 1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(!(namespace_become_free() && namespace_set_ahead(1000)));
	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return NULL;
	return "it needs user and time namespaces";
}
