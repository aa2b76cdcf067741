/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One control daemon of the Multi-Process Service.
 *
 * The real one listens on a socket `control` in its pipe directory, which stays there when it has ended
 * (measured with driver 580); the simulated one reads a FIFO of that name.
 */
#include "mps/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define PROGRAM	  "nvidia-cuda-mps-control"
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

/* Variables that would make other limits its clients' default, or make it a tenant itself; and those that are set anew. */
static const char *const unwanted[] = {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=",
	"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=", "CUDA_VISIBLE_DEVICES=", "LD_PRELOAD=", "VGPU_SHARE=",
	"CUDA_MPS_PIPE_DIRECTORY=", "CUDA_MPS_LOG_DIRECTORY="};

#define OURS 3 /* at most */

/* All that the child needs, made before the fork: other threads may hold the allocator's lock. */
struct child {
	char *argv[3], **envp;
	char texts[OURS][SHARE_FILE_BYTES];
	char said[SHARE_PATH_BYTES + 8];
	const char *memory, *program;
	int input_fd;
};

static bool is_unwanted(const char *variable)
{
	for (size_t i = 0; i < ARRAY_SIZE(unwanted); i++)
		if (!strncmp(variable, unwanted[i], strlen(unwanted[i])))
			return true;
	return false;
}

static int make_child(const struct mps_place *place, const char *program, const char *visible,
	int input_fd, struct child *child)
{
	static char name[] = PROGRAM, option[] = "-d";
	size_t count = 0, used = 0;

	while (environ[count])
		count++;
	child->envp = calloc(count + OURS + 1, sizeof(*child->envp));
	if (!child->envp)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!is_unwanted(environ[i]))
			child->envp[used++] = environ[i];
	snprintf(child->texts[0], sizeof(child->texts[0]), "CUDA_MPS_PIPE_DIRECTORY=%s",
		place->pipe);
	snprintf(child->texts[1], sizeof(child->texts[1]), "CUDA_MPS_LOG_DIRECTORY=%s", place->log);
	snprintf(child->texts[2], sizeof(child->texts[2]), "CUDA_VISIBLE_DEVICES=%s",
		visible ? visible : "");
	for (size_t i = 0; i < OURS; i++)
		if (i < 2 || (visible && *visible))
			child->envp[used++] = child->texts[i];
	child->argv[0] = name;
	child->argv[1] = visible ? option : NULL;
	snprintf(child->said, sizeof(child->said), "%s/" SAID_FILE, place->log);
	child->memory = visible ? place->memory : "";
	child->program = program;
	child->input_fd = input_fd;
	return 0;
}

/* Its /dev/shm is the one that its clients in containers have. */
static bool take_memory(const char *memory)
{
	return !*memory || (unshare(CLONE_NEWNS) == 0 &&
				   mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
				   mount(memory, "/dev/shm", NULL, MS_BIND, NULL) == 0);
}

static _Noreturn void give_up(const char *words)
{
	(void)!write(2, words, strlen(words));
	_exit(126);
}

/* In the child: becomes the control program. */
static _Noreturn void become(const struct child *child)
{
	sigset_t none;
	int fd;

	/* Signals of the program's terminal are not for a daemon that other programs use, too. */
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	fd = open(child->said, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 || fchmod(fd, 0600) < 0 || dup2(child->input_fd, 0) < 0 || dup2(fd, 1) < 0 ||
		dup2(fd, 2) < 0)
		_exit(126);
	if (!take_memory(child->memory))
		give_up("its shared memory cannot be mounted, for which CAP_SYS_ADMIN is needed\n");
	execve(child->program, child->argv, child->envp);
	give_up("the control program cannot be executed\n");
}

/* visible is NULL where a daemon is to end. */
static int begin(const struct mps_place *place, const char *program, const char *visible,
	int input_fd, struct mps_run *ret_run)
{
	struct child *child = calloc(1, sizeof(*child));
	int r = child ? make_child(place, program, visible, input_fd, child) : -ENOMEM;

	if (r == 0) {
		ret_run->is_start = visible;
		ret_run->result = 0;
		ret_run->deadline_ns = clock_now_ns() + (visible ? START_NS : STOP_NS);
		ret_run->pid = fork();
		if (ret_run->pid == 0)
			become(child);
		r = ret_run->pid < 0 ? -errno : 0;
	}
	if (child)
		free(child->envp);
	free(child);
	return r;
}

