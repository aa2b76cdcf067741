/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changing the share file of a slice that may be running.
 *
 * Its processes look at the file whenever they like, so it is replaced and never rewritten. SLICE_LOCK_EDIT
 * is for one change at a time: the second begins with what the first has made of it. The remover of a
 * slice takes the same lock, so nothing is written into a folder that is going.
 *
 * Root may change slices of other users, in whose folders anything may stand: no link is followed, nothing is made
 * outside of the slice's folder, and a lock that its owner could hold is waited for shortly and then done without.
 */
#include "cli/edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/command.h"
#include "cli/mps.h"
#include "node/lease.h"
#include "node/root.h"
#include "node/sites.h"
#include "node/slice.h"
#include "node/user.h"
#include "policy/device_name.h"

#define COMMON_LOCK   ".lock" /* beside the slices' folders */
#define SHORT_WAIT_NS UINT64_C(1000000000)

static int explain_none(const char *name, const char *region, struct err *err)
{
	char why[400];

	if (root_explain_distrust(name, why, sizeof(why)))
		return err_set(err, EPERM, "slice '%.60s' is not believed: %s", name, why);
	if (region)
		return err_set(err, ENOENT,
			"'%.60s' was not made by vgpu run: there is only its accounting file, "
			"%.150s. Its owner changes its share file, or its environment",
			name, region);
	return err_set(
		err, ENOENT, "there is no slice '%.60s'; `vgpu list --all` shows them", name);
}

static int explain_several(const struct sites *sites, const char *name, struct err *err)
{
	char there[300] = "", user[USER_NAME_BYTES];
	bool are_of_several = false;
	const struct site *first = NULL;
	size_t used = 0;

	for (size_t i = 0; i < sites->count && used < sizeof(there); i++) {
		const struct site *site = &sites->list[i];

		if (!site->folder || !sites_is_called(site, name))
			continue;
		first = first ? first : site;
		are_of_several |= site->owner != first->owner;
		user_name(site->owner, user);
		used += (size_t)snprintf(there + used, sizeof(there) - used,
			"%s%.40s/%.60s in %.80s", used ? ", " : "", user, site->name, site->folder);
	}
	return err_set(err, EEXIST,
		"there are several slices '%.60s': %s; %schoose the folder of slices by "
		"VGPU_STATE=FOLDER",
		name, there, are_of_several ? "say USER/NAME, or " : "");
}

/* Of slices of one name the caller's own is meant: no other user can make the name another's. */
static int choose(
	const struct sites *sites, const char *name, const struct site **ret_site, struct err *err)
{
	const struct site *own = NULL, *others = NULL;
	unsigned own_count = 0, others_count = 0;
	const char *region = NULL;

	for (size_t i = 0; i < sites->count; i++) {
		const struct site *site = &sites->list[i];

		if (!sites_is_called(site, name))
			continue;
		if (!site->folder) {
			region = site->region;
		} else if (site->owner == geteuid()) {
			own = site;
			own_count++;
		} else {
			others = site;
			others_count++;
		}
	}
	if (own_count > 1 || (own_count == 0 && others_count > 1))
		return explain_several(sites, name, err);
	if (!own && !others)
		return explain_none(name, region, err);
	*ret_site = own ? own : others;
	return 0;
}

/* Whether it may be one of ours that has ended: of those nobody holds the lock any more. */
static bool may_be_stale(const struct site *site)
{
	_cleanup_fd_ int root_fd = -1;
	_cleanup_fd_ int folder_fd = -1;
	_cleanup_fd_ int lock_fd = -1;
	bool is_locked;
	uid_t owner;

	if (site->owner != geteuid())
		return false;
	return root_open_both(site->folder, &root_fd, &folder_fd, &owner) < 0 ||
	       file_open_regular(folder_fd, "lock", O_RDONLY | O_NOFOLLOW, &lock_fd) < 0 ||
	       file_byte_is_locked(lock_fd, SLICE_LOCK_RUN, &is_locked) < 0 || !is_locked;
}

