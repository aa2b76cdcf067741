/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptor 2 of a process that may be another program's. */
#include "base/stderr.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

/* For a reader who is slow: lines are few, and some thread of the program is kept waiting by each. */
#define WAIT_MS 20

/* Written once, by the library's constructor, before the program has a thread. */
static struct {
	bool is_set, is_open;
	dev_t device;
	ino_t inode;
} first;

void stderr_remember(void)
{
	struct file_identity id = {.inode = 0};

	first.is_open = file_identify(STDERR_FILENO, &id) == 0;
	first.device = id.device;
	first.inode = id.inode;
	first.is_set = true;
}

static bool is_for_lines(const struct file_identity *id)
{
	struct termios terminal;
	int flags;

	if (!first.is_set ||
		(first.is_open && first.device == id->device && first.inode == id->inode))
		return true;
	flags = fcntl(STDERR_FILENO, F_GETFL);
	if (flags < 0 || id->is_folder)
		return false;
	if (id->is_regular)
		return (flags & O_ACCMODE) == O_WRONLY && (flags & O_APPEND);
	if (id->is_pipe)
		return (flags & O_ACCMODE) == O_WRONLY;
	return id->device_major && tcgetattr(STDERR_FILENO, &terminal) == 0;
}

/* A pipe as a description of its own, so that nothing changes for who else has it; below 0 where it cannot be had. */
static int open_pipe(void)
{
	return open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool has_room(void)
{
	struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};

	return poll(&room, 1, WAIT_MS) == 1 &&
	       (room.revents & (POLLOUT | POLLERR | POLLHUP)) == POLLOUT;
}

/* With both signals blocked. True where it was sent SIGPIPE for it. */
static bool put(const struct file_identity *id, const char *line, size_t bytes)
{
	_cleanup_fd_ int pipe_fd = -1;

	if (id->is_socket) {
		ssize_t sent = send(STDERR_FILENO, line, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

		(void)sent;
		return false;
	}
	/* A regular file has room; beyond the limit of its size a write would end the program by SIGXFSZ. */
	if (id->is_regular ? file_may_grow_to(id->size_bytes + bytes) < 0 : !has_room())
		return false;
	/* Another one may fill a pipe between the look and the write. */
	if (id->is_pipe)
		pipe_fd = open_pipe();
	return write(pipe_fd < 0 ? STDERR_FILENO : pipe_fd, line, bytes) < 0 && errno == EPIPE;
}

/*
 * SIGPIPE is what a write to a pipe gets that nobody reads, and SIGTTOU one to a terminal (stty tostop) from the background. Either would
 * be the program's end or rest for a line that it knows nothing of. SIGTTOU is not sent where it is blocked, and SIGPIPE is this thread's
 * own: it is taken back, but where the program had one waiting already.
 */
void stderr_put(const char *line, size_t bytes)
{
	static const struct timespec now = {.tv_sec = 0};
	struct file_identity id;
	sigset_t ours, before, waiting;

	if (file_identify(STDERR_FILENO, &id) < 0 || !is_for_lines(&id))
		return;
	sigemptyset(&ours);
	sigaddset(&ours, SIGPIPE);
	sigaddset(&ours, SIGTTOU);
	if (sigpending(&waiting) < 0 || sigprocmask(SIG_BLOCK, &ours, &before) < 0)
		return;
	sigdelset(&ours, SIGTTOU);
	if (put(&id, line, bytes) && !sigismember(&waiting, SIGPIPE))
		while (sigtimedwait(&ours, NULL, &now) < 0 && errno == EINTR)
			;
	sigprocmask(SIG_SETMASK, &before, NULL);
}
