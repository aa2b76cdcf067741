/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As unmapped_region.c, of processes that are each in a time namespace of their own, which shifts the times that it reads in /proc:
 * when others began, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/hostile/signless.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define SKIPPED 77

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	MUST(fd < 0 || write(fd, text, strlen(text)) < 0);
	close(fd);
}

/* False where this machine gives no time namespace to this user. */
static bool leave_time(void)
{
	char map[64], offset[64];
	uid_t user = getuid();

	if (unshare(CLONE_NEWTIME) < 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWTIME) < 0)
			return false;
		put("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", (unsigned)user);
		put("/proc/self/uid_map", map);
	}
	/* Each its own. */
	snprintf(offset, sizeof(offset), "boottime %d 0", 1000 + 10 * (int)(getpid() % 1000));
	put("/proc/self/timens_offsets", offset);
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

static bool is_possible(void)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(leave_time() ? 0 : SKIPPED);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	if (!is_possible()) {
		puts("skipped: no time namespace is to be had");
		return SKIPPED;
	}
	return hostile_main(argv, &(struct hostile){.quota_bytes = 2 * GIB, .attack = attack});
}
