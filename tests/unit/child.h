/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes for tests, with a channel in both directions, so that no test needs to sleep. A
 * child dies with the test. Inside a child no assertion of cmocka may be used: it returns a status.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_SIGNALLED 256 /* added to the signal's number in the result of child_wait() */

struct child {
	pid_t pid;
	int fd; /* for child_say() and child_hear() */
};

/* Returns what the process exits with. */
typedef int child_fn(int fd, void *argument);

/* cmocka's handlers would go on with the tests, in the child. */
static inline void child_reset_signals(void)
{
	static const int handled[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};

	for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
		signal(handled[i], SIG_DFL);
}

/* pid is -1 where there is no process to be had. */
static inline struct child child_start(child_fn *body, void *argument)
{
	struct child c = {.pid = -1, .fd = -1};
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return c;
	c.pid = fork();
	if (c.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child_reset_signals();
		close(pair[0]);
		_exit(body(pair[1], argument));
	}
	close(pair[1]);
	c.fd = pair[0];
	return c;
}

static inline bool child_say(int fd, uint64_t word)
{
	return send(fd, &word, sizeof(word), MSG_NOSIGNAL) == (ssize_t)sizeof(word);
}

/* The other side's next word; UINT64_MAX where it has gone. */
static inline uint64_t child_hear(int fd)
{
	uint64_t word;

	return read(fd, &word, sizeof(word)) == (ssize_t)sizeof(word) ? word : UINT64_MAX;
}

/* Exit status, or CHILD_SIGNALLED + the signal that ended it. */
static inline int child_wait(struct child *c)
{
	int status = -1;

	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (waitpid(c->pid, &status, 0) != c->pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : CHILD_SIGNALLED + WTERMSIG(status);
}

static inline int child_kill(struct child *c)
{
	kill(c->pid, SIGKILL);
	return child_wait(c);
}

/* Memory that parent and children share; zeroed. */
static inline void *child_shared_memory(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}
