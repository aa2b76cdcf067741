/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, of processes that are each in a time namespace of their own, which shifts the times that it reads in /proc:
 * when others began, too.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "tests/hostile/namespaces.h"
#include "tests/hostile/signless.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static bool leave_time(void)
{
	char offset[64];

	if (!namespaces_leave(CLONE_NEWTIME))
		return false;
	/* Each its own. */
	snprintf(offset, sizeof(offset), "boottime %d 0", 1000 + 10 * (int)(getpid() % 1000));
	namespaces_put("/proc/self/timens_offsets", offset);
	return true;
}

/* A time namespace is for children. */
static void go_on_elsewhere(void)
{
	pid_t pid;

	MUST(!leave_time());
	pid = fork();
	MUST(pid < 0);
	if (pid) {
		waitpid(pid, NULL, 0);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

static void attack(void)
{
	signless_attack_after(go_on_elsewhere);
}

int main(int argc, char **argv)
{
	if (!namespaces_can_leave(leave_time)) {
		puts("skipped: no time namespace is to be had");
		return NAMESPACES_SKIPPED;
	}
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
