/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, of processes in a PID namespace of their own whose /proc is still that of the one outside: by their
 * PIDs it shows other processes, or none.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "tests/hostile/namespaces.h"
#include "tests/hostile/signless.h"

static bool leave_pids(void)
{
	return namespaces_leave(CLONE_NEWPID);
}

/* The first child's end is that of all in there. */
static void attack(void)
{
	int status = -1;
	pid_t pid;

	MUST(!leave_pids());
	pid = fork();
	MUST(pid < 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signless_attack();
		_exit(0);
	}
	MUST(waitpid(pid, &status, 0) != pid || status != 0);
}

int main(int argc, char **argv)
{
	if (!namespaces_can_leave(leave_pids)) {
		puts("skipped: no PID namespace is to be had");
		return NAMESPACES_SKIPPED;
	}
	/* An H200's driver does not start where /proc is another namespace's (cuInit: 304). */
	return hostile_main(
		argv, &(struct hostile){
			      .quota_bytes = 2 * GIB, .is_simulated_only = true, .attack = attack});
}
