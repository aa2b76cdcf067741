/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region file: checked, mapped, and made where it is missing (region_make.c). Whatever is
 * found under the name and is not a region of this version is left as it is and refused.
 */
#include "region/region.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/scratch.h"
#include "policy/device_name.h"
#include "region/filesystem.h"
#include "region/region_make.h"
#include "region/slot_owner.h"

#define LOCK_NS 50000000u /* longest wait for another process that changes the shared allocations */

static int map(int fd, struct region_file **ret_file)
{
	void *at =
		mmap(NULL, sizeof(struct region_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return -errno;
	/* A child that kept the mapping would keep its parent's slot alive, too. */
	if (madvise(at, sizeof(struct region_file), MADV_DONTFORK) < 0) {
		int r = -errno;

		munmap(at, sizeof(struct region_file));
		return r;
	}
	*ret_file = at;
	return 0;
}

/*
 * Read, and not looked at in the mapping: whoever cuts the file short at this moment makes an error of it, and no signal.
 * So a root's program may open a region that its tenant can write to.
 */
static int read_at(int fd, size_t at, void *to, size_t size)
{
	ssize_t got = pread(fd, to, size, (off_t)at);

	if (got < 0)
		return -errno;
	return (size_t)got == size ? 0 : REGION_E_TRUNCATED;
}

static int check(int fd)
{
	struct {
		int32_t magic, major;
	} hami;
	struct {
		uint64_t magic;
		uint32_t version, size_bytes;
	} own;
	int r = read_at(fd, offsetof(struct region_file, hami.magic), &hami, sizeof(hami));

	if (r == 0)
		r = read_at(fd, offsetof(struct region_file, own.magic), &own, sizeof(own));
	if (r)
		return r;
	if (hami.magic != HAMI_MAGIC || hami.major != HAMI_MAJOR || own.magic != REGION_MAGIC)
		return REGION_E_FOREIGN;
	if (own.version != REGION_VERSION || own.size_bytes != sizeof(struct region_file))
		return REGION_E_VERSION;
	return 0;
}

static int attach(const char *path, int fd, struct region *ret_region)
{
	struct region_file *file = NULL;
	struct file_identity id;
	int r = file_identify(fd, &id);

	if (r < 0)
		return r;
	if (!id.is_regular)
		return REGION_E_FOREIGN;
	if (filesystem_of(fd)->is_remote)
		return REGION_E_REMOTE;
	if (id.size_bytes < sizeof(struct region_file))
		return id.size_bytes == sizeof(struct hami_region) ||
				       id.size_bytes == sizeof(struct hami_region) + 1
			       ? REGION_E_FOREIGN
			       : REGION_E_TRUNCATED;
	r = check(fd);
	if (r == 0)
		r = map(fd, &file);
	if (r)
		return r;
	*ret_region = (struct region){
		.file = file, .fd = fd, .device = id.device, .inode = id.inode, .path = path};
	return 0;
}

static int open_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

int region_open_existing(const char *path, struct region *ret_region)
{
	_cleanup_fd_ int fd = open_file(path);
	int r = fd < 0 ? fd : attach(path, fd, ret_region);

	if (r == 0)
		fd = -1;
	return r;
}

int region_open(const char *path, struct region *ret_region)
{
	int r = region_open_existing(path, ret_region);

	if (r != -ENOENT)
		return r;
	r = region_make(path, 0666);
	return r ? r : region_open_existing(path, ret_region);
}

bool region_is_strangers(const struct file_identity *id, uid_t user)
{
	return id->owner != user && id->owner != 0;
}

static void own_path_of(uid_t user, char ret_path[REGION_DEFAULT_BYTES])
{
	snprintf(ret_path, REGION_DEFAULT_BYTES, "%s.%u", REGION_DEFAULT_PATH, (unsigned)user);
}

void region_own_path(char ret_path[REGION_DEFAULT_BYTES])
{
	own_path_of(geteuid(), ret_path);
}

void region_default_path_of(
	uid_t user, const struct file_identity *there, char ret_path[REGION_DEFAULT_BYTES])
{
	if (there && region_is_strangers(there, user))
		own_path_of(user, ret_path);
	else
		strcpy(ret_path, REGION_DEFAULT_PATH);
}

/* Who had one of his own once goes on with it: what others make and remove at the common path gives him no second one. */
static bool has_own(void)
{
	char path[REGION_DEFAULT_BYTES];
	struct file_identity id;

	region_own_path(path);
	return file_identify_at(AT_FDCWD, path, &id) == 0 && id.is_regular && id.owner == geteuid();
}

void region_default_path(char ret_path[REGION_DEFAULT_BYTES])
{
	struct file_identity id;
	bool is_there = file_identify_at(AT_FDCWD, REGION_DEFAULT_PATH, &id) == 0;

	if (has_own())
		region_own_path(ret_path);
	else
		region_default_path_of(geteuid(), is_there ? &id : NULL, ret_path);
}

/* Why there is nothing to open at the default path, after that could not be opened: what was there and is gone was another user's. */
static int judge_absent(const char *path, int why)
{
	struct file_identity id;
	int r = file_identify_at(AT_FDCWD, path, &id);

	return r == -ENOENT || (r == 0 && region_is_strangers(&id, geteuid())) ? REGION_E_STRANGERS
									       : why;
}

/* The file at the path, made where it is missing. What is said of it is of the file that is open, whatever has its name by then. */
static int open_default(
	const char *path, mode_t roots_mode, int *ret_fd, struct file_identity *ret_id)
{
	_cleanup_fd_ int fd = open_file(path);
	int r;

	if (fd == -ENOENT) {
		r = region_make(path, geteuid() ? 0600 : roots_mode);
		if (r)
			return r;
		fd = open_file(path);
	}
	if (fd < 0)
		return judge_absent(path, fd);
	r = file_identify(fd, ret_id);
	if (r < 0)
		return r;
	if (region_is_strangers(ret_id, geteuid()))
		return REGION_E_STRANGERS;
	*ret_fd = take_fd(&fd);
	return 0;
}

int region_open_default(const char *path, mode_t roots_mode, struct region *ret_region)
{
	struct region region = REGION_NULL;
	struct file_identity id;
	_cleanup_fd_ int fd = -1;
	int r = open_default(path, roots_mode, &fd, &id);

	/* Of two names that were looked at one after the other, another program of the user's may have seen the other one free. */
	if (r == 0 && strcmp(path, REGION_DEFAULT_PATH) == 0 && has_own())
		r = REGION_E_STRANGERS;
	if (r == 0)
		r = attach(path, fd, &region);
	if (r)
		return r;
	(void)take_fd(&fd);
	/* as versions before this one made it */
	if (id.owner != 0 && (id.mode & 022) && fchmod(region.fd, 0600) < 0) {
		r = -errno;
		region_close(&region);
		return r;
	}
	*ret_region = region;
	return 0;
}

/* Who comes between the two takes them for another boot's, and writes its own, which are as good. */
void region_follow_clock(struct region *region)
{
	struct region_own *own = &region->file->own;
	struct clock_mark mark = {.ticks_ns = atomic_load(&own->clock_ticks_ns),
		.wall_ns = atomic_load(&own->clock_wall_ns)};

	if (clock_follow(&mark))
		return;
	atomic_store(&own->clock_ticks_ns, mark.ticks_ns);
	atomic_store(&own->clock_wall_ns, mark.wall_ns);
}

void region_drop_fd(struct region *region)
{
	if (region->fd >= 0)
		close(region->fd);
	region->fd = -1;
}

/* Whether others find the byte locked while `mapped` alone can keep it, and not any more after that. */
static bool is_kept_by(const struct region *region, int64_t at, void *mapped, size_t size)
{
	bool is_locked, is_still_locked;
	int r = file_byte_is_locked(region->fd, at, &is_locked);

	munmap(mapped, size);
	if (r == 0)
		r = file_byte_is_locked(region->fd, at, &is_still_locked);
	return r == 0 && is_locked && !is_still_locked;
}

int region_try_locks(const struct region *region, int64_t at, bool *ret_keeps)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	_cleanup_fd_ int fd = -1;
	void *mapped;
	int r = 0;

	*ret_keeps = false;
	if (filesystem_of(region->fd)->drops_locks)
		return 0;
	r = region_reopen(region, &fd);
	if (r < 0)
		return file_is_want(r) ? r : 0;
	if (file_lock_byte(fd, at) < 0)
		return 0;
	mapped = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return errno == ENOMEM ? -ENOMEM : 0;
	cleanup_fd(&fd);
	fd = -1;
	*ret_keeps = is_kept_by(region, at, mapped, page);
	return 0;
}

int region_reopen(const struct region *region, int *ret_fd)
{
	_cleanup_fd_ int fd = open(region->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct file_identity id;
	int r;

	if (fd < 0)
		return -errno;
	r = file_identify(fd, &id);
	if (r < 0)
		return r;
	if (id.device != region->device || id.inode != region->inode)
		return -ESTALE;
	*ret_fd = take_fd(&fd);
	return 0;
}

void region_reset_after_fork(struct region *region)
{
	struct file_identity id;

	if (region->fd >= 0 && file_identify(region->fd, &id) == 0 && id.device == region->device &&
		id.inode == region->inode)
		close(region->fd);
	*region = REGION_NULL;
}

void region_close(struct region *region)
{
	/* Who closes it leaves its slots, and lives on. */
	if (region->has_slots)
		slot_forget_peaks(region->file, 0);
	region_drop_fd(region);
	if (region->token_page)
		token_drop(region->token_page);
	if (region->children_page)
		munmap((void *)region->children_page, (size_t)sysconf(_SC_PAGESIZE));
	if (region->file)
		munmap(region->file, sizeof(*region->file));
	*region = REGION_NULL;
}

/* FNV-1a (Fowler, Noll, Vo, 1991) of what is unique in the name; never 0. */
static uint64_t key_of(const char *uuid)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (uuid = device_name_core(uuid); *uuid; uuid++)
		hash = (hash ^ (unsigned char)*uuid) * 0x100000001b3ull;
	return hash ? hash : 1;
}

/* Every process that comes to the entry writes the same, so one that stops here delays nobody. */
static void name_device(struct region_file *f, unsigned i, const char *uuid)
{
	char name[REGION_UUID_BYTES] = "";
	uint32_t count = atomic_load(&f->own.device_count);

	strncpy(name, uuid, REGION_UUID_BYTES - 1);
	if (memcmp(f->hami.uuids[i], name, sizeof(name)) != 0)
		memcpy(f->hami.uuids[i], name, sizeof(name));
	FAULT("begin: device named");
	while (count < i + 1)
		if (atomic_compare_exchange_weak(&f->own.device_count, &count, i + 1))
			count = i + 1;
	/* relaxed: HAMi's monitor reads without order anyway */
	atomic_store_explicit(&f->hami.device_count,
		count < REGION_DEVICES ? count : REGION_DEVICES, memory_order_relaxed);
}

int region_lock(const struct region *region, int64_t at, int *ret_fd)
{
	uint64_t deadline = clock_now_ns() + LOCK_NS;
	struct timespec pause = {.tv_nsec = 1000000};
	_cleanup_fd_ int fd = -1;
	int r = region_reopen(region, &fd);

	if (r < 0)
		return r;
	while ((r = file_lock_byte(fd, at)) != 0) {
		if (r != -EAGAIN || clock_now_ns() > deadline)
			return r == -EAGAIN ? -EBUSY : r;
		nanosleep(&pause, NULL);
	}
	*ret_fd = take_fd(&fd);
	return 0;
}

void region_unlock(int fd, int64_t at)
{
	/* By hand: a child that was forked meanwhile has the descriptor, too. */
	file_unlock_byte(fd, at);
	close(fd);
}

int region_device(struct region *region, const char *uuid, unsigned *ret_device)
{
	struct region_file *f = region->file;
	uint64_t key = key_of(uuid);

	/* All who look for one device look in one order, so they all come to the same entry. */
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		uint64_t seen = 0;

		if (!atomic_compare_exchange_strong(&f->own.devices[i].key, &seen, key) &&
			seen != key) {
			/* Ours by name and not by key was tampered with: no second entry for it. */
			if (device_name_is_same(f->hami.uuids[i], uuid))
				return -EBADMSG;
			continue;
		}
		FAULT("begin: device taken");
		name_device(f, i, uuid);
		*ret_device = i;
		return 0;
	}
	return -ENOSPC;
}

