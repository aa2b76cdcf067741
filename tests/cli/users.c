/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of vgpu beside users who mean harm have in common. */
#include "tests/cli/users.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "region/region.h"
#include "tests/cli/tool.h"

#define DEADLINE_NS UINT64_C(20000000000)

/* The folder of the build, from the path of the program under test. */
static bool find_build(char ret_path[PATH_MAX])
{
	const char *vgpu = getenv("VGPU");
	char *end;

	if (!vgpu || !realpath(vgpu, ret_path))
		return false;
	end = strstr(ret_path, "/src/cli/vgpu");
	if (end)
		*end = '\0';
	return end;
}

/* Shows it again where the new /tmp hides it. */
static int show_build(const char *path, int fd)
{
	char command[PATH_MAX + 16], from[32];

	if (access(path, F_OK) == 0)
		return 0;
	snprintf(command, sizeof(command), "mkdir -p '%s'", path);
	snprintf(from, sizeof(from), "/proc/self/fd/%d", fd);
	return system(command) == 0 ? mount(from, path, NULL, MS_BIND, NULL) : -1;
}

/* Users whom this machine knows, by names that are their numbers. */
static int name_users(void)
{
	return system("{ cat /etc/passwd; for u in 54321 54322; do "
		      "echo $u:x:$u:$u::/nonexistent:/bin/sh; done; } >/tmp/passwd && "
		      "mount --bind /tmp/passwd /etc/passwd");
}

int users_set_up(void **state)
{
	static const char *const places[] = {"/run", "/tmp", "/dev/shm"};
	_cleanup_fd_ int build = -1;
	char path[PATH_MAX];

	if (!find_build(path))
		return -1;
	build = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (build < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (mount("none", places[i], "tmpfs", 0, "mode=1777") < 0)
			return -1;
	if (show_build(path, build) != 0)
		return -1;
	if (name_users() != 0 || tool_set_up(state) != 0)
		return -1;
	unsetenv("VGPU_STATE");
	unsetenv("XDG_RUNTIME_DIR");
	return chmod(tool_path("."), 0755);
}

int users_clear(void **state)
{
	tool_run("rm -rf /tmp/vgpu-[0-9x]* /run/vgpu /run/user");
	return 0;
}

uint64_t users_deadline(void)
{
	return clock_now_ns() + DEADLINE_NS;
}

void users_pause(uint64_t deadline_ns)
{
	assert_true(clock_now_ns() < deadline_ns);
	usleep(1000);
}

void users_begin_maps(void)
{
	struct region region;

	tool_run("rm -rf /tmp/x; mkdir -p /tmp/x/train /tmp/x/root");
	assert_int_equal(region_open("/tmp/x/train/region", &region), 0);
	region_close(&region);
	tool_run("cat >/tmp/x/map.py <<'END'\n"
		 "import mmap, os, subprocess, sys, time\n"
		 "f = open(sys.argv[1], 'r+b')\n"
		 "m = mmap.mmap(f.fileno(), %zu)\n"
		 "subprocess.check_call(['sh', '-c', sys.argv[2]])\n"
		 "open('/tmp/x/ready', 'w')\n"
		 "while not os.path.exists('/tmp/x/end'): time.sleep(0.01)\n"
		 "END\n"
		 "chown -R 54321:54321 /tmp/x; chmod 755 /tmp/x /tmp/x/train",
		sizeof(struct region_file));
}

static void __attribute__((noreturn))
be_user(uid_t user, const struct user_process *what, int tell_fd)
{
	int outcome = -1;

	if (setgid(user) < 0 || setuid(user) < 0)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of the user takes it away */
	prctl(PR_SET_DUMPABLE, 1);
	outcome = what && what->begin ? what->begin(what->context) : 0;
	if (write(tell_fd, &outcome, sizeof(outcome)) < 0)
		_exit(1);
	for (;;)
		if (what && what->again)
			what->again(what->context);
		else
			pause();
}

pid_t users_start(uid_t user, const struct user_process *what, int *ret_outcome)
{
	struct pollfd told = {.events = POLLIN};
	int tell[2], outcome = -1;
	pid_t pid;

	assert_int_equal(pipe(tell), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(tell[0]);
		be_user(user, what, tell[1]);
	}
	close(tell[1]);
	told.fd = tell[0];
	assert_int_equal(poll(&told, 1, (int)(DEADLINE_NS / 1000000)), 1);
	assert_int_equal(read(tell[0], &outcome, sizeof(outcome)), sizeof(outcome));
	close(tell[0]);
	if (ret_outcome)
		*ret_outcome = outcome;
	return pid;
}

void users_end(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static bool is_possible(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
		perror("skipped: no mount namespace of its own, or no /proc in it");
		return false;
	}
	if (system("setpriv --reuid 54321 --regid 54321 --clear-groups true") != 0) {
		puts("skipped: setpriv cannot change the user here");
		return false;
	}
	if (system("setpriv --reuid 54321 --regid 54321 --clear-groups test -x \"$VGPU\"") != 0) {
		puts("skipped: other users cannot reach the build folder");
		return false;
	}
	return true;
}

/* The outcome of a child, as an exit status. */
static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* The first process of the namespace: takes in what others leave, and all ends with it. */
static int be_first(int (*run)(void))
{
	int status = 0;
	pid_t tests, seen;
	bool can_run;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	can_run = is_possible();
	fflush(NULL);
	if (!can_run)
		return 77;
	tests = fork();
	if (tests == 0)
		exit(run());
	while ((seen = wait(&status)) > 0 && seen != tests)
		;
	return seen == tests && tests > 0 ? status_of(status) : 1;
}

int users_main(int (*run)(void))
{
	int status = 0;
	pid_t first;

	if (geteuid() != 0) {
		puts("skipped: this is not root, who alone can be several users");
		return 77;
	}
	if (unshare(CLONE_NEWPID) < 0) {
		perror("skipped: no processes of its own");
		return 77;
	}
	fflush(NULL);
	first = fork();
	if (first == 0)
		_exit(be_first(run));
	status = first > 0 && waitpid(first, &status, 0) == first ? status_of(status) : 1;
	/* No exit(): the leak sanitizer begins a process, and none can begin any more in the namespace. */
	fflush(NULL);
	_exit(status);
}
