/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that is on its way out for as long as a test wants: all of its threads have ended, and whoever traces one of them has not asked
 * for it yet.
 */
#pragma once

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "tests/unit/child.h"

static inline void *lingering_thread(void *argument)
{
	int fd = *(int *)argument;

	child_say(fd, (uint64_t)syscall(SYS_gettid));
	child_hear(fd);
	syscall(SYS_exit, 0); /* of this thread alone */
	return NULL;
}

/* In the process, as its last call: its first thread ends, and the other one does when it is told to. Returns where there is no other. */
static inline void lingering_end_first(int fd)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, lingering_thread, &fd) == 0)
		syscall(SYS_exit, 0);
}

/* Returns when the kernel has written the thread off, or it is not there. */
static inline void lingering_await(pid_t pid, pid_t thread)
{
	char path[64], text[1024] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)thread);
	while (!strstr(text, ") Z ")) {
		FILE *file = fopen(path, "re");

		if (!file)
			return;
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		fclose(file);
	}
}

/*
 * Of a child that is about to call lingering_end_first(): returns the number of its other thread, which goes on, when the first one has
 * ended.
 */
static inline pid_t lingering_hear(const struct child *c)
{
	pid_t thread = (pid_t)child_hear(c->fd);

	lingering_await(c->pid, c->pid);
	return thread;
}

/* Whether the process has these two threads alone: with ThreadSanitizer it has one of that's own, which never ends. */
static inline bool lingering_is_of_two(const struct child *c, pid_t thread)
{
	char path[32];
	struct dirent *entry;
	bool is_of_two = true;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)c->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		pid_t task = (pid_t)atoi(entry->d_name);

		is_of_two &= !task || task == c->pid || task == thread;
	}
	return tasks && closedir(tasks) == 0 && is_of_two;
}

/* Has the other one end, too, and keeps it; false where nobody may trace it, or the process has more. */
static inline bool lingering_end_last(const struct child *c, pid_t thread)
{
	if (!lingering_is_of_two(c, thread) || syscall(SYS_ptrace, PTRACE_SEIZE, thread, 0, 0) < 0)
		return false;
	child_say(c->fd, 1);
	lingering_await(c->pid, thread);
	return true;
}

/* The process is gone, but for what its parent asks. */
static inline int lingering_let_go(struct child *c, pid_t thread)
{
	waitpid(thread, NULL, __WALL);
	return child_wait(c);
}
