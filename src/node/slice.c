/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slice on disk.
 *
 * The folder is filled under a name that begins with a dot and then renamed: a slice is there with
 * all its parts or not at all, and of two that want one name, one gets it. The slice's `vgpu run`
 * holds the lock of its file `lock`; in that file stands the first process, for the time after a
 * vgpu that was killed. A slice is stale when the lock is free, that process is gone, no process that
 * was started in it lives, and the region has none; its remover holds the lock meanwhile.
 *
 * Only the files that we make are ever removed, and only in folders that have our lock file:
 * $VGPU_STATE may point anywhere.
 */
#include "node/slice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/listing.h"
#include "node/folder.h"
#include "node/started.h"
#include "node/user.h"
#include "region/process.h"
#include "region/region.h"
#include "region/snapshot.h"

#define ROOTS_FOLDER "/run/vgpu"
#define SIM_MARK     "sim" /* the slice is on the simulated node */
#define HIDDEN_AGE_S 60	   /* a folder that is still being made is never as old as this */

static int root_format(char *to, const char *first, const char *second)
{
	int length = snprintf(to, SHARE_PATH_BYTES, "%s%s", first, second);

	/* behind it stand the slice's name and the longest file's */
	return length < 0 || length >= SHARE_PATH_BYTES - SHARE_NAME_BYTES - 16 ? -ENAMETOOLONG : 0;
}

/* su and sudo leave it as it was: the folder of who called them, or of a session that is not there. */
static bool is_own_folder(const char *path)
{
	struct file_identity id;

	return path[0] == '/' && file_identify_path(path, &id) == 0 && id.is_folder &&
	       id.owner == geteuid();
}

/* The user's own where systemd has made it; others look for slices there, too. */
static bool find_runtime(char ret_path[32])
{
	snprintf(ret_path, 32, "/run/user/%u", (unsigned)geteuid());
	return is_own_folder(ret_path);
}

/* Whoever comes first has the name in /tmp, and may be another user. */
static bool is_anothers(const char *path)
{
	struct file_identity id;

	return file_identify_at(AT_FDCWD, path, &id) == 0 && id.owner != geteuid();
}

static int root_path(char ret_root[SHARE_PATH_BYTES], struct err *err)
{
	const char *named = getenv("VGPU_STATE"), *runtime = getenv("XDG_RUNTIME_DIR");
	char root[SHARE_PATH_BYTES], user[16], own_runtime[32];
	int r;

	snprintf(user, sizeof(user), "%u", (unsigned)geteuid());
	if (named && *named)
		r = root_format(root, named, "");
	else if (geteuid() == 0)
		r = root_format(root, ROOTS_FOLDER, "");
	else if (runtime && is_own_folder(runtime))
		r = root_format(root, runtime, "/vgpu");
	else
		r = root_format(root, "/tmp/vgpu-", user);
	if (r == 0 && !(named && *named) && is_anothers(root) && find_runtime(own_runtime))
		r = root_format(root, own_runtime, "/vgpu");
	if (r < 0)
		return err_set(
			err, -r, "the folder for slices, %.100s..., has too long a name", root);
	if (root[0] != '/' || strpbrk(root, " \t\r\n"))
		return err_set(err, EINVAL,
			"the folder for slices is '%s'; an absolute path without white space is "
			"right",
			root);
	strcpy(ret_root, root);
	return 0;
}

static int explain_owner(const char *root, struct err *err)
{
	struct file_identity id;
	char user[USER_NAME_BYTES];

	if (file_identify_at(AT_FDCWD, root, &id) < 0)
		return err_set(err, errno, "the folder for slices, %s: %s", root, strerror(errno));
	user_name(id.owner, user);
	return err_set(err, EPERM, "the folder for slices, %s, belongs to user %s; %s", root, user,
		strncmp(root, "/tmp/vgpu-", 10) == 0
			? "`vgpu prepare`, as root, gives the name back, and VGPU_STATE names "
			  "another folder"
			: "one of this user's own is right (see VGPU_STATE)");
}

