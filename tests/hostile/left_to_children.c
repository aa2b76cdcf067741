/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes take memory, fork a child that does nothing, and end. The child has the driver's files open, so the memory stays.
 *
 * What a process held was given back with its end: three such processes had 4.5 GiB in a slice of 2 GiB. Now it stays charged
 * until the children have ended, too.
 */
#include <sys/wait.h>

#include "tests/hostile/hostile.h"

static int wake[2];

static void take_and_leave(void)
{
	CUdeviceptr block;
	char end;

	if (hostile_try_begin())
		cuMemAlloc_v2(&block, 1 * GIB);
	if (fork() != 0)
		_exit(0);
	MUST(close(wake[1]));
	MUST(read(wake[0], &end, 1) != 0);
	_exit(0);
}

static void attack(void)
{
	MUST(pipe(wake));
	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0)
			take_and_leave();
		MUST(waitpid(pid, NULL, 0) != pid);
		hostile_look();
	}
	MUST(close(wake[1]));
}

int main(int argc, char **argv)
{
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
