/* SPDX-License-Identifier: Apache-2.0 */
/* The files on the host that a container's slice consists of. */
#include "node/container.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/file.h"
#include "node/folder.h"
#include "policy/device_name.h"
#include "region/region.h"
#include "region/snapshot.h"
#include "region/turn_place.h"

#define FOLDER_MODE 0755
#define CLOSED_MODE \
	0700 /* what is below is open to a container by its mounts, and to no user of the host */
#define SHARE_MODE	  0444
#define REGION_MODE	  0666 /* the container's processes may be of any user */
#define RECORD_MODE	  0666
#define REGION_MOST_BYTES (16u << 20)
#define RECORD_MOST_BYTES (1u << 20)
#define LIBRARY_NAME	  "libvgpu.so"

static int join(
	char to[CONTAINER_PATH_BYTES], const char *first, const char *second, const char *third)
{
	int length = snprintf(to, CONTAINER_PATH_BYTES, "%s/%s/%s", first, second, third);

	return length < 0 || length >= CONTAINER_PATH_BYTES ? -ENAMETOOLONG : 0;
}

int container_region_path(const struct container_place *place, const struct container *container,
	char ret_path[CONTAINER_PATH_BYTES])
{
	char folder[CONTAINER_PATH_BYTES];
	int r = join(folder, place->hook, "containers", container->key);

	return r < 0 ? r
	       : (size_t)snprintf(ret_path, CONTAINER_PATH_BYTES, "%s/%s", folder,
			 container->cache) >= CONTAINER_PATH_BYTES
		       ? -ENAMETOOLONG
		       : 0;
}

static int make_share(const struct container_place *place, const struct container *c,
	struct folder_later *later, struct err *err)
{
	_cleanup_fd_ int shares_fd = -1;
	_cleanup_fd_ int folder_fd = -1;
	char text[SHARE_FILE_BYTES];
	size_t length;
	int r = folder_make(place->shares, FOLDER_MODE, &shares_fd, err);

	if (r < 0)
		return r;
	r = share_format(&c->share, text, sizeof(text), &length);
	if (r == 0)
		r = folder_make_at(shares_fd, c->key, FOLDER_MODE, &folder_fd);
	if (r == 0)
		r = folder_put_later(folder_fd, "share", text, length, SHARE_MODE, later);
	if (r == 0 && later)
		r = folder_sync_later(shares_fd, later);
	return r < 0 ? err_set(err, -r, "write %s/%s/share: %s", place->shares, c->key,
			       strerror(-r))
		     : 0;
}

/* What is in the folder of another life of this container: a region begun and not ended, or of another name. */
static int remove_other(void *context, int folder_fd, const char *name)
{
	const struct container *c = context;

	if (strcmp(name, c->cache) && strcmp(name, LIBRARY_NAME) &&
		unlinkat(folder_fd, name, 0) < 0)
		return errno == EISDIR ? unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0
				       : -errno;
	return 0;
}

/*
 * Whether what is there is to go. One that its tenant has broken would refuse all memory for ever. One of another version
 * belongs to the library that the container has mounted, which makes none in a folder that is read-only.
 */
static bool is_useless(const struct container_place *place, const struct container *c,
	const char *path, bool is_new_boot)
{
	_cleanup_(region_close) struct region region = REGION_NULL;
	int r = region_open_existing(path, &region);

	if (r == 0)
		return is_new_boot && !container_is_running(place, c);
	return r == REGION_E_FOREIGN || r == REGION_E_TRUNCATED;
}

static int make_region(const char *path, struct err *err)
{
	_cleanup_(region_close) struct region region = REGION_NULL;
	int r = region_open(path, &region);

	if (r && r != REGION_E_VERSION)
		return err_set(err, r < 0 ? -r : EIO, "make %.300s: %s; %s", path,
			region_explain(r), region_remedy(r));
	return 0;
}

static int check_locks(const char *hook, int folder_fd, struct err *err)
{
	char path[64];
	_cleanup_(region_close) struct region region = REGION_NULL;
	bool keeps;
	int r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.trial", folder_fd);
	r = folder_sweep(folder_fd);
	if (r == 0)
		r = region_open(path, &region);
	if (r == 0 && (r = region_try_locks(&region, REGION_LOCK_TRIAL, &keeps)) == 0 && !keeps)
		r = -EOPNOTSUPP;
	unlinkat(folder_fd, ".trial", 0);
	if (r == -EOPNOTSUPP)
		return err_set(err, EOPNOTSUPP,
			"%.300s is on a file system that drops a process's locks, as an overlay "
			"does; a "
			"folder on a disk of the host is right",
			hook);
	return r ? err_set(err, r < 0 ? -r : EIO, "%.300s: %s; %s", hook, region_explain(r),
			   region_remedy(r))
		 : 0;
}