/*
 * A slice that runs is found by its folder: processes are looked at where none is found so. What one of them keeps from being looked at keeps no
 * slice from being suspended.
 */
static int find(
	struct sites *sites, const char *name, const struct site **ret_site, struct err *err)
{
	struct err first = ERR_NULL, second = ERR_NULL;
	int r = sites_find_all_folders(sites, err);

	if (r < 0)
		return r;
	r = choose(sites, name, ret_site, &first);
	if (r == 0 && !may_be_stale(*ret_site))
		return 0;
	slice_sweep();
	mps_sweep(NULL);
	sites_clear(sites);
	r = sites_find_all_folders(sites, err);
	if (r < 0)
		return r;
	r = choose(sites, name, ret_site, &second);
	if (r == 0)
		return 0;
	if (r != -ENOENT) {
		*err = second;
		return r;
	}
	sites_clear(sites);
	r = sites_find(sites, err);
	return r < 0 ? r : choose(sites, name, ret_site, err);
}

int edit_find(
	const char *name, char ret_folder[EDIT_FOLDER_BYTES], bool *ret_is_sim, struct err *err)
{
	_cleanup_(sites_clear) struct sites sites = SITES_NULL;
	const struct site *site = NULL;
	int r = find(&sites, name, &site, err);

	if (r < 0)
		return r;
	if ((size_t)snprintf(ret_folder, EDIT_FOLDER_BYTES, "%s", site->folder) >=
		EDIT_FOLDER_BYTES)
		return err_set(err, ENAMETOOLONG, "slice '%.60s' has too long a path", name);
	*ret_is_sim = site->is_sim;
	return 0;
}

static const char *explain_error(int error)
{
	return error == EBADF ? "it is no regular file" : strerror(error);
}

static int explain_failure(const struct edit *e, const char *what, int error, struct err *err)
{
	if (error == EACCES || error == EPERM)
		return err_set(err, error,
			"slice '%s' belongs to another user; only that user and root may change it",
			e->name);
	return err_set(err, error, "slice '%s': %s: %s", e->name, what, explain_error(error));
}

/* Of another user's slice, which root alone can change. */
static bool is_anothers(const struct edit *e)
{
	return geteuid() == 0 && e->folder_owner != 0;
}

static void go_without_lock(struct edit *e, const char *why)
{
	struct err note = ERR_NULL;

	err_set(&note, 0, "note: slice '%s': %s; it is changed without its lock", e->name, why);
	command_warn(&note);
	cleanup_fd(&e->lock_fd);
	e->lock_fd = -1;
}

int edit_lock(struct edit *e, int at, struct err *err)
{
	const char *why =
		at == SLICE_LOCK_EVICT
			? "it is being suspended or resumed by another vgpu"
			: "it is being changed by another vgpu that does not come to an end";
	bool is_short = is_anothers(e) && at == SLICE_LOCK_EDIT;
	int r = e->lock_fd < 0
			? 0
			: slice_lock(e->lock_fd, at, is_short ? SHORT_WAIT_NS : SLICE_LOCK_WAIT_NS);

	if (r == 0)
		return 0;
	if (is_anothers(e)) {
		go_without_lock(e, r == -EAGAIN ? why : strerror(-r));
		return 0;
	}
	return r == -EAGAIN ? err_set(err, EAGAIN, "slice '%s': %s", e->name, why)
			    : explain_failure(e, "take its lock", -r, err);
}

static int lock(struct edit *e, struct err *err)
{
	struct stat s;
	int r = edit_lock(e, SLICE_LOCK_EDIT, err);

	/* The remover of the slice had the lock, too. */
	if (r == 0 && !is_anothers(e) && (fstat(e->lock_fd, &s) < 0 || s.st_nlink == 0))
		return explain_none(e->name, NULL, err);
	return r;
}

