/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where on this machine there are slices.
 *
 * A region has no registry: it is a file, in whatever mount namespace its processes live. So the
 * usual places are looked at first, for their names say the most, and then every process's memory
 * map, for mappings of exactly a region's size. A file that is reached in two ways is one region:
 * its device and inode say so.
 */
#include "node/sites.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/slice.h"
#include "region/layout.h"

#define PATH_BYTES   4096
#define DEFAULT_PATH "/tmp/cudevshr.cache" /* where a container's quota stands in its environment */
#define CONTAINERS   "/usr/local/vgpu/containers/*/*.cache"

static void cleanup_glob(glob_t *paths)
{
	globfree(paths);
}

static bool is_known(const struct sites *s, const struct file_identity *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].inode == id->inode && s->list[i].device == id->device)
			return true;
	return false;
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
	snprintf(ret_name, size, "%.*s%s", (int)length, file, of);
}

static int add_region(struct sites *s, const char *path, pid_t owner, bool is_guess)
{
	struct file_identity id;
	struct site *site;
	char name[256];
	int r = file_identify_path(path, &id);

	if (r < 0)
		return r;
	if (is_known(s, &id))
		return 0;
	name_region(path, owner, name, sizeof(name));
	site = append(s, name, NULL, path);
	if (!site)
		return -ENOMEM;
	site->is_guess = is_guess;
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

static int add_folder(struct sites *s, const char *root, const char *name)
{
	char folder[PATH_BYTES], region[PATH_BYTES + 8], share[PATH_BYTES + 8];
	struct file_identity id;
	struct site *site;
	int length = snprintf(folder, sizeof(folder), "%s/%s", root, name);

	if (length < 0 || (size_t)length >= sizeof(folder))
		return 0;
	snprintf(region, sizeof(region), "%s/region", folder);
	snprintf(share, sizeof(share), "%s/share", folder);
	if (access(share, F_OK) < 0 && access(region, F_OK) < 0)
		return 0;
	if (file_identify_path(region, &id) < 0)
		id = (struct file_identity){.inode = 0};
	else if (is_known(s, &id))
		return 0;
	site = append(s, name, folder, region);
	if (!site)
		return -ENOMEM;
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

/* Every slice below one root; a root that is not there or not ours to read has none. */
static int add_root(struct sites *s, const char *root)
{
	DIR *folder = opendir(root);
	int r = 0;

	if (!folder)
		return 0;
	for (struct dirent *e = readdir(folder); e && r == 0; e = readdir(folder))
		if (e->d_name[0] != '.')
			r = add_folder(s, root, e->d_name);
	closedir(folder);
	return r;
}

static int add_roots(struct sites *s, const char *pattern)
{
	_cleanup_(cleanup_glob) glob_t paths = {0};
	int r = 0;

	if (glob(pattern, 0, NULL, &paths) != 0)
		return 0;
	for (size_t i = 0; i < paths.gl_pathc && r == 0; i++)
		r = add_root(s, paths.gl_pathv[i]);
	return r;
}

static int add_regions(struct sites *s, const char *pattern)
{
	_cleanup_(cleanup_glob) glob_t paths = {0};

	if (glob(pattern, 0, NULL, &paths) != 0)
		return 0;
	for (size_t i = 0; i < paths.gl_pathc; i++)
		/* what went away meanwhile, or may not be looked at, is nothing to speak of */
		if (add_region(s, paths.gl_pathv[i], 0, false) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

/* Takes one line of /proc/PID/maps; ret_path where it may be a region's mapping. */
static bool read_mapping(const char *line, pid_t pid, char *ret_path, size_t size)
{
	static const char deleted[] = " (deleted)";
	uint64_t start, end, offset;
	char access[8];
	int at = 0, length;
	size_t path_length;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &start, &end, access,
		    &offset, &at) < 4 ||
		at == 0 || line[at] != '/')
		return false;
	if (strcmp(access, "rw-s") != 0 || offset != 0 ||
		end - start != round_up_u64(sizeof(struct region_file), (uint64_t)getpagesize()))
		return false;
	line += at;
	path_length = strcspn(line, "\n");
	if (path_length > sizeof(deleted) &&
		!memcmp(line + path_length - (sizeof(deleted) - 1), deleted, sizeof(deleted) - 1))
		length = snprintf(ret_path, size, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
			(int)pid, start, end);
	else
		length = snprintf(
			ret_path, size, "/proc/%d/root%.*s", (int)pid, (int)path_length, line);
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
	char path[PATH_BYTES];
	_cleanup_file_ FILE *maps = NULL;
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;
	int r = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && r != -ENOMEM && getline(&line, &capacity, maps) > 0) {
		const char *region;
		bool is_ours;

		if (!read_mapping(line, pid, path, sizeof(path)))
			continue;
		region = shorten(path, pid, &is_ours);
		r = add_region(s, region, is_ours ? 0 : pid, true);
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

static int look(struct sites *s)
{
	const char *hook_path = getenv("HOOK_PATH"), *runtime = getenv("XDG_RUNTIME_DIR");
	char pattern[PATH_BYTES];
	int r = add_root(s, "/run/vgpu");

	if (r == 0 && runtime && *runtime &&
		(size_t)snprintf(pattern, sizeof(pattern), "%s/vgpu", runtime) < sizeof(pattern))
		r = add_root(s, pattern);
	if (r == 0)
		r = add_roots(s, "/run/user/*/vgpu");
	if (r == 0)
		r = add_roots(s, "/tmp/vgpu-*");
	if (r == 0)
		r = add_regions(s, CONTAINERS);
	if (r == 0 && hook_path && *hook_path &&
		(size_t)snprintf(pattern, sizeof(pattern), "%s/containers/*/*.cache", hook_path) <
			sizeof(pattern))
		r = add_regions(s, pattern);
	if (r == 0)
		r = add_regions(s, DEFAULT_PATH);
	return r ? r : add_mappings(s);
}

int sites_find(struct sites *sites, struct err *err)
{
	const char *named = getenv("VGPU_STATE");
	int r = named && *named ? add_root(sites, named) : look(sites);

	return r < 0 ? err_set(err, -r, "look for slices: %s", strerror(-r)) : 0;
}

int sites_add(struct sites *sites, const char *path, struct err *err)
{
	int r = add_region(sites, path, 0, false);

	return r < 0 ? err_set(err, -r, "region '%.200s': %s", path, strerror(-r)) : 0;
}

void sites_clear(struct sites *sites)
{
	for (size_t i = 0; i < sites->count; i++) {
		free(sites->list[i].name);
		free(sites->list[i].folder);
		free(sites->list[i].region);
	}
	free(sites->list);
	*sites = SITES_NULL;
}
