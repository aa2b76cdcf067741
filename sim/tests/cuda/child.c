/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the simulated driver: each runs in a child process, on a machine of its own. */
#include "sim/tests/cuda/child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LATE	 99 /* what a test ends with that begins anew */
#define ATTEMPTS 10

static struct machine *machine;

void child_check(int is_true, const char *what, const char *file, int line)
{
	if (is_true)
		return;
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	_exit(1);
}

void child_check_time(int is_true, const char *what, const char *file, int line)
{
	if (is_true)
		return;
	fprintf(stderr, "%s:%d: %s: not in time\n", file, line, what);
	_exit(LATE);
}

void child_check_equal(uint64_t a, uint64_t b, const char *what, const char *file, int line)
{
	if (a == b)
		return;
	fprintf(stderr, "%s:%d: %s: %llu and %llu\n", file, line, what, (unsigned long long)a,
		(unsigned long long)b);
	_exit(1);
}

int child_start(void (*body)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		body();
		/* As a program ends: what runs at exit must not hang or crash. */
		exit(0);
	}
	return pid;
}

void child_wait(int pid, int signal)
{
	int status = -1;

	CHECK(waitpid(pid, &status, 0) == pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == LATE)
		_exit(LATE);
	if (signal == 0)
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	else
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == signal);
}

/* What it ended with, on a machine of its own. */
static int run_once(void (*body)(void))
{
	const char *tmp = getenv("TMPDIR");
	char folder[512], path[600];
	int status = -1;
	pid_t pid;

	snprintf(folder, sizeof(folder), "%s/vgpu-sim-test-XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/machine", folder);
	setenv("VGPU_SIM_STATE", path, 1);
	setenv("VGPU_SIM_BOARD", "h200", 1);
	setenv("VGPU_SIM_TAG", "test", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	pid = child_start(body);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	unlink(path);
	rmdir(folder);
	return status;
}

void child_run(void (*body)(void))
{
	int status;

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		status = run_once(body);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != LATE)
			break;
	}
	assert_int_equal(status, 0);
}

struct machine *child_machine(void)
{
	char why[256];

	if (!machine && machine_open(NULL, NULL, &machine, why, sizeof(why)) != 0)
		child_check(0, why, __FILE__, __LINE__);
	return machine;
}

CUcontext child_context(void)
{
	CUcontext context;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	return context;
}

static struct machine_snapshot *snapshot(const struct machine_process **ret_mine)
{
	struct machine_snapshot *snap = malloc(sizeof(*snap));

	CHECK(snap);
	EQUAL(machine_read_snapshot(child_machine(), 1000000000, snap), 0);
	*ret_mine = NULL;
	for (int i = 0; i < snap->process_count; i++) {
		if (snap->process[i].pid == getpid())
			*ret_mine = &snap->process[i];
	}
	return snap;
}

uint64_t child_shown_mib(void)
{
	const struct machine_process *mine;
	struct machine_snapshot *snap = snapshot(&mine);
	uint64_t mib = mine ? mine->device[0].shown_bytes / MiB : 0;

	free(snap);
	return mib;
}

uint64_t child_used_mib(void)
{
	const struct machine_process *mine;
	struct machine_snapshot *snap = snapshot(&mine);
	uint64_t mib = snap->device[0].used_bytes / MiB;

	free(snap);
	return mib;
}

uint64_t child_kind_mib(enum machine_kind kind)
{
	const struct machine_process *mine;
	struct machine_snapshot *snap = snapshot(&mine);
	uint64_t mib = mine ? mine->device[0].bytes[kind] / MiB : 0;

	free(snap);
	return mib;
}