/* A lease keeps the file from being opened for as long as its owner likes, whoever opens it. */
static int explain_lease(const struct edit *e, struct err *err)
{
	pid_t holder = lease_holder(e->folder_fd, "share");

	if (holder)
		return err_set(err, EAGAIN,
			"slice '%s': process %d has a lease on its share file, which keeps it from "
			"being "
			"opened; end that process, and try again",
			e->name, (int)holder);
	return err_set(err, EAGAIN,
		"slice '%s': a process of its owner has a lease on its share file, which keeps it "
		"from "
		"being opened; end that process, and try again",
		e->name);
}

static int read_share(struct edit *e, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	char text[SHARE_FILE_BYTES];
	struct share_fault fault;
	struct stat s;
	ssize_t length;
	int r = file_open_regular(e->folder_fd, "share", O_RDONLY | O_NOFOLLOW, &fd);

	if (r == -EAGAIN)
		return explain_lease(e, err);
	if (r < 0 || fstat(fd, &s) < 0)
		return explain_failure(e, "open its share file", r < 0 ? -r : errno, err);
	length = read(fd, text, sizeof(text) - 1);
	if (length < 0)
		return explain_failure(e, "read its share file", errno, err);
	text[length] = '\0';
	if (share_parse(text, (size_t)length, &e->share, &fault) < 0)
		return err_set(err, EINVAL, "slice '%s': its share file is broken, line %u: %s",
			e->name, fault.line, fault.why);
	e->before = e->share;
	e->mode = s.st_mode & 0777;
	/* Whoever's file the owner of the folder has linked there: the new one is his, and nobody else's to write to. */
	if (is_anothers(e)) {
		e->mode &= ~(mode_t)022;
		if (fstat(e->folder_fd, &s) < 0)
			return explain_failure(e, "look at its folder", errno, err);
	}
	e->owner = s.st_uid;
	e->group = s.st_gid;
	return 0;
}

/*
 * The device plugin's slices have no lock: their containers see the folder, and could hold it. All of these have one
 * together, in a folder of this user's own. In another's nothing is made.
 */
static int open_lock(struct edit *e, int root_fd)
{
	int r = file_open_regular(e->folder_fd, "lock", O_RDWR | O_NOFOLLOW, &e->lock_fd);
	int fd;

	if (r != -ENOENT || is_anothers(e))
		return r;
	fd = openat(root_fd, COMMON_LOCK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0 && errno == EEXIST)
		return file_open_regular(root_fd, COMMON_LOCK, O_RDWR | O_NOFOLLOW, &e->lock_fd);
	if (fd < 0)
		return -errno;
	e->lock_fd = fd;
	return fchmod(fd, 0600) < 0 ? -errno : 0;
}

int edit_begin(const char *folder, const char *name, struct edit *ret_edit, struct err *err)
{
	_cleanup_fd_ int root_fd = -1;
	char why[100];
	int r;

	*ret_edit = EDIT_NULL;
	snprintf(ret_edit->name, sizeof(ret_edit->name), "%s", name);
	r = root_open_both(folder, &root_fd, &ret_edit->folder_fd, &ret_edit->folder_owner);
	if (r < 0)
		return explain_failure(ret_edit, "open its folder", -r, err);
	/* Without a lock it has a name of its own, which nobody has taken before. */
	snprintf(ret_edit->temporary, sizeof(ret_edit->temporary),
		is_anothers(ret_edit) ? "share.new.%llx" : "share.new",
		(unsigned long long)clock_now_ns());
	r = open_lock(ret_edit, root_fd);
	if (r < 0 && !is_anothers(ret_edit))
		return explain_failure(ret_edit, "open its lock", -r, err);
	if (r < 0) {
		snprintf(why, sizeof(why), "open its lock: %s", explain_error(-r));
		go_without_lock(ret_edit, why);
	}
	snprintf(ret_edit->region, sizeof(ret_edit->region), "/proc/self/fd/%d/region",
		ret_edit->folder_fd);
	return edit_relock(ret_edit, err);
}

int edit_relock(struct edit *edit, struct err *err)
{
	int r = lock(edit, err);

	return r < 0 ? r : read_share(edit, err);
}

void edit_unlock(struct edit *edit)
{
	file_unlock_byte(edit->lock_fd, SLICE_LOCK_EDIT);
}

