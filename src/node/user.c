/* SPDX-License-Identifier: Apache-2.0 */
/* Users, by name and by number. */
#include "node/user.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"

void user_name(uid_t uid, char ret_name[USER_NAME_BYTES])
{
	const struct passwd *entry = getpwuid(uid);

	if (entry && *entry->pw_name && strlen(entry->pw_name) < USER_NAME_BYTES)
		strcpy(ret_name, entry->pw_name);
	else
		snprintf(ret_name, USER_NAME_BYTES, "%u", (unsigned)uid);
}

bool user_read_number(const char *text, uid_t *ret_uid)
{
	uint64_t number;

	if ((text[0] == '0' && text[1]) || parse_u64(text, UINT32_MAX - 1, &number) != 0)
		return false;
	*ret_uid = (uid_t)number;
	return true;
}

bool user_find(const char *text, uid_t *ret_uid)
{
	const struct passwd *entry = getpwnam(text);

	if (!entry)
		return user_read_number(text, ret_uid);
	*ret_uid = entry->pw_uid;
	return true;
}

/* The real, effective and saved one. The file is as long as the process has groups, of which there may be 65536. */
static bool read_users(pid_t pid, unsigned ret_uids[3])
{
	_cleanup_free_ char *line = NULL;
	_cleanup_file_ FILE *file = NULL;
	size_t capacity = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && getline(&line, &capacity, file) > 0)
		if (strncmp(line, "Uid:", 4) == 0)
			return sscanf(line + 4, "%u %u %u", &ret_uids[0], &ret_uids[1],
				       &ret_uids[2]) == 3;
	return false;
}

bool user_of_process(pid_t pid, uid_t *ret_uid)
{
	unsigned uids[3];

	if (!read_users(pid, uids) || uids[0] != uids[1] || uids[0] != uids[2])
		return false;
	*ret_uid = uids[0];
	return true;
}

/* The user whose the outermost namespace of users is that the process is in and we are not. -ENOENT where there is none, or it is not told. */
static int find_owner(pid_t pid, uid_t *ret_owner)
{
	struct file_identity own, seen;
	_cleanup_fd_ int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (file_identify_path("/proc/self/ns/user", &own) < 0 ||
		file_identify_path(path, &seen) < 0 || seen.inode == own.inode)
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0) {
		_cleanup_fd_ int parent = ioctl(fd, NS_GET_PARENT);

		/* None of ours is above it. */
		if (parent < 0 || file_identify(parent, &seen) < 0)
			return -ENOENT;
		if (seen.inode == own.inode)
			return ioctl(fd, NS_GET_OWNER_UID, ret_owner) < 0 ? -ENOENT : 0;
		cleanup_fd(&fd);
		fd = take_fd(&parent);
	}
	return -ENOENT;
}

bool user_who_started(pid_t pid, uid_t *ret_uid)
{
	unsigned uids[3];
	uid_t owner;

	if (!read_users(pid, uids))
		return false;
	/* Asked for afterwards: nobody comes back from such a namespace. Root's are containers, whose users are nobody's else. */
	*ret_uid = find_owner(pid, &owner) == 0 && owner != 0 ? owner : uids[0];
	return true;
}
