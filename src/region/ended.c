/* SPDX-License-Identifier: Apache-2.0 */
/* When a slice had no living process. */
#include "region/ended.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"
#include "region/layout.h"
#include "region/process.h"

#define OTHERS_WRITE 022
#define PATH_BYTES   256

int ended_look(int region_fd, bool *ret_is_ended)
{
	bool is_locked;
	int r = file_range_is_locked(region_fd, REGION_LOCK_SLOTS, REGION_SLOTS, &is_locked);

	/* Work goes on in contexts that children keep (slot.c). */
	if (r == 0 && !is_locked)
		r = file_range_is_locked(region_fd, REGION_LOCK_CHILDREN, REGION_SLOTS, &is_locked);
	if (r == 0)
		*ret_is_ended = !is_locked;
	return r;
}

int ended_format(uint64_t at_ns, dev_t device, ino_t inode, char ret_text[ENDED_BYTES])
{
	char boot[FILE_BOOT_BYTES];
	int r = file_read_boot(boot);

	if (r < 0)
		return r;
	snprintf(ret_text, ENDED_BYTES, "%llu region %llx:%llx boot %s clock %llu\n",
		(unsigned long long)at_ns, (unsigned long long)device, (unsigned long long)inode,
		boot, (unsigned long long)process_read_namespace("/proc/self/ns/time"));
	return 0;
}

uint64_t ended_parse(const char *text, dev_t device, ino_t inode)
{
	char digits[24], own[ENDED_BYTES];
	uint64_t at_ns;
	int length = snprintf(digits, sizeof(digits), "%.*s", (int)strcspn(text, " "), text);

	if (length >= (int)sizeof(digits) || parse_u64(digits, UINT64_MAX, &at_ns))
		return 0;
	return ended_format(at_ns, device, inode, own) == 0 && strcmp(text, own) == 0 ? at_ns : 0;
}

/* Whether who can write the file can write the share, too. */
static bool is_as_good(int share_fd, int fd)
{
	struct file_identity share, own;
	char its[FILE_MOUNT_BYTES], mount[FILE_MOUNT_BYTES];

	return file_identify(share_fd, &share) == 0 && file_identify(fd, &own) == 0 &&
	       own.owner == share.owner && own.link_count == 1 && !(own.mode & OTHERS_WRITE) &&
	       file_find_mount(share_fd, mount) == 0 && file_find_mount(fd, its) == 0 &&
	       strcmp(mount, its) == 0;
}

static int name_file(const char *share, char ret_path[PATH_BYTES])
{
	const char *slash = strrchr(share, '/');
	int length = slash ? snprintf(ret_path, PATH_BYTES, "%.*s/" ENDED_FILE,
				     (int)(slash - share), share)
			   : PATH_BYTES;

	return length < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

uint64_t ended_read(const char *share, dev_t device, ino_t inode)
{
	_cleanup_fd_ int share_fd = -1;
	_cleanup_fd_ int fd = -1;
	char path[PATH_BYTES], text[ENDED_BYTES];
	ssize_t length;

	if (!share || name_file(share, path) < 0 ||
		file_open_regular(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, &fd) < 0 ||
		file_open_regular(AT_FDCWD, share, O_RDONLY | O_NOFOLLOW, &share_fd) < 0 ||
		!is_as_good(share_fd, fd))
		return 0;
	length = pread(fd, text, sizeof(text), 0);
	if (length <= 0 || length == sizeof(text))
		return 0;
	text[length] = '\0';
	/* A text with a zero byte within is shorter than it says, and none of ours. */
	return strlen(text) == (size_t)length ? ended_parse(text, device, inode) : 0;
}
