/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as another process means them. */
#include "node/far.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "node/plain.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

#define MOUNT_ID       0x1000 /* STATX_MNT_ID, include/uapi/linux/stat.h; Linux 5.8 */
#define NO_MAGIC_LINKS 0x02   /* include/uapi/linux/openat2.h */
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

/* The way to a path, as root goes it: each folder on it is known to ask no program of a user's before a name is looked up in it. */
#define DEPTH_MOST 64
#define LINKS_MOST 40 /* the kernel's own bound (namei.h) */

struct walk {
	pid_t pid;
	int fds[DEPTH_MOST]; /* the process's root, and the folders from there to where the walk is */
	unsigned depth, links;
	bool is_link_kept; /* the last part may be a link, which is not followed */
	char rest[2 * PATH_MAX];
};

static void walk_up(struct walk *w, unsigned depth)
{
	while (w->depth > depth)
		cleanup_fd(&w->fds[w->depth--]);
}

static void walk_close(struct walk *w)
{
	walk_up(w, 0);
	cleanup_fd(&w->fds[0]);
}

/* Where the link leads is gone first, and the rest behind that. */
static int follow(struct walk *w, int link_fd)
{
	char target[PATH_MAX], rest[sizeof(w->rest)];
	ssize_t length = readlinkat(link_fd, "", target, sizeof(target));

	if (length < 0)
		return -errno;
	if (w->links++ == LINKS_MOST)
		return -ELOOP;
	strcpy(rest, w->rest);
	if ((size_t)snprintf(w->rest, sizeof(w->rest), "%.*s/%s", (int)length, target, rest) >=
		sizeof(w->rest))
		return -ENAMETOOLONG;
	if (length > 0 && target[0] == '/')
		walk_up(w, 0);
	return 0;
}

static bool is_at_end(const struct walk *w)
{
	return w->rest[strspn(w->rest, "/")] == '\0';
}

/* Whether both are of one mount, and the type of the second: a file's device may be another one than its file system's (overlayfs). */
static bool is_same_mount(int checked_fd, int fd, unsigned *ret_type)
{
	struct statx checked, s;

	if (statx(checked_fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, MOUNT_ID, &checked) < 0 ||
		statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, MOUNT_ID | STATX_TYPE, &s) < 0)
		return false;
	if (!(checked.stx_mask & s.stx_mask & MOUNT_ID) || checked.stx_mnt_id != s.stx_mnt_id)
		return false;
	*ret_type = s.stx_mode & S_IFMT;
	return true;
}

/* Goes on by one name; *ret_fd is set where that is no folder and nothing is to come. */
static int step(struct walk *w, const char *name, int *ret_fd)
{
	_cleanup_fd_ int fd = openat(w->fds[w->depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	unsigned type;
	int r = fd < 0 ? -errno : 0;

	if (r == 0 && !is_same_mount(w->fds[w->depth], fd, &type))
		r = plain_check(fd, w->pid, &type);
	if (r < 0)
		return r;
	if (S_ISLNK(type) && !(w->is_link_kept && is_at_end(w)))
		return follow(w, fd);
	if (!S_ISDIR(type) && !is_at_end(w))
		return -ENOTDIR;
	if (S_ISDIR(type) && w->depth + 1 == DEPTH_MOST)
		return -ENAMETOOLONG;
	if (S_ISDIR(type))
		w->fds[++w->depth] = take_fd(&fd);
	else
		*ret_fd = take_fd(&fd);
	return 0;
}

static int open_by_steps(pid_t pid, int root_fd, const char *path, bool is_link_kept, int *ret_fd)
{
	_cleanup_(walk_close) struct walk w = {.is_link_kept = is_link_kept,
		.pid = pid,
		.fds = {fcntl(root_fd, F_DUPFD_CLOEXEC, 0)}};
	char name[NAME_MAX + 1];
	unsigned type;
	int r = w.fds[0] < 0 ? -errno : plain_check(root_fd, pid, &type);

	if (r == 0 && (size_t)snprintf(w.rest, sizeof(w.rest), "%s", path) >= sizeof(w.rest))
		r = -ENAMETOOLONG;
	while (r == 0 && *ret_fd < 0 && !is_at_end(&w)) {
		char *at = w.rest + strspn(w.rest, "/");
		size_t length = strcspn(at, "/");

		if (length >= sizeof(name))
			return -ENAMETOOLONG;
		memcpy(name, at, length);
		name[length] = '\0';
		memmove(w.rest, at + length, strlen(at + length) + 1);
		if (strcmp(name, "..") == 0)
			walk_up(&w, w.depth ? w.depth - 1 : 0);
		else if (strcmp(name, ".") != 0)
			r = step(&w, name, ret_fd);
	}
	if (r == 0 && *ret_fd < 0)
		*ret_fd = take_fd(&w.fds[w.depth]);
	return r;
}

/* For who can be kept waiting by nobody but herself. */
static int open_at_once(pid_t pid, int root_fd, const char *path, bool is_link_kept, int *ret_fd)
{
	const struct how how = {.flags = O_PATH | O_CLOEXEC | (is_link_kept ? O_NOFOLLOW : 0),
		.resolve = IN_ROOT | NO_MAGIC_LINKS};

	*ret_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	if (*ret_fd < 0 && errno == ENOSYS)
		*ret_fd = open_as_ours(pid, path);
	return *ret_fd < 0 ? -errno : 0;
}

static int open_path(pid_t pid, const char *path, bool is_link_kept, int *ret_fd)
{
	_cleanup_fd_ int root_fd = -1;
	char root[32];

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0)
		return -errno;
	return geteuid() == 0 ? open_by_steps(pid, root_fd, path, is_link_kept, ret_fd)
			      : open_at_once(pid, root_fd, path, is_link_kept, ret_fd);
}

int far_open(pid_t pid, const char *path, struct far *ret_far)
{
	struct far far = FAR_NULL;
	int r = open_path(pid, path, false, &far.fd);

	if (r < 0)
		return r;
	snprintf(far.path, sizeof(far.path), "/proc/self/fd/%d", far.fd);
	*ret_far = far;
	return 0;
}

int far_identify(pid_t pid, const char *path, struct file_identity *ret_identity)
{
	_cleanup_fd_ int fd = -1;
	int r = open_path(pid, path, true, &fd);

	return r < 0 ? r : file_identify(fd, ret_identity);
}

int far_open_tree(pid_t pid, const char *path, struct far *ret_far)
{
	struct far far = FAR_NULL;
	int r = far_open(pid, path, &far);

	if (r == 0 && geteuid() == 0 && !plain_is_in_roots(pid))
		r = -EMEDIUMTYPE;
	if (r < 0) {
		far_close(&far);
		return r;
	}
	*ret_far = far;
	return 0;
}

const char *far_explain(int r)
{
	return r == -EMEDIUMTYPE
		       ? "it is on a file system that a user may have mounted and that might "
			 "never answer, so it was not looked at"
		       : strerror(-r);
}

void far_close(struct far *far)
{
	cleanup_fd(&far->fd);
	*far = FAR_NULL;
}