/* -EAGAIN while the program runs. */
static int poll_program(struct mps_run *run)
{
	int status = 0;
	pid_t ended = run->pid ? waitpid(run->pid, &status, WNOHANG) : 0;

	if (!run->pid)
		return 0;
	if (ended == 0 || (ended < 0 && errno == EINTR)) {
		if (clock_now_ns() <= run->deadline_ns)
			return -EAGAIN;
		kill(run->pid, SIGKILL);
		waitpid(run->pid, NULL, 0);
		run->result = -ETIMEDOUT;
	} else if (ended > 0 && status != 0) {
		/* Unknown where SIGCHLD is ignored; whether the daemon listens will tell. */
		run->result = -EIO;
	}
	run->pid = 0;
	return 0;
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
	return err_set(err, error, "the MPS control daemon does not start%s: %s",
		error == ETIMEDOUT ? " within 5 s" : "", line);
}

int mps_daemon_poll(const struct mps_place *place, struct mps_run *run, struct err *err)
{
	if (poll_program(run) < 0)
		return -EAGAIN;
	if (run->is_start && run->result < 0)
		return explain_start(place, -run->result, err);
	if (mps_daemon_is_alive(place->pipe) == run->is_start)
		return 0;
	/* A program that failed to end one that has just ended by itself is no failure. */
	if (run->result != -ETIMEDOUT && clock_now_ns() <= run->deadline_ns)
		return -EAGAIN;
	return run->is_start ? explain_start(place, ETIMEDOUT, err) : -ETIMEDOUT;
}

int mps_daemon_begin_start(const struct mps_place *place, const char *program, const char *visible,
	struct mps_run *ret_run)
{
	_cleanup_fd_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return null_fd < 0 ? -errno : begin(place, program, visible, null_fd, ret_run);
}

int mps_daemon_begin_stop(
	const struct mps_place *place, const char *program, struct mps_run *ret_run)
{
	static const char quit[] = "quit\n";
	_cleanup_fd_ int input_fd = -1;
	int fds[2], r;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	input_fd = fds[0];
	/* A pipe has room for it. */
	r = write(fds[1], quit, sizeof(quit) - 1) == sizeof(quit) - 1 ? 0 : -EIO;
	close(fds[1]);
	return r == 0 ? begin(place, program, NULL, input_fd, ret_run) : r;
}

static int wait_for(const struct mps_place *place, struct mps_run *run, struct err *err)
{
	int r;

	while ((r = mps_daemon_poll(place, run, err)) == -EAGAIN)
		pause_briefly();
	return r;
}

int mps_daemon_start(
	const struct mps_place *place, const char *program, const char *visible, struct err *err)
{
	struct mps_run run;
	int r = mps_daemon_begin_start(place, program, visible, &run);

	return r < 0 ? err_set(err, -r, "start the MPS control daemon: %s", strerror(-r))
		     : wait_for(place, &run, err);
}

int mps_daemon_stop(const struct mps_place *place, const char *program)
{
	struct err ignored = ERR_NULL;
	struct mps_run run;
	int r = mps_daemon_begin_stop(place, program, &run);

	return r < 0 ? r : wait_for(place, &run, &ignored);
}

int mps_daemon_find(char ret_path[PLACE_BYTES], struct err *err)
{
	const char *at = getenv("PATH");
	struct stat s;

	while (at && *at) {
		int length = (int)strcspn(at, ":");

		if (*at == '/' &&
			snprintf(ret_path, PLACE_BYTES, "%.*s/" PROGRAM, length, at) <
				PLACE_BYTES &&
			access(ret_path, X_OK) == 0 && stat(ret_path, &s) == 0 &&
			S_ISREG(s.st_mode))
			return 0;
		at += length;
		at += *at == ':';
	}
	return err_set(
		err, ENOENT, "there is no " PROGRAM " in PATH; it comes with NVIDIA's driver");
}