static int explain_missing(const struct share *share, const char *text, struct err *err)
{
	char there[300] = "none";
	size_t used = 0;

	for (unsigned i = 0; i < share->device_count && used < sizeof(there); i++)
		used += (size_t)snprintf(there + used, sizeof(there) - used, "%s%s", i ? ", " : "",
			share->devices[i].uuid);
	return err_set(err, ENODEV, "device '%.80s' is not the slice's; it has %s", text, there);
}

int edit_line(
	struct share *share, const char *uuid, struct share_device **ret_line, struct err *err)
{
	const struct share_device *any = share_device(share, uuid);
	struct share_device line;

	for (unsigned i = 0; i < share->device_count; i++)
		if (device_name_is_same(share->devices[i].uuid, uuid)) {
			*ret_line = &share->devices[i];
			return 0;
		}
	if (!any)
		return explain_missing(share, uuid, err);
	line = *any;
	snprintf(line.uuid, sizeof(line.uuid), "%s", uuid);
	if (share->device_count == SHARE_DEVICES)
		return err_set(err, ENOSPC,
			"device '%s': the slice's share has no room for another device", uuid);
	share->devices[share->device_count] = line;
	*ret_line = &share->devices[share->device_count++];
	return 0;
}

static int write_all(int fd, const char *text, size_t length)
{
	ssize_t written = write(fd, text, length);

	if (written == (ssize_t)length)
		return 0;
	return written < 0 ? -errno : -ENOSPC;
}

/* The temporary becomes the owner's last, when it is whole. */
static int write_temporary(const struct edit *e, const char *text, size_t length)
{
	_cleanup_fd_ int fd = -1;
	struct stat s;
	int r;

	unlinkat(e->folder_fd, e->temporary, 0); /* of one that was killed */
	fd = openat(e->folder_fd, e->temporary,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = file_may_grow_to(length);
	if (r == 0)
		r = write_all(fd, text, length);
	if (r < 0)
		return r;
	if (fstat(fd, &s) < 0)
		return -errno;
	if ((s.st_uid != e->owner || s.st_gid != e->group) && fchown(fd, e->owner, e->group) < 0)
		return -errno;
	return fchmod(fd, e->mode) < 0 ? -errno : 0;
}

/* MPS fixes a program's part when the program begins. */
static int refuse_mps(const struct edit *e, struct err *err)
{
	bool is_same = e->share.priority == e->before.priority;

	for (unsigned i = 0; i < e->share.device_count && is_same; i++) {
		const struct share_device *d = &e->share.devices[i];
		const struct share_device *was = share_device(&e->before, d->uuid);

		is_same = was && d->compute.cores_permille == was->compute.cores_permille &&
			  d->compute.cap_permille == was->compute.cap_permille &&
			  d->compute.weight == was->compute.weight;
	}
	if (!*e->share.mps || is_same)
		return 0;
	return err_set(err, EOPNOTSUPP,
		"slice '%s' runs under MPS, where a program's part of a device is fixed when it "
		"begins; only its memory can be set",
		e->name);
}

int edit_commit(struct edit *edit, struct err *err)
{
	char text[SHARE_FILE_BYTES], before[SHARE_FILE_BYTES];
	size_t length, length_before;
	int r = refuse_mps(edit, err);

	if (r < 0)
		return r;
	r = share_format(&edit->share, text, sizeof(text), &length);
	if (r == 0 && share_format(&edit->before, before, sizeof(before), &length_before) == 0 &&
		length == length_before && memcmp(text, before, length) == 0)
		return 0;
	if (r == 0)
		r = write_temporary(edit, text, length);
	if (r == 0 && renameat(edit->folder_fd, edit->temporary, edit->folder_fd, "share") < 0)
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(edit->folder_fd, edit->temporary, 0);
	return explain_failure(edit, "write its share file", -r, err);
}

void edit_end(struct edit *edit)
{
	cleanup_fd(&edit->lock_fd);
	cleanup_fd(&edit->folder_fd);
	*edit = EDIT_NULL;
}
