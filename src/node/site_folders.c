/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of slices of vgpu run.
 *
 * Any user can make a folder with a promising name, so one counts only where it belongs to the user whom its name says
 * (node/root.h), and no link in it is followed.
 */
#include "node/site_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/root.h"
#include "node/site_list.h"
#include "node/slice.h"
#include "node/user.h"
#include "policy/share.h"

static void cleanup_glob(glob_t *paths)
{
	globfree(paths);
}

/* A slice is its folder: two of them may have one region, by a link. */
static bool is_known_folder(const struct sites *s, const struct file_identity *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].folder_inode == id->inode && s->list[i].folder_device == id->device)
			return true;
	return false;
}

/* Folder after folder it is the same one. */
static bool is_known_user(uid_t user)
{
	static uid_t last = (uid_t)-1;
	static bool is_known;

	if (user != last)
		is_known = user_is_known(user);
	last = user;
	return is_known;
}

static bool is_nobodys(const struct sites *s, uid_t user)
{
	return s->knows_users && user && user != geteuid() && !is_known_user(user);
}

/* Counts one more of the user's folders; false where that is too many. */
static bool may_look(struct sites *s, uid_t user)
{
	uid_t of = is_nobodys(s, user) ? ACCOUNT_NOBODYS : user;
	struct account *a = s->most_of_user && user ? account_find(&s->accounts, of, 0) : NULL;

	if (!s->most_of_user || !user)
		return true;
	if (a && a->folders < s->most_of_user) {
		a->folders++;
		return true;
	}
	if (a)
		a->left_out++;
	return false;
}

/* A user's own, but others may write to it: what is in it may be theirs. */
static void note_distrusted(
	struct sites *s, const char *path, int at_fd, const char *name, uid_t owner)
{
	struct file_identity id;

	if (file_identify_at(at_fd, name, &id) < 0 || !id.is_folder || !(id.mode & 022) ||
		(owner != ROOT_OF_ANYBODY && id.owner != owner))
		return;
	if (s->distrusted.count++)
		return;
	snprintf(s->distrusted.path, sizeof(s->distrusted.path), "%s", path);
	s->distrusted.mode = id.mode;
	s->distrusted.owner = id.owner;
}

static int add_folder(struct sites *s, const char *root, int root_fd, uid_t owner, const char *name)
{
	char folder[SITE_PATH_BYTES], region[SITE_PATH_BYTES + 8];
	int length = snprintf(folder, sizeof(folder), "%s/%s", root, name);
	struct file_identity own, id, share;
	_cleanup_fd_ int fd = -1;
	struct site *site;
	int r;

	if (length < 0 || (size_t)length >= sizeof(folder))
		return 0;
	r = root_open_slice(root_fd, owner, name, &fd);
	if (r == -EPERM)
		note_distrusted(s, folder, root_fd, name, owner);
	if (r < 0 || file_identify(fd, &own) < 0 || is_known_folder(s, &own))
		return 0;
	snprintf(region, sizeof(region), "%s/region", folder);
	if (file_identify_at(fd, "region", &id) < 0 || !id.is_regular) {
		if (file_identify_at(fd, "share", &share) < 0 || !share.is_regular)
			return 0;
		id = (struct file_identity){.inode = 0};
	}
	if (!share_name_is_valid(name)) {
		site_list_note(&s->misnamed, root);
		return 0;
	}
	/* A link to another user's, whose region it stays; view_read() says so. */
	if (id.owner != owner)
		id = (struct file_identity){.inode = 0};
	site = site_list_append(s, name, folder, region);
	if (!site)
		return -ENOMEM;
	site->owner = owner;
	site->is_sim = slice_is_simulated(fd, owner);
	site->folder_device = own.device;
	site->folder_inode = own.inode;
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

int site_folders_add_root(struct sites *s, const char *root, uid_t owner)
{
	DIR *folder = NULL;
	int fd, r = root_open(root, owner, &fd, &owner);

	if (r == -EPERM)
		note_distrusted(s, root, AT_FDCWD, root, owner);
	if (r < 0)
		return 0;
	r = 0;
	folder = fdopendir(fd);
	if (!folder) {
		close(fd);
		return 0;
	}
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (e->d_name[0] != '.' && may_look(s, owner))
			r = add_folder(s, root, fd, owner, e->d_name);
	closedir(folder);
	return r;
}

/* The roots that stand there for each user; in the path stands the user's number instead of the star. */
static int add_roots(struct sites *s, const char *before, const char *after)
{
	_cleanup_(cleanup_glob) glob_t paths = {0};
	char pattern[64];
	int r = 0;

	snprintf(pattern, sizeof(pattern), "%s*%s", before, after);
	if (glob(pattern, 0, NULL, &paths) != 0)
		return 0;
	for (size_t i = 0; i < paths.gl_pathc && r == 0; i++) {
		const char *path = paths.gl_pathv[i], *number = path + strlen(before);
		size_t length = strlen(number) - strlen(after);
		char text[16];
		uid_t owner;

		if (length >= sizeof(text))
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)length, number);
		if (!user_read_number(text, &owner))
			continue;
		/* Each takes time, also where nothing is in it. */
		if (!is_nobodys(s, owner) || may_look(s, owner))
			r = site_folders_add_root(s, path, owner);
	}
	return r;
}

int site_folders_add(struct sites *s)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[SITE_PATH_BYTES];
	int r = site_folders_add_root(s, "/run/vgpu", 0);

	if (r == 0 && runtime && *runtime &&
		(size_t)snprintf(path, sizeof(path), "%s/vgpu", runtime) < sizeof(path))
		r = site_folders_add_root(s, path, geteuid());
	if (r == 0)
		r = add_roots(s, "/run/user/", "/vgpu");
	return r ? r : add_roots(s, "/tmp/vgpu-", "");
}
