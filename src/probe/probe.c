/* SPDX-License-Identifier: Apache-2.0 */
/* Whether /proc answers of a process. */
#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "node/look.h"

#define WAIT_MS	      200
#define SHORT_WAIT_MS 10 /* once several have not answered */
#define SHORT_AFTER   8
#define GOOD_NS	      UINT64_C(20000000) /* the last answer, in which all is read of a process */

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define FDS_OF_OLD_KERNELS 1024

static struct {
	pid_t process; /* of ours; 0: none */
	pid_t owner;   /* who began it */
	int fd;
	bool is_heard; /* of our end */
	pid_t last;
	uint64_t last_until_ns;
} probe;

/* Holds nothing that is this process's: neither its output nor its locks. */
static void __attribute__((noreturn)) answer(int fd)
{
	char path[64];
	pid_t pid;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(fd, 0);
	if (syscall(SYS_close_range, 1U, ~0U, 0U) < 0)
		for (int i = 1; i < FDS_OF_OLD_KERNELS; i++)
			close(i);
	while (recv(0, &pid, sizeof(pid), 0) == sizeof(pid)) {
		snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
		close(open(path, O_RDONLY | O_CLOEXEC));
		if (send(0, &pid, sizeof(pid), MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

void probe_end(void)
{
	/* A child of fork() has its parent's, which it could not wait for. */
	if (!probe.process || probe.owner != getpid())
		return;
	kill(probe.process, SIGKILL);
	waitpid(probe.process, NULL, __WALL);
	close(probe.fd);
	probe.process = 0;
}

/* Without a signal at its end, of which the program that vgpu run waits for has the only one. */
static bool begin(void)
{
	int fds[2];

	if (probe.process)
		return true;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	probe.process = (pid_t)syscall(SYS_clone, 0L, 0L, 0L, 0L, 0L);
	if (probe.process == 0)
		answer(fds[1]);
	close(fds[1]);
	if (probe.process > 0) {
		probe.fd = fds[0];
		probe.owner = getpid();
		/* Else who reaps no children, as PID 1 of a container, would have it for ever. */
		if (!probe.is_heard)
			probe.is_heard = atexit(probe_end) == 0;
		return true;
	}
	probe.process = 0;
	close(fds[0]);
	return false;
}

/* Where we cannot ask, it is looked at as ever. */
static bool ask(pid_t pid)
{
	struct pollfd told = {.events = POLLIN};
	int wait_ms = look_stuck_count(NULL) < SHORT_AFTER ? WAIT_MS : SHORT_WAIT_MS, r;
	pid_t seen;

	if (!begin())
		return true;
	told.fd = probe.fd;
	if (send(probe.fd, &pid, sizeof(pid), MSG_NOSIGNAL) == sizeof(pid)) {
		do
			r = poll(&told, 1, wait_ms);
		while (r < 0 && errno == EINTR);
		if (r != 0 && recv(probe.fd, &seen, sizeof(seen), 0) == sizeof(seen))
			return true;
		probe_end();
		return r != 0;
	}
	probe_end();
	return true;
}

bool probe_answers(pid_t pid)
{
	if (pid == probe.last && clock_now_ns() < probe.last_until_ns)
		return true;
	if (!ask(pid))
		return false;
	probe.last = pid;
	probe.last_until_ns = clock_now_ns() + GOOD_NS;
	return true;
}
