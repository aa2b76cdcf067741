/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process that stands for us.
 *
 * Signals are blocked and fetched with sigwaitinfo(), which tells their sender: a signal of a terminal's
 * keys reached the whole foreground group, the child too, and is not sent a second time.
 */
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define STATUS_OF_SIGNAL 128

static const int passed_on[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/* In the child: becomes the program, or tells the parent why not. */
static void become(char **argv, const sigset_t *mask, const struct sigaction *on_child, int tell_fd)
{
	int error;

	sigaction(SIGCHLD, on_child, NULL);
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	error = errno;
	/* The pipe is empty and takes an int whole; if not, the parent sees the status. */
	if (write(tell_fd, &error, sizeof(error)) < 0)
		_exit(126);
	_exit(127);
}

/* Reads what become() told; 0 where the pipe was closed by the exec. */
static int hear(int fd)
{
	int error = 0;
	ssize_t got;

	do
		got = read(fd, &error, sizeof(error));
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)sizeof(error) ? error : 0;
}

int child_start(char **argv, struct child *ret_child, struct err *err)
{
	struct sigaction standard = {.sa_handler = SIG_DFL}, on_child;
	struct child child;
	_cleanup_fd_ int hear_fd = -1;
	sigset_t mask;
	int fds[2], error;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, errno, "make a pipe: %s", strerror(errno));
	hear_fd = fds[0];
	sigemptyset(&child.watched);
	sigaddset(&child.watched, SIGCHLD);
	for (size_t i = 0; i < ARRAY_SIZE(passed_on); i++)
		sigaddset(&child.watched, passed_on[i]);
	/* Where it is ignored, which may have been inherited, no child could be waited for. */
	sigaction(SIGCHLD, &standard, &on_child);
	sigprocmask(SIG_BLOCK, &child.watched, &mask);
	child.pid = fork();
	if (child.pid == 0)
		become(argv, &mask, &on_child, fds[1]);
	error = child.pid < 0 ? errno : 0;
	close(fds[1]);
	if (error)
		return err_set(err, error, "start a process: %s", strerror(error));
	error = hear(hear_fd);
	if (error) {
		waitpid(child.pid, NULL, 0);
		return err_set(err, error, "run '%s': %s", argv[0],
			error == ENOENT && !strchr(argv[0], '/')
				? "there is no such program in PATH"
				: strerror(error));
	}
	*ret_child = child;
	return 0;
}

static void pass_on(const struct child *child, const siginfo_t *signal)
{
	bool is_key = signal->si_code == SI_KERNEL &&
		      (signal->si_signo == SIGINT || signal->si_signo == SIGQUIT);

	if (signal->si_signo != SIGCHLD && !is_key)
		kill(child->pid, signal->si_signo);
}

int child_wait(const struct child *child)
{
	siginfo_t signal;
	int status;

	for (;;) {
		pid_t ended = waitpid(child->pid, &status, WNOHANG);

		if (ended == child->pid)
			break;
		if (ended < 0 && errno != EINTR)
			return STATUS_OF_SIGNAL;
		if (sigwaitinfo(&child->watched, &signal) > 0)
			pass_on(child, &signal);
	}
	return WIFSIGNALED(status) ? STATUS_OF_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}
