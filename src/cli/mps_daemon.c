/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One control daemon of the Multi-Process Service.
 *
 * The real one listens on a socket `control` in its pipe directory, which stays there when it has ended
 * (measured with driver 580); the simulated one reads a FIFO of that name.
 */
#include "cli/mps_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/text.h"

#define START_NS  UINT64_C(5000000000)	/* it takes 0.06 s on an H200 */
#define STOP_NS	  UINT64_C(15000000000) /* 0.1 s; 13 s where a client does not go */
#define PAUSE_NS  2000000
#define SAID_FILE "said" /* in the log directory: what the control program wrote */

static void pause_briefly(void)
{
	struct timespec pause = {.tv_nsec = PAUSE_NS};

	nanosleep(&pause, NULL);
}

static bool has_listener(const char *pipe)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	_cleanup_fd_ int folder_fd = open(pipe, O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_fd_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (folder_fd < 0 || fd < 0)
		return false;
	/* Whatever the length of the path. */
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", folder_fd);
	/* Of the wrong kind on purpose: it tells that a daemon listens, which does not notice. */
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ||
	       errno == EPROTOTYPE;
}

bool mps_daemon_is_alive(const char *pipe)
{
	_cleanup_fd_ int at = -1, fd = -1;
	char path[4096];
	struct stat s;

	if ((size_t)snprintf(path, sizeof(path), "%s/control", pipe) >= sizeof(path))
		return false;
	/* Whoever owns the folder may put anything there: nothing but a FIFO is opened. */
	at = open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	if (at < 0 || fstat(at, &s) < 0)
		return false;
	if (S_ISSOCK(s.st_mode))
		return has_listener(pipe);
	if (!S_ISFIFO(s.st_mode))
		return false;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", at);
	fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd >= 0;
}

/* Variables that would make other limits its clients' default, or make it a tenant itself. */
static const char *const unwanted[] = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
	"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "CUDA_VISIBLE_DEVICES", "LD_PRELOAD", "VGPU_SHARE"};

/* In the child: becomes the control program. */
static void become(const struct mps_place *place, const char *program, const char *argument,
	const char *visible, int input_fd)
{
	char path[SHARE_PATH_BYTES + 8];
	char name[] = "nvidia-cuda-mps-control", option[8], *argv[] = {name, NULL, NULL};
	sigset_t none;
	int fd;

	/* Signals of the program's terminal are not for a daemon that other programs use, too. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	for (size_t i = 0; i < ARRAY_SIZE(unwanted); i++)
		unsetenv(unwanted[i]);
	setenv("CUDA_MPS_PIPE_DIRECTORY", place->pipe, 1);
	setenv("CUDA_MPS_LOG_DIRECTORY", place->log, 1);
	if (*visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	snprintf(path, sizeof(path), "%s/" SAID_FILE, place->log);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || dup2(input_fd, 0) < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_exit(126);
	snprintf(option, sizeof(option), "%s", argument);
	if (*option)
		argv[1] = option;
	execv(program, argv);
	dprintf(2, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

/* -ETIMEDOUT where it had to be killed, -EIO where it failed. */
static int wait_for(pid_t pid, uint64_t deadline_ns)
{
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
		if (clock_now_ns() > deadline_ns) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return -ETIMEDOUT;
		}
		pause_briefly();
	}
	/* Unknown where SIGCHLD is ignored; whether the daemon listens will tell. */
	return ended < 0 || status == 0 ? 0 : -EIO;
}

static int run(const struct mps_place *place, const char *program, const char *argument,
	const char *visible, int input_fd, uint64_t deadline_ns)
{
	pid_t pid = fork();

	if (pid == 0)
		become(place, program, argument, visible, input_fd);
	return pid < 0 ? -errno : wait_for(pid, deadline_ns);
}

/* The last line of a file that says anything. */
static void read_last_line(const char *folder, const char *file, char *ret_line, size_t size)
{
	char path[SHARE_PATH_BYTES + 16], line[256];
	_cleanup_file_ FILE *log = NULL;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	log = fopen(path, "re");
	while (log && fgets(line, sizeof(line), log)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (*line)
			snprintf(ret_line, size, "%s", line);
	}
}

static int explain_start(const struct mps_place *place, int error, struct err *err)
{
	char line[256] = "it says nothing";

	read_last_line(place->log, "control.log", line, sizeof(line));
	read_last_line(place->log, SAID_FILE, line, sizeof(line));
	text_make_harmless(line);
	return err_set(err, error, "the MPS control daemon does not start%s: %s",
		error == ETIMEDOUT ? " within 5 s" : "", line);
}

int mps_daemon_start(
	const struct mps_place *place, const char *program, const char *visible, struct err *err)
{
	uint64_t deadline_ns = clock_now_ns() + START_NS;
	_cleanup_fd_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int r = null_fd < 0 ? -errno : run(place, program, "-d", visible, null_fd, deadline_ns);

	while (r == 0 && !mps_daemon_is_alive(place->pipe)) {
		if (clock_now_ns() > deadline_ns)
			r = -ETIMEDOUT;
		pause_briefly();
	}
	return r < 0 ? explain_start(place, -r, err) : 0;
}

int mps_daemon_stop(const struct mps_place *place, const char *program)
{
	uint64_t deadline_ns = clock_now_ns() + STOP_NS;
	_cleanup_fd_ int input_fd = -1;
	static const char quit[] = "quit\n";
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	input_fd = fds[0];
	/* A pipe has room for it. */
	r = write(fds[1], quit, sizeof(quit) - 1) == sizeof(quit) - 1 ? 0 : -EIO;
	close(fds[1]);
	if (r == 0)
		r = run(place, program, "", "", input_fd, deadline_ns);
	/* One that has just ended by itself is no failure. */
	while (mps_daemon_is_alive(place->pipe)) {
		if (r == -ETIMEDOUT || clock_now_ns() > deadline_ns)
			return -ETIMEDOUT;
		pause_briefly();
	}
	return 0;
}
