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
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/parse.h"
#include "node/look.h"
#include "node/status.h"

void user_name(uid_t uid, char ret_name[USER_NAME_BYTES])
{
	const struct passwd *entry = getpwuid(uid);

	if (entry && *entry->pw_name && strlen(entry->pw_name) < USER_NAME_BYTES)
		strcpy(ret_name, entry->pw_name);
	else
		snprintf(ret_name, USER_NAME_BYTES, "%u", (unsigned)uid);
}

bool user_is_known(uid_t uid)
{
	return getpwuid(uid) != NULL;
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

bool user_of_process(pid_t pid, uid_t *ret_uid)
{
	unsigned uids[3];

	if (!status_read_users(pid, uids) || uids[0] != uids[1] || uids[0] != uids[2])
		return false;
	*ret_uid = uids[0];
	return true;
}

/* The user whose the outermost namespace of users is that the process is in and we are not. -ENOENT where there is none, or it is not told. */
static int find_owner(pid_t pid, uid_t *ret_owner, uint64_t *ret_space)
{
	struct file_identity own, seen;
	_cleanup_fd_ int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (!look_is_allowed(pid) || file_identify_path("/proc/self/ns/user", &own) < 0 ||
		file_identify_path(path, &seen) < 0 || seen.inode == own.inode)
		return -ENOENT;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	while (fd >= 0) {
		_cleanup_fd_ int parent = ioctl(fd, NS_GET_PARENT);

		/* None of ours is above it. */
		if (parent < 0 || file_identify(parent, &seen) < 0)
			return -ENOENT;
		if (seen.inode == own.inode && file_identify(fd, &seen) == 0) {
			*ret_space = seen.inode;
			return ioctl(fd, NS_GET_OWNER_UID, ret_owner) < 0 ? -ENOENT : 0;
		}
		cleanup_fd(&fd);
		fd = take_fd(&parent);
	}
	return -ENOENT;
}

uint64_t user_mounts_of(pid_t pid)
{
	struct file_identity own, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (!look_is_allowed(pid) || file_identify_path(path, &its) < 0 ||
		file_identify_path("/proc/self/ns/mnt", &own) < 0)
		return 0;
	return its.inode == own.inode ? 0 : its.inode;
}

/* The space is 0 but for a namespace of users that root has made. *ret_is_own: the process is in one that a user has made. */
static bool find_user(pid_t pid, uid_t *ret_uid, uint64_t *ret_space, bool *ret_is_own)
{
	uint64_t space = 0;
	unsigned uids[3];
	uid_t owner;
	bool is_owned;

	if (!status_read_users(pid, uids))
		return false;
	/* Asked for afterwards: nobody comes back from such a namespace. Root's are containers, whose users are nobody's else. */
	is_owned = find_owner(pid, &owner, &space) == 0;
	*ret_is_own = is_owned && owner != 0;
	*ret_uid = *ret_is_own ? owner : uids[0];
	*ret_space = is_owned && owner == 0 ? space : 0;
	return true;
}

bool user_who_started(pid_t pid, uid_t *ret_uid)
{
	uint64_t ignored;
	bool is_own;

	return find_user(pid, ret_uid, &ignored, &is_own);
}

bool user_and_space(pid_t pid, uid_t *ret_uid, uint64_t *ret_space)
{
	bool is_own;

	if (!find_user(pid, ret_uid, ret_space, &is_own))
		return false;
	/* Who may make namespaces of mounts without one of users is root: each is a container, and so a tenant. */
	if (!is_own && !*ret_space)
		*ret_space = user_mounts_of(pid);
	return true;
}
