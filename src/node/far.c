/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as another process means them. */
#include "node/far.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

#define NO_MAGIC_LINKS 0x02 /* include/uapi/linux/openat2.h */
#define IN_ROOT	       0x10

struct how {
	uint64_t flags, mode, resolve;
};

/* Before Linux 5.6 a link leads where this process would be led. */
static int open_as_ours(pid_t pid, const char *path)
{
	char whole[PATH_MAX];

	if ((size_t)snprintf(whole, sizeof(whole), "/proc/%d/root%s", (int)pid, path) >=
		sizeof(whole)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return open(whole, O_PATH | O_CLOEXEC);
}

int far_open(pid_t pid, const char *path, struct far *ret_far)
{
	const struct how how = {.flags = O_PATH | O_CLOEXEC, .resolve = IN_ROOT | NO_MAGIC_LINKS};
	_cleanup_fd_ int root_fd = -1;
	struct far far = FAR_NULL;
	char root[32];

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd >= 0)
		far.fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (root_fd >= 0 && far.fd < 0 && errno == ENOSYS)
		far.fd = open_as_ours(pid, path);
	if (far.fd < 0)
		return -errno;
	snprintf(far.path, sizeof(far.path), "/proc/self/fd/%d", far.fd);
	*ret_far = far;
	return 0;
}

void far_close(struct far *far)
{
	cleanup_fd(&far->fd);
	*far = FAR_NULL;
}
