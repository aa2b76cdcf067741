/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where on this machine there are slices.
 *
 * A region has no registry: it is a file, in whatever mount namespace its processes live. So the
 * usual places are looked at first, for their names say the most, and then every process's memory
 * map, for mappings of exactly a region's size. A file that is reached in two ways is one region:
 * its device and inode say so.
 *
 * Any user can make a folder with a promising name, so one counts only where it belongs to the user whom its name says
 * (node/root.h), and no link in it is followed.
 */
#include "node/sites.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/mappings.h"
#include "node/root.h"
#include "node/slice.h"
#include "node/user.h"
#include "region/region.h"

#define PATH_BYTES 4096
#define NAME_MOST \
	128 /* of a name that is made of a path: more than a pod's UID and a container's name are long */
#define CONTAINERS "/usr/local/vgpu/containers/*/*.cache"

static void cleanup_glob(glob_t *paths)
{
	globfree(paths);
}

static int identify(const char *path, struct file_identity *ret_identity)
{
	bool is_kernels_link = strncmp(path, "/proc/", 6) == 0 && strstr(path, "/map_files/");
	int r = is_kernels_link ? file_identify_path(path, ret_identity)
				: file_identify_at(AT_FDCWD, path, ret_identity);

	return r < 0 || ret_identity->is_regular ? r : -EBADF;
}

static bool is_known(const struct sites *s, const struct file_identity *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].inode == id->inode && s->list[i].device == id->device)
			return true;
	return false;
}

/*
 * Counts one more of the user's; false where that is too many. Root is not counted: in a container without users of its own anybody
 * may be root, and must not keep others' slices from being seen.
 */
static bool may_look(struct sites *s, uid_t user)
{
	struct sites_user *users;
	size_t i = 0;

	if (!s->most_of_user || !user)
		return true;
	while (i < s->user_count && s->users[i].user != user)
		i++;
	if (i == s->user_count) {
		users = reallocarray(s->users, i + 1, sizeof(*users));
		if (!users)
			return false;
		s->users = users;
		s->users[s->user_count++] = (struct sites_user){.user = user};
	}
	if (s->users[i].looked_at == s->most_of_user) {
		s->users[i].left_out++;
		return false;
	}
	s->users[i].looked_at++;
	return true;
}

static struct site *append(
	struct sites *s, const char *name, const char *folder, const char *region)
{
	struct site site = {.name = strdup(name),
		.folder = folder ? strdup(folder) : NULL,
		.region = strdup(region)};

	if (s->count == s->capacity) {
		size_t capacity = s->capacity ? 2 * s->capacity : 16;
		struct site *sites = reallocarray(s->list, capacity, sizeof(*sites));

		if (sites) {
			s->list = sites;
			s->capacity = capacity;
		}
	}
	if (!site.name || !site.region || (folder && !site.folder) || s->count == s->capacity) {
		free(site.name);
		free(site.folder);
		free(site.region);
		return NULL;
	}
	s->list[s->count] = site;
	return &s->list[s->count++];
}

/* A name for a region by its path: of the folder where the file's own says nothing. */
static void name_region(const char *path, pid_t owner, char *ret_name, size_t size)
{
	const char *file = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t folder_length = (size_t)(file - path), length = strlen(file);
	const char *ending = strstr(file, ".cache");
	char of[24] = "";

	if (owner)
		snprintf(of, sizeof(of), "@%d", (int)owner);
	if (ending && ending[6] == '\0' && ending > file)
		length = (size_t)(ending - file);
	if ((strcmp(file, "region") == 0 || strstr(path, "/containers/")) && folder_length > 1) {
		const char *end = path + folder_length - 1, *start = end;

		while (start > path && start[-1] != '/')
			start--;
		file = start;
		length = (size_t)(end - start);
	}
	/* Anybody's, and a column of a table is as wide as the longest. */
	if (length > NAME_MOST)
		length = NAME_MOST;
	snprintf(ret_name, size, "%.*s%s", (int)length, file, of);
}