/* Opens the root, which must be a folder that no other user can write to. */
static int open_root(const char *root, int *ret_fd, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	struct stat s;

	if (is_anothers(root))
		return explain_owner(root, err);
	fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &s) < 0)
		return err_set(err, errno, "the folder for slices, %s: %s", root, strerror(errno));
	if (s.st_uid != geteuid() || (s.st_mode & (S_IWGRP | S_IWOTH)))
		return err_set(err, EPERM,
			"the folder for slices, %s, is open to other users; one that only user %u "
			"can "
			"write to is right (see VGPU_STATE)",
			root, (unsigned)geteuid());
	*ret_fd = take_fd(&fd);
	return 0;
}

int slice_find_root(char ret_root[SHARE_PATH_BYTES], int *ret_fd, struct err *err)
{
	int r = root_path(ret_root, err);

	return r < 0 ? r : open_root(ret_root, ret_fd, err);
}

int slice_open_root(char ret_root[SHARE_PATH_BYTES], int *ret_fd, struct err *err)
{
	int r = root_path(ret_root, err);

	if (r < 0)
		return r;
	r = file_make_folder(AT_FDCWD, ret_root, 0700);
	if (r < 0 && r != -EEXIST)
		return err_set(
			err, -r, "make the folder for slices, %s: %s", ret_root, strerror(-r));
	return open_root(ret_root, ret_fd, err);
}

int slice_prepare_root(struct err *err)
{
	_cleanup_fd_ int fd = -1;

	return folder_make(ROOTS_FOLDER, 0700, &fd, err);
}

static bool is_ours_to_remove(const char *file)
{
	return !strcmp(file, "lock") || !strncmp(file, "share", 5) || !strncmp(file, "region", 6) ||
	       !strcmp(file, "evicted") || !strcmp(file, SIM_MARK);
}

int slice_lock(int lock_fd, int at, uint64_t wait_ns)
{
	uint64_t deadline_ns = clock_now_ns() + wait_ns;
	struct timespec pause = {.tv_nsec = 1000000};
	int r;

	while ((r = file_lock_byte(lock_fd, at)) == -EAGAIN && clock_now_ns() < deadline_ns)
		nanosleep(&pause, NULL);
	return r;
}

/* Removes the slice's files and then, if nothing else is in it, the folder. */
static void remove_folder(int root_fd, const char *name)
{
	_cleanup_(listing_close) DIR *folder = listing_open(root_fd, name);

	if (!folder)
		return;
	for (struct dirent *e = readdir(folder); e; e = readdir(folder))
		if (is_ours_to_remove(e->d_name))
			unlinkat(dirfd(folder), e->d_name, 0);
	unlinkat(root_fd, name, AT_REMOVEDIR);
}

/* Whether the process that the lock file names still lives. */
static bool is_child_alive(int lock_fd)
{
	char text[96];
	ssize_t length = pread(lock_fd, text, sizeof(text) - 1, 0);
	struct process_identity seen;
	uint64_t start, namespace;
	int pid, r;

	if (length <= 0)
		return false;
	text[length] = '\0';
	if (sscanf(text, "%d %" SCNu64 " %" SCNu64, &pid, &start, &namespace) != 3)
		return false;
	/* Of another PID namespace we cannot tell; its lock and its region still can. */
	if (namespace != process_own_namespace())
		return false;
	r = process_identify(pid, &seen);
	/* One that cannot be looked at, as it is another user's now, or no descriptor is left, may be it, or a stranger. */
	if (r != 0)
		return !process_has_ended(pid);
	return seen.start_time == start && !seen.is_gone;
}

static void name_share(const char *path, char ret_share[SHARE_PATH_BYTES + 16])
{
	snprintf(ret_share, SHARE_PATH_BYTES + 16, "%s/share", path);
}

static bool has_processes(const char *path)
{
	_cleanup_free_ struct snapshot *s = malloc(sizeof(*s));
	char region[SHARE_PATH_BYTES + 16], share[SHARE_PATH_BYTES + 16];

	snprintf(region, sizeof(region), "%s/region", path);
	name_share(path, share);
	/*
	 * Without memory we cannot know, and then it stays. What runs in it without having used a device yet, a daemon say, is a process
	 * of the slice, too.
	 */
	return !s || (snapshot_read(region, s) == 0 && s->process_count > 0) ||
	       started_in(share, getuid());
}