int region_foresee(const char *path)
{
	SCRATCH_ARRAY(char, folder, PATH_MAX);
	const char *name = strrchr(path, '/');

	if (filesystem_at(path)->is_remote)
		return REGION_E_REMOTE;
	if (filesystem_is_read_only(path))
		return -EROFS;
	if (!folder)
		return -ENOMEM;
	if (!name || name == path || (size_t)(name - path) >= PATH_MAX)
		return 0;
	memcpy(folder, path, (size_t)(name - path));
	return access(folder, F_OK) < 0 ? -errno : 0;
}

const char *region_explain(int outcome)
{
	switch (outcome) {
	case REGION_E_FOREIGN:
		return "the file is no accounting file of this library";
	case REGION_E_TRUNCATED:
		return "the file is too short to be an accounting file";
	case REGION_E_VERSION:
		return "the file is the accounting file of another version; remove it when its "
		       "processes have ended";
	case -EFBIG:
		return "the process may make no file so large (ulimit -f)";
	case REGION_E_STRANGERS:
		return "the file is another user's";
	case -EAGAIN:
		return "a process has a lease on the file, which keeps others from opening it";
	case REGION_E_REMOTE:
		return "other machines may have its file system mounted, too";
	default:
		return outcome < 0 ? strerror(-outcome) : "";
	}
}

