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

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "node/root.h"
#include "node/site_folders.h"
#include "node/site_list.h"
#include "node/site_mappings.h"
#include "node/user.h"
#include "region/region.h"

#define CONTAINERS "/usr/local/vgpu/containers/*/*.cache"

static void cleanup_glob(glob_t *paths)
{
	globfree(paths);
}

static int add_region(struct sites *s, const char *path)
{
	struct file_identity id;
	struct site *site;
	char name[256];
	int r = site_list_identify(path, &id);

	if (r < 0 || site_list_has(s, &id))
		return r;
	site_list_name(path, NULL, name, sizeof(name));
	site = site_list_append(s, name, NULL, path);
	if (!site)
		return -ENOMEM;
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

/* By the rule of region_open_default(). */
static int add_default_region(struct sites *s)
{
	char path[REGION_DEFAULT_BYTES];
	struct file_identity id;

	region_default_path(path);
	if (site_list_identify(path, &id) < 0)
		return 0;
	if (region_is_strangers(&id, geteuid())) {
		site_list_note(&s->strangers, path);
		return 0;
	}
	return add_region(s, path) == -ENOMEM ? -ENOMEM : 0;
}

static int add_regions(struct sites *s, const char *pattern)
{
	_cleanup_(cleanup_glob) glob_t paths = {0};

	if (glob(pattern, 0, NULL, &paths) != 0)
		return 0;
	for (size_t i = 0; i < paths.gl_pathc; i++)
		/* what went away meanwhile, or may not be looked at, is nothing to speak of */
		if (add_region(s, paths.gl_pathv[i]) == -ENOMEM)
			return -ENOMEM;
	return 0;
}

static int look_for_regions(struct sites *s)
{
	const char *hook_path = getenv("HOOK_PATH");
	char pattern[SITE_PATH_BYTES];
	int r = add_regions(s, CONTAINERS);

	if (r == 0 && hook_path && *hook_path &&
		(size_t)snprintf(pattern, sizeof(pattern), "%s/containers/*/*.cache", hook_path) <
			sizeof(pattern))
		r = add_regions(s, pattern);
	if (r == 0)
		r = add_default_region(s);
	return r ? r : site_mappings_add(s);
}

static int find(struct sites *sites, bool has_regions, struct err *err)
{
	const char *named = getenv("VGPU_STATE");
	bool is_named = named && *named;
	int r = is_named ? site_folders_add_root(sites, named, ROOT_OF_ANYBODY)
			 : site_folders_add(sites);

	if (r == 0 && has_regions && !is_named)
		r = look_for_regions(sites);
	return r < 0 ? err_set(err, -r, "look for slices: %s", strerror(-r)) : 0;
}

int sites_find(struct sites *sites, struct err *err)
{
	return find(sites, true, err);
}

int sites_find_all_folders(struct sites *sites, struct err *err)
{
	return find(sites, false, err);
}

int sites_find_folders(struct sites *sites, struct err *err)
{
	sites->most_of_user = SITES_OF_USER;
	return find(sites, false, err);
}

size_t sites_left_out(const struct sites *sites)
{
	size_t count = sites->strange_count + sites->distrusted.count + sites->strangers.count +
		       sites->misnamed.count;

	for (size_t i = 0; i < sites->accounts.count; i++) {
		const struct account *a = &sites->accounts.list[i];

		count += a->left_out + a->processes_left_out + a->has_more_lines;
	}
	return count;
}

int sites_add(struct sites *sites, const char *path, struct err *err)
{
	int r = add_region(sites, path);

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
	if (!slash || !(site->folder || site->mapped) || strcmp(site->name, slash + 1) != 0 ||
		(size_t)(slash - text) >= sizeof(user))
		return false;
	snprintf(user, sizeof(user), "%.*s", (int)(slash - text), text);
	return user_find(user, &uid) && uid == site->owner;
}

void sites_clear(struct sites *sites)
{
	for (size_t i = 0; i < sites->count; i++)
		site_list_clear(&sites->list[i]);
	free(sites->list);
	accounts_clear(&sites->accounts);
	*sites = SITES_NULL;
}
