/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_overlay VARIABLE PROGRAM [ARGUMENT...]: runs a test with a folder in that variable that is on an overlay, as all
 * of a plain container is.
 *
 * Exits with 77 where none can be mounted: as root it can, and else in a user namespace since Linux 5.11.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/unit/overlay.h"

/* In a process of its own: the mount ends with it, and the folder below is empty for all others. */
static int run(const char *variable, const char *folder, char **argv)
{
	const char *why = "";

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!overlay_mount(folder, &why)) {
		fprintf(stderr, "skipped: %s here: %s\n", why, strerror(errno));
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

	if (argc < 3)
		return 2;
	snprintf(folder, sizeof(folder), "%s/overlay-XXXXXX", parent ? parent : "/tmp");
	if (!mkdtemp(folder))
		return 2;
	pid = fork();
	if (pid == 0)
		return run(argv[1], folder, argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		status = 2 << 8;
	rmdir(folder);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