bool slice_is_running(int folder_fd, const char *path, uid_t owner)
{
	char share[SHARE_PATH_BYTES + 16];
	_cleanup_fd_ int fd = -1;
	bool is_locked = false;
	int r;

	name_share(path, share);
	r = file_open_regular(folder_fd, "lock", O_RDONLY | O_NOFOLLOW, &fd);
	/* A lease on it, which says nothing of the slice. */
	if (r == -EAGAIN)
		return started_in_lately(share, owner);
	if (r < 0 || file_byte_is_locked(fd, SLICE_LOCK_RUN, &is_locked) < 0)
		return false;
	return is_locked || is_child_alive(fd) || started_in_lately(share, owner);
}

/* A name with a dot before it may be a slice that is just being made. */
static bool is_too_young(int root_fd, const char *name)
{
	struct stat s;

	if (name[0] != '.')
		return false;
	return fstatat(root_fd, name, &s, AT_SYMLINK_NOFOLLOW) < 0 ||
	       time(NULL) - s.st_mtime < HIDDEN_AGE_S;
}

static void remove_if_stale(const char *root, int root_fd, const char *name)
{
	char path[SHARE_PATH_BYTES + 16], lock[SHARE_PATH_BYTES];
	_cleanup_fd_ int fd = -1;

	if (strlen(name) >= SHARE_NAME_BYTES + 12 || is_too_young(root_fd, name))
		return;
	snprintf(lock, sizeof(lock), "%.*s/lock", SHARE_NAME_BYTES + 12, name);
	fd = openat(root_fd, lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || file_lock_byte(fd, SLICE_LOCK_RUN) != 0 ||
		file_lock_byte(fd, SLICE_LOCK_EDIT) != 0)
		return;
	snprintf(path, sizeof(path), "%.*s/%.*s", SHARE_PATH_BYTES - SHARE_NAME_BYTES, root,
		SHARE_NAME_BYTES + 12, name);
	if (!is_child_alive(fd) && !has_processes(path))
		remove_folder(root_fd, name);
}

void slice_sweep(void)
{
	char root[SHARE_PATH_BYTES];
	_cleanup_fd_ int root_fd = -1;
	struct err ignored = ERR_NULL;
	DIR *folder;

	if (slice_find_root(root, &root_fd, &ignored) < 0)
		return;
	folder = opendir(root);
	if (!folder)
		return;
	for (struct dirent *e = readdir(folder); e; e = readdir(folder))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			remove_if_stale(root, root_fd, e->d_name);
	closedir(folder);
}

static int write_share(int folder_fd, const struct share *share)
{
	_cleanup_fd_ int fd = openat(
		folder_fd, "share", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);
	char text[SHARE_FILE_BYTES];
	size_t length;
	ssize_t written;
	int r;

	if (fd < 0)
		return -errno;
	r = share_format(share, text, sizeof(text), &length);
	if (r == 0)
		r = file_may_grow_to(length);
	if (r < 0)
		return r;
	written = write(fd, text, length);
	if (written != (ssize_t)length)
		return written < 0 ? -errno : -ENOSPC;
	/* because the umask is the user's */
	return fchmod(fd, 0444) < 0 ? -errno : 0;
}

static int make_mark(int folder_fd)
{
	_cleanup_fd_ int fd = openat(
		folder_fd, SIM_MARK, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);

	return fd < 0 || fchmod(fd, 0444) < 0 ? -errno : 0;
}

bool slice_is_simulated(int folder_fd, uid_t owner)
{
	struct file_identity id;

	return owner == geteuid() && file_identify_at(folder_fd, SIM_MARK, &id) == 0 &&
	       id.is_regular;
}

