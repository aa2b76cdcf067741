/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of slices, of any user, and slices in them. */
#include "node/root.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/folder.h"
#include "node/user.h"
#include "policy/share.h"

static int open_folder(int at_fd, const char *path, uid_t owner, int *ret_fd, uid_t *ret_owner)
{
	_cleanup_fd_ int fd =
		openat(at_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct file_identity id;
	int r = fd < 0 ? -errno : file_identify(fd, &id);

	if (r < 0)
		return r;
	if ((owner != ROOT_OF_ANYBODY && id.owner != owner) || (id.mode & 022))
		return -EPERM;
	*ret_owner = id.owner;
	*ret_fd = take_fd(&fd);
	return 0;
}

int root_open(const char *path, uid_t owner, int *ret_fd, uid_t *ret_owner)
{
	return open_folder(AT_FDCWD, path, owner, ret_fd, ret_owner);
}

int root_open_slice(int root_fd, uid_t owner, const char *name, int *ret_fd)
{
	uid_t seen;

	return open_folder(root_fd, name, owner, ret_fd, &seen);
}

int root_open_both(const char *path, int *ret_root_fd, int *ret_fd, uid_t *ret_owner)
{
	const char *slash = strrchr(path, '/');
	_cleanup_fd_ int root_fd = -1;
	char root[4096];
	uid_t owner;
	int r;

	if (!slash || (size_t)snprintf(root, sizeof(root), "%.*s", (int)(slash - path), path) >=
			      sizeof(root))
		return -EINVAL;
	r = root_open(root, ROOT_OF_ANYBODY, &root_fd, &owner);
	if (r == 0)
		r = root_open_slice(root_fd, owner, slash + 1, ret_fd);
	if (r < 0)
		return r;
	*ret_owner = owner;
	*ret_root_fd = take_fd(&root_fd);
	return 0;
}

int root_open_path(const char *path, int *ret_fd, uid_t *ret_owner)
{
	_cleanup_fd_ int root_fd = -1;

	return root_open_both(path, &root_fd, ret_fd, ret_owner);
}

static bool is_taken(const char *path, uid_t owner)
{
	struct file_identity id;

	return file_identify_at(AT_FDCWD, path, &id) == 0 && id.owner != owner;
}

int root_give_back_names(unsigned *ret_left, struct err *err)
{
	static const char before[] = "/tmp/vgpu-";
	struct err next = ERR_NULL;
	unsigned of_nobody = 0;
	glob_t paths;
	uid_t owner;
	int r = 0, given;

	*ret_left = 0;
	if (glob("/tmp/vgpu-*", 0, NULL, &paths) != 0)
		return 0;
	for (size_t i = 0; i < paths.gl_pathc; i++) {
		if (!user_read_number(paths.gl_pathv[i] + strlen(before), &owner) ||
			!is_taken(paths.gl_pathv[i], owner))
			continue;
		if (!user_is_known(owner) && of_nobody++ >= ROOT_NAMES_OF_NOBODY) {
			(*ret_left)++;
			continue;
		}
		/* One that a user keeps root from giving back is no reason to leave the others. */
		given = folder_give_back(paths.gl_pathv[i], owner, r ? &next : err);
		r = r ? r : given;
	}
	globfree(&paths);
	return r;
}

static bool is_wrong(const char *path, uid_t owner, char *ret_why, size_t size)
{
	struct file_identity id;

	if (file_identify_at(AT_FDCWD, path, &id) < 0)
		return false;
	if (!id.is_folder)
		return snprintf(ret_why, size, "%.200s is no folder", path);
	if (id.owner != owner)
		return snprintf(ret_why, size, "%.200s is user %u's, and not user %u's", path,
			(unsigned)id.owner, (unsigned)owner);
	return (id.mode & 022) && snprintf(ret_why, size,
					  "others may write to its folder: %.200s has mode %04o; "
					  "`chmod go-w`, by user %u, "
					  "makes it right",
					  path, id.mode, (unsigned)owner);
}

/* In the path stands the user's number; before and after it what all users' have. */
static bool find_distrusted(const char *before, const char *after, const char *user,
	const char *name, char *ret_why, size_t size)
{
	char pattern[512];
	bool is_found = false;
	glob_t paths;

	snprintf(pattern, sizeof(pattern), "%s%s%s/%s", before, user, after, name);
	if (glob(pattern, 0, NULL, &paths) != 0)
		return false;
	for (size_t i = 0; i < paths.gl_pathc && !is_found; i++) {
		char *path = paths.gl_pathv[i], *number = path + strlen(before), text[16];
		size_t rest = strlen(after) + 1 + strlen(name);
		uid_t owner;

		snprintf(text, sizeof(text), "%.*s", (int)(strlen(number) - rest), number);
		if (!user_read_number(text, &owner))
			continue;
		is_found = is_wrong(path, owner, ret_why, size);
		*strrchr(path, '/') = '\0';
		is_found = is_wrong(path, owner, ret_why, size) || is_found;
	}
	globfree(&paths);
	return is_found;
}

bool root_explain_distrust(const char *name, char *ret_why, size_t size)
{
	const char *slash = strchr(name, '/'), *slice = slash ? slash + 1 : name;
	char user[USER_NAME_BYTES] = "*";
	uid_t uid;

	if (slash) {
		snprintf(user, sizeof(user), "%.*s", (int)(slash - name), name);
		if (!user_find(user, &uid))
			return false;
		snprintf(user, sizeof(user), "%u", (unsigned)uid);
	}
	/* which has nothing that a pattern has */
	return share_name_is_valid(slice) &&
	       (find_distrusted("/run/user/", "/vgpu", user, slice, ret_why, size) ||
		       find_distrusted("/tmp/vgpu-", "", user, slice, ret_why, size));
}
