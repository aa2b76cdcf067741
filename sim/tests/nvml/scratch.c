/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of its own for a test, and processes that hold memory of it. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/machine/machine.h"
#include "sim/tests/nvml/scratch.h"

static char folder[2048];

/* Not cmocka's assert: a child must not run the rest of the tests. */
static void need(bool claim, const char *what)
{
	if (claim)
		return;
	fprintf(stderr, "scratch: %s\n", what);
	_exit(99);
}

void scratch_begin(const char *board)
{
	const char *base = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/vgpu-test-XXXXXX", base ? base : "/tmp");
	need(mkdtemp(folder), "mkdtemp");
	setenv("VGPU_SIM_STATE", scratch_path("machine"), 1);
	setenv("VGPU_SIM_BOARD", board, 1);
	unsetenv("VGPU_SIM_TAG");
}

void scratch_end(void)
{
	DIR *dir = opendir(folder);
	struct dirent *row;

	need(dir, "opendir");
	while ((row = readdir(dir)))
		if (row->d_name[0] != '.')
			unlink(scratch_path(row->d_name));
	closedir(dir);
	need(!rmdir(folder), "rmdir");
}

const char *scratch_path(const char *name)
{
	static char path[sizeof(folder) + 300];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static uint64_t work_ahead_ns;

void scratch_set_work(uint64_t ahead_ns)
{
	work_ahead_ns = ahead_ns;
}

static void hold(const char *tag, int device, unsigned int context_count, uint64_t plain_bytes)
{
	struct machine *machine;
	const struct board *board;

	setenv("VGPU_SIM_TAG", tag, 1);
	need(!machine_open(NULL, NULL, &machine, NULL, 0), "machine_open");
	need(!machine_join(machine), "machine_join");
	board = machine_board(machine);
	for (unsigned int i = 0; i < context_count; i++)
		need(!machine_grow(machine, device, MACHINE_CONTEXT, board->context_bytes),
			"no room for a context");
	machine_set_contexts(machine, device, context_count);
	need(!machine_grow(machine, device, MACHINE_PLAIN, plain_bytes), "no room");
	if (plain_bytes)
		machine_add_work(machine, device, machine_now_ns() - 500000000,
			machine_now_ns() + work_ahead_ns);
}

/* The child of this process is the first one of a new namespace. Returns in that child alone. */
static void enter_namespace(int ready_fd, int end_fd)
{
	pid_t inner;

	need(!unshare(CLONE_NEWUSER | CLONE_NEWPID), "unshare");
	inner = fork();
	if (!inner)
		return;
	close(ready_fd);
	close(end_fd);
	waitpid(inner, NULL, 0);
	_exit(0);
}

static struct holder start(const char *tag, int device, unsigned int context_count,
	uint64_t plain_bytes, bool is_contained)
{
	struct holder holder = {0};
	int ready[2], end[2];
	char byte;

	need(!pipe(ready) && !pipe(end), "pipe");
	holder.pid = fork();
	need(holder.pid >= 0, "fork");
	if (!holder.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(end[1]);
		close(ready[0]);
		if (is_contained)
			enter_namespace(ready[1], end[0]);
		hold(tag, device, context_count, plain_bytes);
		need(write(ready[1], "r", 1) == 1, "write");
		_exit(read(end[0], &byte, 1) < 0);
	}
	close(ready[1]);
	close(end[0]);
	need(read(ready[0], &byte, 1) == 1, "the holder failed");
	close(ready[0]);
	holder.end_fd = end[1];
	return holder;
}

struct holder holder_start(
	const char *tag, int device, unsigned int context_count, uint64_t plain_bytes)
{
	return start(tag, device, context_count, plain_bytes, false);
}

/*
 * unshare() of a PID namespace concerns the children of the caller: the process that start() forks
 * does it, forks once more, and waits.
 */
struct holder holder_start_contained(const char *tag, int device, uint64_t plain_bytes)
{
	struct holder none = {0};
	pid_t probe = fork();
	int status = 0;

	if (!probe)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWPID) ? 1 : 0);
	waitpid(probe, &status, 0);
	if (status)
		return none;
	return start(tag, device, 1, plain_bytes, true);
}

void holder_end(struct holder *holder)
{
	/* A byte, not an end of file: holders started later have this end of the pipe, too. */
	need(write(holder->end_fd, "e", 1) == 1, "write");
	close(holder->end_fd);
	waitpid(holder->pid, NULL, 0);
}