int container_check_place(const struct container_place *place, struct err *err)
{
	_cleanup_fd_ int hook_fd = -1;
	_cleanup_fd_ int folder_fd = -1;
	int r = folder_make(place->hook, FOLDER_MODE, &hook_fd, err);

	if (r < 0)
		return r;
	r = folder_make_at(hook_fd, "containers", CLOSED_MODE, &folder_fd);
	if (r < 0)
		return err_set(err, -r, "make %.300s/containers: %s", place->hook, strerror(-r));
	return check_locks(place->hook, folder_fd, err);
}

static int open_region_folder(
	const struct container_place *place, const char *key, int *ret_fd, struct err *err)
{
	_cleanup_fd_ int hook_fd = -1;
	_cleanup_fd_ int containers_fd = -1;
	int r = folder_make(place->hook, FOLDER_MODE, &hook_fd, err);

	if (r < 0)
		return r;
	r = folder_make_at(hook_fd, "containers", CLOSED_MODE, &containers_fd);
	if (r == 0)
		r = folder_make_at(containers_fd, key, FOLDER_MODE, ret_fd);
	return r < 0 ? err_set(err, -r, "make %.200s/containers/%s: %s", place->hook, key,
			       strerror(-r))
		     : 0;
}

/* The library is mounted over an empty file, because the folder is read-only in the container. */
static int make_books(const struct container_place *place, const struct container *c,
	bool is_new_boot, struct err *err)
{
	char path[CONTAINER_PATH_BYTES];
	_cleanup_fd_ int folder_fd = -1;
	struct file_identity id;
	int r = open_region_folder(place, c->key, &folder_fd, err);

	if (r < 0)
		return r;
	r = container_region_path(place, c, path);
	if (r == 0)
		r = folder_each(folder_fd, remove_other, (void *)c);
	/* the runtime makes a folder of a file that it misses */
	if (r == 0 && file_identify_at(folder_fd, c->cache, &id) == 0 && !id.is_regular)
		r = unlinkat(folder_fd, c->cache, id.is_folder ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
	if (r == 0 && is_useless(place, c, path, is_new_boot) &&
		unlinkat(folder_fd, c->cache, 0) < 0)
		r = -errno;
	FAULT("container: old region gone");
	if (r == 0)
		r = folder_put(folder_fd, LIBRARY_NAME, "", 0, SHARE_MODE, FOLDER_NO_SYNC);
	if (r < 0)
		return err_set(
			err, -r, "%.200s/containers/%s: %s", place->hook, c->key, strerror(-r));
	return make_region(path, err);
}

static int make_record(int device_fd, const char *slice, bool is_new_boot)
{
	_cleanup_fd_ int fd = -1;
	struct file_identity id;
	int r;

	if (file_identify_at(device_fd, slice, &id) == 0 &&
		(is_new_boot || !id.is_regular || id.link_count != 1))
		unlinkat(device_fd, slice, id.is_folder ? AT_REMOVEDIR : 0);
	r = turn_place_open_record(device_fd, slice, &fd);
	/* What its own tenant has broken is made anew. */
	if (r == -EBADMSG && unlinkat(device_fd, slice, 0) == 0)
		r = turn_place_open_record(device_fd, slice, &fd);
	FAULT("container: record made");
	return r < 0 ? r : fchmod(fd, RECORD_MODE) < 0 ? -errno : 0;
}

static int is_other(void *context, int folder_fd, const char *name)
{
	return strcmp(name, context) != 0;
}

/* Users of the host may not write records either. A folder that has anything else in it is not ours to close. */
static void close_parent(const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	_cleanup_fd_ int fd = -1;
	char parent[CONTAINER_PATH_BYTES];
	struct file_identity id;

	snprintf(parent, sizeof(parent), "%.*s", (int)(name - path), path);
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 || file_identify(fd, &id) < 0 || id.owner != geteuid() ||
		folder_each(fd, is_other, (void *)(uintptr_t)name) != 0)
		return;
	if (fchmod(fd, CLOSED_MODE) < 0)
		return;
}

static int make_records(const struct container_place *place, const struct container *c,
	bool is_new_boot, struct err *err)
{
	_cleanup_fd_ int turns_fd = -1;
	bool has_turns = *place->turns && *c->share.turns;
	int r = has_turns ? folder_make(place->turns, FOLDER_MODE, &turns_fd, err) : 0;

	if (r == 0 && has_turns)
		close_parent(place->turns);
	for (unsigned i = 0; i < c->share.device_count && has_turns && r == 0; i++) {
		_cleanup_fd_ int device_fd = -1;
		const char *uuid = c->share.devices[i].uuid;

		r = folder_make_at(turns_fd, uuid, FOLDER_MODE, &device_fd);
		if (r == 0)
			r = folder_sweep(device_fd);
		if (r == 0)
			r = make_record(device_fd, c->share.slice, is_new_boot);
		if (r < 0)
			return err_set(err, -r, "make %.200s/%s/%s: %s", place->turns, uuid,
				c->share.slice, strerror(-r));
	}
	return r;
}

