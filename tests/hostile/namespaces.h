/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces of a program's own, for its children. */
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/hostile/hostile.h"

#define NAMESPACES_SKIPPED 77

static inline void namespaces_put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	MUST(fd < 0 || write(fd, text, strlen(text)) < 0);
	close(fd);
}

/* kind: CLONE_NEW...; where this user may not make one, in a namespace of users of its own. False where this machine gives none. */
static inline bool namespaces_leave(int kind)
{
	char map[64];
	uid_t user = getuid();

	if (unshare(kind) == 0)
		return true;
	if (unshare(CLONE_NEWUSER | kind) < 0)
		return false;
	namespaces_put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", (unsigned)user);
	namespaces_put("/proc/self/uid_map", map);
	return true;
}

/* Whether a child can leave so. */
static inline bool namespaces_can_leave(bool (*leave)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(leave() ? 0 : NAMESPACES_SKIPPED);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}
