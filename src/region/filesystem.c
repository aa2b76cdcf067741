/* SPDX-License-Identifier: Apache-2.0 */
/* The file system that a region lies on. Numbers are those of include/uapi/linux/magic.h and statfs(2). */
#include "region/filesystem.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/bits.h"
#include "base/scratch.h"

#define READ_ONLY 1 /* ST_RDONLY, include/linux/statfs.h */

#define LOCAL	  .is_remote = false
#define PLAIN	  .is_plain = true
#define REMOTE	  .is_remote = true

static const struct filesystem known[] = {
	{0x794c7630, "overlayfs", .drops_locks = true, PLAIN},
	{0x61756673, "aufs", .drops_locks = true},
	{0x6a656a62, "shiftfs", .drops_locks = true},
	{0x01021994, "tmpfs", PLAIN},
	{0xef53, "ext4", PLAIN},
	{0x58465342, "xfs", PLAIN},
	{0x9123683e, "btrfs", PLAIN},
	{0x2fc12fc1, "zfs", PLAIN},
	{0x65735546, "fuse", LOCAL},
	{0x01021997, "9p", PLAIN},
	{0x858458f6, "ramfs", PLAIN},
	{0x6969, "nfs", REMOTE},
	{0xff534d42, "cifs", REMOTE},
	{0xfe534d42, "smb2", REMOTE},
	{0x517b, "smb", REMOTE},
	{0x00c36400, "ceph", REMOTE},
	{0x5346414f, "afs", REMOTE},
	{0x6b414653, "afs", REMOTE},
	{0x0bd00bd0, "lustre", REMOTE},
	{0x47504653, "gpfs", REMOTE},
	{0x19830326, "beegfs", REMOTE},
	{0x7461636f, "ocfs2", REMOTE},
	{0x01161970, "gfs2", REMOTE},
};

static const struct filesystem *find(const struct statfs *s)
{
	static const struct filesystem unknown = {.name = "unknown"};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].magic == (unsigned)s->f_type)
			return &known[i];
	return &unknown;
}

const struct filesystem *filesystem_of(int fd)
{
	struct statfs s = {0};

	/* One that cannot be asked counts as one that we do not know. */
	return find(fstatfs(fd, &s) == 0 ? &s : &(struct statfs){0});
}

bool filesystem_is_plain_type(const char *type)
{
	/* "overlay" is overlayfs. */
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (known[i].is_plain && *type && strncmp(known[i].name, type, strlen(type)) == 0)
			return true;
	return false;
}

/* As one that cannot be asked where there is no memory for it. */
static void ask(const char *path, struct statfs *ret_s)
{
	SCRATCH_ARRAY(char, folder, PATH_MAX);
	size_t length = folder ? strlen(path) : 0;

	*ret_s = (struct statfs){0};
	while (length > 0 && length < PATH_MAX) {
		memcpy(folder, path, length);
		folder[length] = '\0';
		if (statfs(folder, ret_s) == 0 || length == 1)
			break;
		while (length > 0 && path[length - 1] != '/')
			length--;
		/* The first slash is the root's name. */
		length -= length > 1;
	}
}

const struct filesystem *filesystem_at(const char *path)
{
	struct statfs s;

	ask(path, &s);
	return find(&s);
}

bool filesystem_is_read_only(const char *path)
{
	struct statfs s;

	ask(path, &s);
	return s.f_flags & READ_ONLY;
}
