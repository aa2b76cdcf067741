/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control daemons beside the slices.
 *
 * A daemon's folder is .mps-<devices> in the root of slices. A slice counts as its user as long as the
 * slice's folder is there and its share names the pipe directory, so that the locks and the sweeping of
 * slices count, whichever process is killed. The lock of the file `guard` is held while users are looked for, while
 * the daemon is started or ended, and while a slice is made, until it is there. It is held while the folder is removed, too:
 * a guard without a name is of a folder that has gone.
 *
 * The folder has no file `lock`, by which slice_sweep() would know a slice.
 */
#include "cli/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/listing.h"
#include "base/text.h"
#include "cli/command.h"
#include "mps/daemon.h"
#include "node/slice.h"
#include "policy/grant.h"

#define PREFIX	     ".mps-"
#define NAME_BYTES   32
#define GUARD	     "guard"
#define CONTROL	     "program"		   /* a link to what started the daemon, and ends it */
#define LOCK_WAIT_NS UINT64_C(20000000000) /* more than a start or an end takes */

int mps_find_program(bool is_sim, char ret_path[PLACE_BYTES], struct err *err)
{
	int r = is_sim ? place_find_sim_mps(ret_path, err) : mps_daemon_find(ret_path, err);

	if (r < 0 && !is_sim)
		err_wrap(err, "--mps");
	return r;
}

static bool is_path(const char *path)
{
	return path && path[0] == '/' && strlen(path) < SHARE_PATH_BYTES &&
	       !strpbrk(path, " \t\r\n");
}

static bool is_operators(const struct stat *s)
{
	return s->st_uid == 0 || s->st_uid == geteuid();
}

/*
 * At a name that everybody may make, only root or this user is an operator: of the folder, and of what a client would connect to. Where others may
 * put something else in its place they answer the slice's clients, by whose word its time is not limited.
 */
static bool is_trusted(const char *path)
{
	_cleanup_fd_ int folder_fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct err told = ERR_NULL;
	struct stat folder, control;

	if (folder_fd < 0 || fstat(folder_fd, &folder) < 0 || !is_operators(&folder) ||
		fstatat(folder_fd, "control", &control, AT_SYMLINK_NOFOLLOW) < 0 ||
		!is_operators(&control))
		return false;
	if (!(folder.st_mode & 022) || folder.st_mode & S_ISVTX)
		return true;
	(void)err_set(&told, EPERM,
		"the MPS daemon of %s is not used, as others may write there; right is: chmod +t "
		"%s, or CUDA_MPS_PIPE_DIRECTORY=%s where you trust them",
		path, path, path);
	command_warn(&told);
	return false;
}