/* What the file takes, for people. */
#define ROOM "5 MiB"
_Static_assert(sizeof(struct region_file) <= 5 << 20, "ROOM");

#define ELSEWHERE                                                                                \
	", or name a file elsewhere (CUDA_DEVICE_MEMORY_SHARED_CACHE, or `region` in the share " \
	"file)"

const char *region_remedy(int outcome)
{
	switch (outcome) {
	case -EAGAIN:
		return "end that process (/proc/locks names it)" ELSEWHERE;
	case -EROFS:
	case REGION_E_REMOTE:
		return "mount a tmpfs or a local volume on its folder, as docker run --tmpfs "
		       "does" ELSEWHERE;
	case REGION_E_STRANGERS:
		return "have that user, or root, remove it" ELSEWHERE;
	case -ENOENT:
	case -ENOTDIR:
		return "make its folder" ELSEWHERE;
	case -EACCES:
	case -EPERM:
		return "let this user write to its folder" ELSEWHERE;
	case -EFBIG:
		return "raise the limit to " ROOM
		       ", or begin the slice by vgpu run where the limit is higher" ELSEWHERE;
	case -ENOSPC:
	case -EDQUOT:
		return "make " ROOM " of room there" ELSEWHERE;
	default:
		return "remove the file when its processes have ended" ELSEWHERE;
	}
}