/* mapped_by: the process that has it mapped, or 0; owner: the same where its path is one of that process alone. */
static int add_region(struct sites *s, const char *path, pid_t owner, pid_t mapped_by)
{
	struct file_identity id;
	struct site *site;
	char name[256];
	int r = identify(path, &id);
	uid_t user;

	if (r < 0)
		return r;
	if (is_known(s, &id) ||
		(mapped_by && (!user_who_started(mapped_by, &user) || !may_look(s, user))))
		return 0;
	name_region(path, owner, name, sizeof(name));
	site = append(s, name, NULL, path);
	if (!site)
		return -ENOMEM;
	site->is_guess = mapped_by;
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

static int add_folder(struct sites *s, const char *root, int root_fd, uid_t owner, const char *name)
{
	char folder[PATH_BYTES], region[PATH_BYTES + 8];
	int length = snprintf(folder, sizeof(folder), "%s/%s", root, name);
	struct file_identity id, share;
	_cleanup_fd_ int fd = -1;
	struct site *site;
	bool has_region;

	if (length < 0 || (size_t)length >= sizeof(folder) ||
		root_open_slice(root_fd, owner, name, &fd) < 0)
		return 0;
	snprintf(region, sizeof(region), "%s/region", folder);
	has_region = file_identify_at(fd, "region", &id) == 0 && id.is_regular;
	if (!has_region) {
		if (file_identify_at(fd, "share", &share) < 0 || !share.is_regular)
			return 0;
		id = (struct file_identity){.inode = 0};
	}
	if (has_region && is_known(s, &id))
		return 0;
	site = append(s, name, folder, region);
	if (!site)
		return -ENOMEM;
	site->owner = owner;
	site->is_sim = slice_is_simulated(fd, owner);
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

/* Every slice below one root; a root that is not there, not ours to read or not its owner's has none. */
static int add_root(struct sites *s, const char *root, uid_t owner)
{
	DIR *folder = NULL;
	int fd, r = 0;

	if (root_open(root, owner, &fd, &owner) < 0)
		return 0;
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
		if (user_read_number(text, &owner))
			r = add_root(s, path, owner);
	}
	return r;
}

static int add_regions(struct sites *s, const char *pattern)
{
	_cleanup_(cleanup_glob) glob_t paths = {0};

	if (glob(pattern, 0, NULL, &paths) != 0)
		return 0;
	for (size_t i = 0; i < paths.gl_pathc; i++)
		/* what went away meanwhile, or may not be looked at, is nothing to speak of */
		if (add_region(s, paths.gl_pathv[i], 0, 0) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* Whether it may be a region's mapping, and by which path we reach the file. */
static bool read_mapping(const struct mapping *m, pid_t pid, char *ret_path, size_t size)
{
	static const char deleted[] = " (deleted)";
	size_t path_length = strlen(m->path);
	int length;

	if (m->path[0] != '/' || !m->is_shared_and_written || m->offset != 0 ||
		m->end - m->start !=
			round_up_u64(sizeof(struct region_file), (uint64_t)getpagesize()))
		return false;
	/* It has gone, or stands there in another way than it is: what is no single line (proc(5)). */
	if ((path_length > sizeof(deleted) &&
		    !strcmp(m->path + path_length - (sizeof(deleted) - 1), deleted)) ||
		strstr(m->path, "\\012"))
		length = snprintf(ret_path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
			(int)pid, m->start, m->end);
	else
		length = snprintf(ret_path, size, "/proc/%d/root%s", (int)pid, m->path);
	return length > 0 && (size_t)length < size;
}

/* The path as we would write it ourselves, where it leads us to the same file. */
static const char *shorten(const char *path, pid_t pid, bool *ret_is_ours)
{
	struct file_identity far, near;
	char root[32];
	int length = snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);

	*ret_is_ours = strncmp(path, root, (size_t)length) == 0 &&
		       file_identify_path(path, &far) == 0 &&
		       file_identify_path(path + length, &near) == 0 && far.inode == near.inode &&
		       far.device == near.device;
	return *ret_is_ours ? path + length : path;
}

static int add_mappings_of(struct sites *s, pid_t pid)
{
	_cleanup_(mappings_close) struct mappings all;
	struct mapping m;
	char path[PATH_BYTES];
	int r = 0;

	if (mappings_open(pid, &all) < 0)
		return 0;
	while (r != -ENOMEM && mappings_next(&all, &m)) {
		const char *region;
		bool is_ours;

		if (!read_mapping(&m, pid, path, sizeof(path)))
			continue;
		region = shorten(path, pid, &is_ours);
		r = add_region(s, region, is_ours ? 0 : pid, pid);
	}
	return r == -ENOMEM ? r : 0;
}

static int add_mappings(struct sites *s)
{
	DIR *folder = opendir("/proc");
	int r = 0;

	if (!folder)
		return 0;
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (isdigit((unsigned char)e->d_name[0]))
			r = add_mappings_of(s, (pid_t)atoi(e->d_name));
	closedir(folder);
	return r;
}

static int look_for_folders(struct sites *s)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char path[PATH_BYTES];
	int r = add_root(s, "/run/vgpu", 0);

	if (r == 0 && runtime && *runtime &&
		(size_t)snprintf(path, sizeof(path), "%s/vgpu", runtime) < sizeof(path))
		r = add_root(s, path, geteuid());
	if (r == 0)
		r = add_roots(s, "/run/user/", "/vgpu");
	return r ? r : add_roots(s, "/tmp/vgpu-", "");
}

static int look_for_regions(struct sites *s)
{
	const char *hook_path = getenv("HOOK_PATH");
	char pattern[PATH_BYTES];
	int r = add_regions(s, CONTAINERS);

	if (r == 0 && hook_path && *hook_path &&
		(size_t)snprintf(pattern, sizeof(pattern), "%s/containers/*/*.cache", hook_path) <
			sizeof(pattern))
		r = add_regions(s, pattern);
	if (r == 0)
		r = add_regions(s, REGION_DEFAULT_PATH);
	return r ? r : add_mappings(s);
}

static int find(struct sites *sites, bool has_regions, struct err *err)
{
	const char *named = getenv("VGPU_STATE");
	bool is_named = named && *named;
	int r = is_named ? add_root(sites, named, ROOT_OF_ANYBODY) : look_for_folders(sites);

	if (r == 0 && has_regions && !is_named)
		r = look_for_regions(sites);
	return r < 0 ? err_set(err, -r, "look for slices: %s", strerror(-r)) : 0;
}

int sites_find(struct sites *sites, struct err *err)
{
	return find(sites, true, err);
}

int sites_find_folders(struct sites *sites, struct err *err)
{
	sites->most_of_user = SITES_OF_USER;
	return find(sites, false, err);
}

size_t sites_left_out(const struct sites *sites)
{
	size_t count = 0;

	for (size_t i = 0; i < sites->user_count; i++)
		count += sites->users[i].left_out;
	return count;
}

int sites_add(struct sites *sites, const char *path, struct err *err)
{
	int r = add_region(sites, path, 0, 0);

	if (r == -EBADF)
		return err_set(err, EBADF, "accounting file '%.200s': it is no regular file", path);
	return r < 0 ? err_set(err, -r, "accounting file '%.200s': %s", path, strerror(-r)) : 0;
}

bool sites_is_called(const struct site *site, const char *text)
{
	const char *slash = strchr(text, '/');
	char user[USER_NAME_BYTES];
	uid_t uid;

	if (strcmp(site->name, text) == 0)
		return true;
	if (!slash || !site->folder || strcmp(site->name, slash + 1) != 0 ||
		(size_t)(slash - text) >= sizeof(user))
		return false;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - text), text);
	return user_find(user, &uid) && uid == site->owner;
}

void sites_clear(struct sites *sites)
{
	for (size_t i = 0; i < sites->count; i++) {
		free(sites->list[i].name);
		free(sites->list[i].folder);
		free(sites->list[i].region);
	}
	free(sites->list);
	free(sites->users);
	*sites = SITES_NULL;
}