static bool find_operators(bool is_sim, struct mps *mps)
{
	const char *named = getenv("CUDA_MPS_PIPE_DIRECTORY");

	if (is_path(named) && mps_daemon_is_alive(named))
		snprintf(mps->pipe, sizeof(mps->pipe), "%s", named);
	else if (!is_sim && mps_daemon_is_alive(GRANT_MPS_PIPE) && is_trusted(GRANT_MPS_PIPE))
		strcpy(mps->pipe, GRANT_MPS_PIPE);
	return mps->pipe[0];
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The same for the same devices, whatever their order. The hash is FNV-1a, of 64 bits. */
static void name_folder(const char *visible, char ret_name[NAME_BYTES])
{
	char text[SHARE_DEVICES * SHARE_UUID_BYTES], *uuid[SHARE_DEVICES], *rest = text;
	uint64_t hash = UINT64_C(14695981039346656037);
	unsigned count = 0;

	snprintf(text, sizeof(text), "%s", visible);
	for (char *one; count < SHARE_DEVICES && (one = strsep(&rest, ","));)
		uuid[count++] = one;
	qsort(uuid, count, sizeof(*uuid), compare_texts);
	for (unsigned i = 0; i < count; i++)
		/* with its ending zero byte, which tells where one ends */
		for (const char *c = uuid[i]; c == uuid[i] || c[-1]; c++)
			hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
	snprintf(ret_name, NAME_BYTES, PREFIX "%016" PRIx64, hash);
}

static int lock(int fd, bool is_patient)
{
	uint64_t deadline_ns = clock_now_ns() + (is_patient ? LOCK_WAIT_NS : 0);
	struct timespec pause = {.tv_nsec = 2000000};
	int r;

	while ((r = file_lock_byte(fd, 0)) == -EAGAIN && clock_now_ns() < deadline_ns)
		nanosleep(&pause, NULL);
	return r;
}

/* Takes the folder's lock; -ESTALE where the folder went while this was waited for. */
static int guard(int root_fd, const char *name, bool is_patient, int extra_flags, int *ret_lock_fd)
{
	char path[NAME_BYTES + 16];
	_cleanup_fd_ int fd = -1;
	struct stat s;
	int r;

	snprintf(path, sizeof(path), "%s/" GUARD, name);
	fd = openat(
		root_fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | extra_flags, 0600);
	if (fd >= 0 && extra_flags & O_CREAT && fchmod(fd, 0600) < 0)
		return -errno;
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	r = lock(fd, is_patient);
	if (r < 0)
		return r;
	if (fstat(fd, &s) < 0 || s.st_nlink == 0)
		return -ESTALE;
	*ret_lock_fd = take_fd(&fd);
	return 0;
}

static int make_guarded(int root_fd, const char *name, int *ret_lock_fd)
{
	uint64_t deadline_ns = clock_now_ns() + LOCK_WAIT_NS;
	int r;

	do {
		r = file_make_folder(root_fd, name, 0700);
		if (r < 0 && r != -EEXIST)
			return r;
		r = guard(root_fd, name, true, O_CREAT, ret_lock_fd);
	} while (r == -ESTALE && clock_now_ns() < deadline_ns);
	return r;
}

/* Removes a folder of the daemon with the files in it. */
static void remove_files(int root_fd, const char *name, const char *folder)
{
	char path[NAME_BYTES + 8];
	_cleanup_(listing_close) DIR *d = NULL;

	snprintf(path, sizeof(path), "%s/%s", name, folder);
	d = listing_open(root_fd, path);
	if (!d)
		return;
	for (struct dirent *e = readdir(d); e; e = readdir(d))
		unlinkat(dirfd(d), e->d_name, 0);
	unlinkat(root_fd, path, AT_REMOVEDIR);
}

static int find_place(const char *root, const char *name, struct mps_place *ret_place)
{
	/* The longest that it makes there is a socket, whose path must fit into its address. */
	size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - sizeof("/control_privileged");

	if (strlen(root) + strlen(name) + sizeof("//pipe") > most)
		return -ENAMETOOLONG;
	*ret_place = (struct mps_place){.memory = ""};
	snprintf(ret_place->pipe, sizeof(ret_place->pipe), "%.128s/%.24s/pipe", root, name);
	snprintf(ret_place->log, sizeof(ret_place->log), "%.128s/%.24s/log", root, name);
	return 0;
}

/* With the lock: what a dead one left goes, and another begins. */
static int start(int root_fd, const char *name, const struct mps_place *place, const char *program,
	const char *visible, struct err *err)
{
	char link[NAME_BYTES + 16];
	int r;

	remove_files(root_fd, name, "pipe");
	remove_files(root_fd, name, "log");
	snprintf(link, sizeof(link), "%s/" CONTROL, name);
	unlinkat(root_fd, link, 0);
	r = symlinkat(program, root_fd, link) < 0 ? -errno
						  : file_make_folder(AT_FDCWD, place->pipe, 0700);
	if (r == 0)
		r = file_make_folder(AT_FDCWD, place->log, 0700);
	if (r < 0)
		return err_set(err, -r, "make the folder of an MPS daemon, %s: %s", place->pipe,
			strerror(-r));
	r = mps_daemon_start(place, program, visible, err);
	text_make_harmless(err->text);
	return r;
}

static int join_own(const char *program, const char *visible, struct mps *mps, struct err *err)
{
	char root[SHARE_PATH_BYTES], name[NAME_BYTES];
	_cleanup_fd_ int root_fd = -1;
	struct mps_place place;
	int r = slice_open_root(root, &root_fd, err);

	if (r < 0)
		return r;
	name_folder(visible, name);
	if (find_place(root, name, &place) < 0)
		return err_set(err, ENAMETOOLONG,
			"--mps: the folder for slices, %.100s, has too long a name for the MPS "
			"daemon's sockets in it; VGPU_STATE chooses another",
			root);
	r = make_guarded(root_fd, name, &mps->lock_fd);
	if (r < 0)
		return err_set(err, -r, "lock the MPS daemon's folder %s/%s: %s", root, name,
			r == -EAGAIN ? "another vgpu has it and does not come to an end"
				     : strerror(-r));
	strcpy(mps->pipe, place.pipe);
	strcpy(mps->log, place.log);
	return mps_daemon_is_alive(place.pipe)
		       ? 0
		       : start(root_fd, name, &place, program, visible, err);
}

int mps_join(
	const char *program, const char *visible, bool is_sim, struct mps *ret_mps, struct err *err)
{
	ret_mps->is_used = true;
	if (find_operators(is_sim, ret_mps))
		return 0;
	return join_own(program, visible, ret_mps, err);
}

void mps_let_go(struct mps *mps)
{
	cleanup_fd(&mps->lock_fd);
	mps->lock_fd = -1;
}

void mps_leave(struct mps *mps)
{
	mps_let_go(mps);
	if (!mps->is_used)
		return;
	slice_sweep();
	/* The last two may end at once, and the one that looked first saw the other. */
	mps_sweep(mps->pipe);
	*mps = MPS_NULL;
}

/* Whether this is the pipe directory of the daemon in that folder, however the root was spelt. */
static bool is_pipe_of(const char *pipe, const char *name)
{
	char end[NAME_BYTES + 8];
	size_t length = strlen(pipe), end_length;

	snprintf(end, sizeof(end), "/%.24s/pipe", name);
	end_length = strlen(end);
	return length >= end_length && strcmp(pipe + length - end_length, end) == 0;
}

/* Without memory or rights this is unknown, and then it stays. */
static bool is_named(const char *root, const char *name)
{
	DIR *folder = opendir(root);
	bool is_found = folder == NULL;

	for (struct dirent *e = folder ? readdir(folder) : NULL; e && !is_found;
		e = readdir(folder)) {
		char path[SHARE_PATH_BYTES + 300], text[SHARE_FILE_BYTES];
		struct share_fault fault;
		struct share share;
		size_t length;

		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/share", root, e->d_name);
		is_found = file_read_regular(
				   AT_FDCWD, path, O_NOFOLLOW, text, sizeof(text), &length) == 0 &&
			   share_parse(text, length, &share, &fault) == 0 &&
			   is_pipe_of(share.mps, name);
	}
	if (folder)
		closedir(folder);
	return is_found;
}

static void end_if_unused(const char *root, int root_fd, const char *name, bool is_patient)
{
	char link[NAME_BYTES + 16], program[PLACE_BYTES];
	_cleanup_fd_ int lock_fd = -1;
	struct mps_place place;
	ssize_t length;

	if (strlen(name) >= NAME_BYTES || find_place(root, name, &place) < 0 ||
		guard(root_fd, name, is_patient, 0, &lock_fd) < 0 || is_named(root, name))
		return;
	snprintf(link, sizeof(link), "%s/" CONTROL, name);
	length = readlinkat(root_fd, link, program, sizeof(program) - 1);
	program[length < 0 ? 0 : length] = '\0';
	if (mps_daemon_is_alive(place.pipe) && mps_daemon_stop(&place, program) < 0)
		return;
	remove_files(root_fd, name, "pipe");
	remove_files(root_fd, name, "log");
	unlinkat(root_fd, link, 0);
	snprintf(link, sizeof(link), "%s/" GUARD, name);
	unlinkat(root_fd, link, 0);
	unlinkat(root_fd, name, AT_REMOVEDIR);
}

void mps_sweep(const char *awaited)
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
		if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) == 0)
			end_if_unused(root, root_fd, e->d_name,
				awaited && is_pipe_of(awaited, e->d_name));
	closedir(folder);
}