/* Fills the hidden folder and takes its lock. */
static int fill(
	int root_fd, const char *hidden, const struct share *share, bool is_sim, int *ret_lock_fd)
{
	_cleanup_fd_ int folder_fd = -1;
	_cleanup_fd_ int lock_fd = -1;
	int r;

	r = file_make_folder(root_fd, hidden, 0700);
	if (r < 0)
		return r;
	folder_fd = openat(root_fd, hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (folder_fd < 0)
		return -errno;
	lock_fd = openat(folder_fd, "lock", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (lock_fd < 0 || fchmod(lock_fd, 0600) < 0)
		return -errno;
	r = file_lock_byte(lock_fd, SLICE_LOCK_RUN);
	if (r == 0)
		r = write_share(folder_fd, share);
	if (r == 0 && is_sim)
		r = make_mark(folder_fd);
	if (r == 0)
		*ret_lock_fd = take_fd(&lock_fd);
	return r;
}

static int publish(
	int root_fd, const char *name, const struct share *share, bool is_sim, int *ret_lock_fd)
{
	char hidden[SHARE_NAME_BYTES + 16];
	_cleanup_fd_ int lock_fd = -1;
	int r;

	snprintf(hidden, sizeof(hidden), ".%.*s.%d", SHARE_NAME_BYTES, name, (int)getpid());
	/* A dead process of the same PID may have begun it. */
	remove_folder(root_fd, hidden);
	r = fill(root_fd, hidden, share, is_sim, &lock_fd);
	if (r == 0 && renameat(root_fd, hidden, root_fd, name) < 0)
		r = errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR ? SLICE_E_TAKEN
									      : -errno;
	if (r != 0) {
		remove_folder(root_fd, hidden);
		return r;
	}
	*ret_lock_fd = take_fd(&lock_fd);
	return 0;
}

/* Made here and not by the first process, which may be one that may make no file so large. */
static int make_region(const char *path)
{
	struct region region = REGION_NULL;
	int r = region_open(path, &region);

	region_close(&region);
	return r;
}

int slice_create(const char *name, const struct share *grant, bool is_sim, struct slice *ret_slice,
	struct err *err)
{
	char root[SHARE_PATH_BYTES];
	_cleanup_fd_ int root_fd = -1;
	struct slice slice = SLICE_NULL;
	struct share share = *grant;
	int r = slice_open_root(root, &root_fd, err);

	if (r < 0)
		return r;
	snprintf(slice.name, sizeof(slice.name), "%s", name);
	/* root_path() has left room for them */
	snprintf(slice.path, sizeof(slice.path), "%.*s/%s",
		SHARE_PATH_BYTES - SHARE_NAME_BYTES - 16, root, slice.name);
	snprintf(slice.share, sizeof(slice.share), "%.*s/share", SHARE_PATH_BYTES - 16, slice.path);
	snprintf(share.slice, sizeof(share.slice), "%s", slice.name);
	snprintf(share.region, sizeof(share.region), "%.*s/region", SHARE_PATH_BYTES - 16,
		slice.path);
	r = publish(root_fd, slice.name, &share, is_sim, &slice.lock_fd);
	if (r == SLICE_E_TAKEN) {
		err_set(err, EEXIST, "slice '%s' is there already; choose another --name",
			slice.name);
		return r;
	}
	if (r < 0)
		return err_set(
			err, -r, "make slice '%s' in %s: %s", slice.name, root, strerror(-r));
	slice.root_fd = take_fd(&root_fd);
	r = make_region(share.region);
	if (r) {
		slice_finish(&slice);
		return err_set(err, EIO, "make the accounting file %s: %s; %s", share.region,
			region_explain(r), region_remedy(r));
	}
	*ret_slice = slice;
	return 0;
}

void slice_note_child(const struct slice *slice, pid_t child)
{
	struct process_identity seen;

	if (process_identify(child, &seen) != 0)
		return;
	/* Only for the day when we are killed; the lock is what counts until then. */
	dprintf(slice->lock_fd, "%d %" PRIu64 " %" PRIu64 "\n", (int)child, seen.start_time,
		process_own_namespace());
}

void slice_finish(struct slice *slice)
{
	/* No new share file may come into the folder while it goes. Without the lock, slice_sweep() removes
	 * it later. */
	if (slice->lock_fd >= 0 && !has_processes(slice->path) &&
		slice_lock(slice->lock_fd, SLICE_LOCK_EDIT, SLICE_LOCK_WAIT_NS) == 0)
		remove_folder(slice->root_fd, slice->name);
	cleanup_fd(&slice->lock_fd);
	cleanup_fd(&slice->root_fd);
	*slice = SLICE_NULL;
}
