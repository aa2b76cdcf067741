/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_filesystem overlay|ext4 VARIABLE PROGRAM [ARGUMENT...]: runs a test with a folder in that variable that is on an overlay, as all of a
 * plain container is, or on an ext4 of its own, as a host's folders are.
 *
 * Exits with 77 where none can be mounted. An overlay can be as root, and else in a user namespace since Linux 5.11; ext4 takes root, mkfs.ext4
 * and a loop device.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "tests/unit/overlay.h"

#define EXT4_MAGIC 0xef53

/* In a file beside the folder, which is gone when the file system is. */
static bool ext4_mount(const char *folder, const char **ret_why)
{
	char command[2048]; /* five times the folder */
	struct statfs s;

	*ret_why = "no mount namespace of root's";
	errno = EPERM;
	if (geteuid() != 0 || !overlay_unshare())
		return false;
	*ret_why = "no ext4 by mkfs.ext4 and a loop device";
	snprintf(command, sizeof(command),
		"{ truncate -s 256M %s.img && PATH=$PATH:/usr/sbin:/sbin mkfs.ext4 -q -F %s.img && "
		"mount -o loop %s.img %s; } >&2; "
		"status=$?; rm -f %s.img; exit $status",
		folder, folder, folder, folder, folder);
	errno = 0;
	return system(command) == 0 && statfs(folder, &s) == 0 && s.f_type == EXT4_MAGIC;
}

/* In a process of its own: the mount ends with it, and the folder below is empty for all others. */
static int run(const char *kind, const char *variable, const char *folder, char **argv)
{
	const char *why = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!(strcmp(kind, "ext4") ? overlay_mount : ext4_mount)(folder, &why)) {
		fprintf(stderr, "skipped: %s here: %s\n", why,
			errno ? strerror(errno) : "see above");
		return OVERLAY_SKIPPED;
	}
	if (setenv(variable, folder, 1) != 0)
		return 2;
	execvp(argv[0], argv);
	return 127;
}

int main(int argc, char **argv)
{
	const char *parent = getenv("TMPDIR");
	char folder[256];
	int status;
	pid_t pid;

	if (argc < 4)
		return 2;
	snprintf(folder, sizeof(folder), "%s/%s-XXXXXX", parent ? parent : "/tmp", argv[1]);
	if (!mkdtemp(folder))
		return 2;
	pid = fork();
	if (pid == 0)
		return run(argv[1], argv[2], folder, argv + 3);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 2 << 8;
	rmdir(folder);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