static int set(const char *variable, const char *value, struct err *err)
{
	if (setenv(variable, value, 1) < 0)
		return err_set(err, errno, "set %s: %s", variable, strerror(errno));
	return 0;
}

static int set_memory(uint64_t memory_bytes, unsigned device_count, struct err *err)
{
	char text[1024];
	size_t used = 0;

	/* Without a quota one from outside stays in force. */
	if (memory_bytes == SHARE_UNLIMITED)
		return 0;
	/* One device too many, and the driver heeds none of them (measured with driver 580). */
	for (unsigned i = 0; i < device_count && used < sizeof(text); i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u=%" PRIu64 "M",
			i ? "," : "", i, memory_bytes >> 20 ? memory_bytes >> 20 : 1);
	if (used >= sizeof(text))
		return err_set(err, ENOSPC, "--mps: there are too many devices; --device chooses");
	return set("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", text, err);
}

int mps_set_environment(const struct mps *mps, const struct share_compute *compute,
	uint64_t memory_bytes, unsigned device_count, struct err *err)
{
	const char *outer = getenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE");
	char percent[16];
	uint16_t outer_permille;
	int r;

	snprintf(percent, sizeof(percent), "%u", grant_mps_percent(compute));
	/* Like any limit from outside, it stays in force where it is the smaller one. */
	if (outer && share_read_percent(outer, &outer_permille) &&
		outer_permille < 10 * grant_mps_percent(compute))
		snprintf(percent, sizeof(percent), "%.15s", outer);
	r = set("CUDA_MPS_PIPE_DIRECTORY", mps->pipe, err);
	if (r == 0 && *mps->log)
		r = set("CUDA_MPS_LOG_DIRECTORY", mps->log, err);
	if (r == 0)
		r = set("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent, err);
	if (r == 0)
		r = set_memory(memory_bytes, device_count, err);
	return r;
}