static int make_lock_folder(const struct container_place *place, struct err *err)
{
	_cleanup_fd_ int fd = -1;

	return *place->lock ? folder_make(place->lock, FOLDER_MODE, &fd, err) : 0;
}

int container_make(const struct container_place *place, const struct container *container,
	bool is_new_boot, struct folder_later *later, struct err *err)
{
	int r = make_share(place, container, later, err);

	FAULT("container: share made");
	if (r == 0)
		r = make_books(place, container, is_new_boot, err);
	FAULT("container: region made");
	if (r == 0)
		r = make_records(place, container, is_new_boot, err);
	return r < 0 ? r : make_lock_folder(place, err);
}

static void count_one(const struct snapshot_member *member, void *count)
{
	++*(unsigned *)count;
}

/* Who lives is asked of no device, so that nothing that the region names is looked at. */
bool container_is_running(const struct container_place *place, const struct container *container)
{
	char path[CONTAINER_PATH_BYTES];
	unsigned count = 0;

	return container_region_path(place, container, path) == 0 &&
	       snapshot_visit(path, NULL, count_one, &count) == 0 && count > 0;
}

static uint64_t held_bytes(const struct snapshot *snapshot, const char *uuid)
{
	for (unsigned i = 0; i < snapshot->device_count; i++)
		if (device_name_is_same(snapshot->devices[i].uuid, uuid))
			return snapshot->devices[i].used_bytes;
	return 0;
}

int container_held_bytes(const struct container_place *place, const struct container *container,
	const char *uuid, uint64_t *ret_bytes)
{
	_cleanup_free_ struct snapshot *snapshot = malloc(sizeof(*snapshot));
	char path[CONTAINER_PATH_BYTES];
	int r;

	if (!snapshot)
		return -ENOMEM;
	r = container_region_path(place, container, path);
	if (r == 0)
		r = snapshot_read(path, snapshot);
	if (r == 0)
		*ret_bytes = held_bytes(snapshot, uuid);
	return r;
}

/*
 * No file of any version is as large, and a process that has mapped one must not lose its end. Whoever is root in the
 * container may also have made of it a program that runs as root.
 */
static void trim(const char *path, uint64_t size_bytes, unsigned mode)
{
	_cleanup_fd_ int fd = -1;
	struct file_identity id;

	if (file_open_regular(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, &fd) < 0 ||
		file_identify(fd, &id) < 0)
		return;
	if (id.owner != geteuid() && fchown(fd, geteuid(), getegid()) < 0)
		return;
	if (id.mode != mode && fchmod(fd, mode) < 0)
		return;
	if (id.size_bytes > size_bytes && ftruncate(fd, (off_t)size_bytes) < 0)
		return;
}

void container_trim(const struct container_place *place, const struct container *container)
{
	char path[CONTAINER_PATH_BYTES];

	if (container_region_path(place, container, path) == 0)
		trim(path, REGION_MOST_BYTES, REGION_MODE);
	for (unsigned i = 0; i < container->share.device_count && *place->turns; i++)
		if (join(path, place->turns, container->share.devices[i].uuid,
			    container->share.slice) == 0)
			trim(path, RECORD_MOST_BYTES, RECORD_MODE);
}

/* Removes a folder below another; none is no failure. */
static int remove_below(const char *folder, const char *key)
{
	_cleanup_fd_ int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? errno == ENOENT ? 0 : -errno : folder_remove_at(fd, key);
}

int container_remove(
	const struct container_place *place, const struct container *container, struct err *err)
{
	char path[CONTAINER_PATH_BYTES];
	int r;

	for (unsigned i = 0; i < container->share.device_count && *place->turns; i++)
		if (join(path, place->turns, container->share.devices[i].uuid,
			    container->share.slice) == 0)
			unlink(path);
	FAULT("container: records removed");
	snprintf(path, sizeof(path), "%s/containers", place->hook);
	r = remove_below(path, container->key);
	FAULT("container: region removed");
	if (r == 0)
		r = remove_below(place->shares, container->key);
	FAULT("container: share removed");
	return r < 0 ? err_set(err, -r, "remove the files of %s: %s", container->key, strerror(-r))
		     : 0;
}
