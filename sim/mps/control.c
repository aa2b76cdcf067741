/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated control daemon of NVIDIA's Multi-Process Service.
 *	nvidia-cuda-mps-control -d	starts the daemon in the background
 *	nvidia-cuda-mps-control -f	is the daemon
 *	nvidia-cuda-mps-control		takes commands from its input: get_server_list, quit
 *
 * In $CUDA_MPS_PIPE_DIRECTORY the daemon keeps `control`, a FIFO that it reads commands from, and its
 * PID in a file. A client is a process that finds the FIFO with a reader. There is no server beside
 * the daemon: the simulated driver lets clients of one daemon work side by side by itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The folder without $CUDA_MPS_PIPE_DIRECTORY, as with the real one. */
#define FOLDER_DEFAULT "/tmp/nvidia-mps"
#define QUIT_WAIT_MS   10000

struct place {
	char folder[3072];
	char control[4096];
	char pid[4096];
};

static volatile sig_atomic_t is_told_to_end;

static void note_signal(int signal)
{
	(void)signal;
	is_told_to_end = 1;
}

static int find_place(struct place *ret_place)
{
	const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

	if (!folder || !*folder)
		folder = FOLDER_DEFAULT;
	if ((size_t)snprintf(ret_place->folder, sizeof(ret_place->folder), "%s", folder) >=
		sizeof(ret_place->folder))
		return -ENAMETOOLONG;
	snprintf(ret_place->control, sizeof(ret_place->control), "%s/control", folder);
	snprintf(ret_place->pid, sizeof(ret_place->pid), "%s/nvidia-cuda-mps-control.pid", folder);
	return 0;
}

/* A descriptor to write commands to a daemon that lives, or -errno. */
static int open_daemon(const struct place *place)
{
	int fd = open(place->control, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0 ? fd : -errno;
}

/* Serves commands until one of them, or a signal, ends it. */
static void serve(int fd)
{
	char line[256];
	size_t used = 0;

	while (!is_told_to_end) {
		struct pollfd wait = {.fd = fd, .events = POLLIN};
		ssize_t n;

		/* A signal between the question and the wait is seen a second later. */
		if (poll(&wait, 1, 1000) <= 0)
			continue;
		n = read(fd, line + used, sizeof(line) - 1 - used);
		if (n <= 0)
			continue;
		used += (size_t)n;
		line[used] = '\0';
		if (strstr(line, "quit\n"))
			return;
		if (strchr(line, '\n') || used == sizeof(line) - 1)
			used = 0;
	}
}

static int write_pid(const struct place *place, pid_t pid)
{
	FILE *file = fopen(place->pid, "we");

	if (!file)
		return -errno;
	if (fchmod(fileno(file), 0644) != 0) {
		fclose(file);
		return -errno;
	}
	fprintf(file, "%ld\n", (long)pid);
	return fclose(file) == 0 ? 0 : -errno;
}

/* Opened for writing too, so that it never is at its end. */
static int make_control(const struct place *place)
{
	int fd;

	unlink(place->control);
	/* for clients of any user, whatever the umask */
	if (mkfifo(place->control, 0666) != 0 || chmod(place->control, 0666) != 0)
		return -errno;
	fd = open(place->control, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

static void detach(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
}

/* Returns the FIFO of a daemon that is about to live, or -1 after a sentence on stderr. */
static int begin_daemon(const struct place *place)
{
	int fd = open_daemon(place);

	if (fd >= 0) {
		close(fd);
		fprintf(stderr, "An instance of this daemon is already running\n");
		return -1;
	}
	if (mkdir(place->folder, 0755) == 0 ? chmod(place->folder, 0755) != 0 : errno != EEXIST) {
		fprintf(stderr, "%s: %s\n", place->folder, strerror(errno));
		return -1;
	}
	fd = make_control(place);
	if (fd < 0) {
		fprintf(stderr, "%s: %s\n", place->control, strerror(-fd));
		return -1;
	}
	return fd;
}

static int run_daemon(const struct place *place, bool is_background)
{
	struct sigaction action = {.sa_handler = note_signal};
	/* Before the parent returns, so that a program started next is a client. */
	int fd = begin_daemon(place);
	pid_t pid;

	if (fd < 0)
		return 1;
	pid = is_background ? fork() : 0;
	if (pid < 0 || (pid > 0 && write_pid(place, pid) != 0))
		return 1;
	if (pid > 0)
		return 0;
	if (is_background)
		detach();
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (is_background || write_pid(place, getpid()) == 0)
		serve(fd);
	unlink(place->control);
	unlink(place->pid);
	return 0;
}

static void pause_ms(int ms)
{
	struct timespec time = {.tv_nsec = ms * 1000000L};

	nanosleep(&time, NULL);
}

static int quit(const struct place *place, int fd)
{
	if (write(fd, "quit\n", 5) != 5)
		return 1;
	for (int waited = 0; waited < QUIT_WAIT_MS; waited += 5) {
		if (access(place->control, F_OK) != 0)
			return 0;
		pause_ms(5);
	}
	return 1;
}

static void print_servers(const struct place *place)
{
	_cleanup_file_ FILE *file = fopen(place->pid, "re");
	long pid;

	if (file && fscanf(file, "%ld", &pid) == 1)
		printf("%ld\n", pid);
}

static int run_commands(const struct place *place)
{
	_cleanup_fd_ int fd = open_daemon(place);
	char line[256];

	if (fd < 0) {
		fprintf(stderr, "Cannot find MPS control daemon process\n");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\r\n")] = '\0';
		if (strncmp(line, "quit", 4) == 0)
			return quit(place, fd);
		if (strcmp(line, "get_server_list") == 0)
			print_servers(place);
		else if (*line)
			printf("Command not recognized: %s\n", line);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct place place;

	/* A daemon that ends while it is told something is no reason to die. */
	signal(SIGPIPE, SIG_IGN);
	if (find_place(&place) != 0) {
		fprintf(stderr, "CUDA_MPS_PIPE_DIRECTORY is too long\n");
		return 1;
	}
	if (argc == 1)
		return run_commands(&place);
	if (argc == 2 && (strcmp(argv[1], "-d") == 0 || strcmp(argv[1], "-f") == 0))
		return run_daemon(&place, strcmp(argv[1], "-d") == 0);
	fprintf(stderr, "usage: nvidia-cuda-mps-control [-d | -f]\n");
	return 1;
}
