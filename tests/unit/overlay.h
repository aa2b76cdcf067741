/* SPDX-License-Identifier: Apache-2.0 */
/* File systems of a container, mounted where only this process and its children see them. */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define OVERLAY_SKIPPED 77 /* what meson takes for a skipped test */

static inline bool overlay_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_done;
}

/* A mount namespace of its own: as root, or as whoever becomes root in a user namespace. */
static inline bool overlay_unshare(void)
{
	unsigned uid = getuid(), gid = getgid();
	char map[64];

	if (unshare(CLONE_NEWNS) != 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
			return false;
		overlay_write("/proc/self/setgroups", "deny");
		snprintf(map, sizeof(map), "0 %u 1", uid);
		if (!overlay_write("/proc/self/uid_map", map))
			return false;
		snprintf(map, sizeof(map), "0 %u 1", gid);
		if (!overlay_write("/proc/self/gid_map", map))
			return false;
	}
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/*
 * Mounts an overlay at folder, as a container's root is one; what it consists of is on a tmpfs below it. False
 * where this machine does not allow it, with *ret_why.
 */
static inline bool overlay_mount(const char *folder, const char **ret_why)
{
	static const char *const parts[] = {"lower", "upper", "work", "merged"};
	char path[512], options[1024];

	*ret_why = "no mount namespace";
	if (!overlay_unshare())
		return false;
	*ret_why = "no tmpfs";
	if (mount("tmpfs", folder, "tmpfs", 0, "mode=755") != 0)
		return false;
	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, parts[i]);
		if (mkdir(path, 0755) != 0)
			return false;
	}
	*ret_why = "no overlayfs";
	snprintf(options, sizeof(options), "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work",
		folder, folder, folder);
	if (mount("overlay", path, "overlay", 0, options) != 0 &&
		(strcat(options, ",userxattr"), mount("overlay", path, "overlay", 0, options) != 0))
		return false;
	return mount(path, folder, NULL, MS_MOVE, NULL) == 0;
}

/* The folder is empty again, where anything was mounted there. */
static inline void overlay_unmount(const char *parent, const char *folder)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", parent, folder);
	while (umount2(path, MNT_DETACH) == 0)
		;
}
