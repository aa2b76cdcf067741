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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/utf8.h"
#include "node/mapped.h"
#include "node/mappings.h"
#include "node/root.h"
#include "node/slice.h"
#include "node/user.h"
#include "policy/share.h"
#include "region/region.h"

#define PATH_BYTES 4096
#define NAME_MOST \
	128 /* of a name that is made of a path: more than a pod's UID and a container's name are long */
/* Of the lists of all processes of a user: 500 processes with a thousand mappings each. */
#define LINES_OF_USER	 524288
#define LINES_OF_OPENING 64 /* to open one takes as long as to read so many */
#define CONTAINERS	 "/usr/local/vgpu/containers/*/*.cache"

static void cleanup_glob(glob_t *paths)
{
	globfree(paths);
}

static int identify(const char *path, struct file_identity *ret_identity)
{
	int r = file_identify_at(AT_FDCWD, path, ret_identity);

	return r < 0 || ret_identity->is_regular ? r : -EBADF;
}

/* By the kernel's link alone, or, for one's own process where one may not follow that, by its path. */
static int identify_mapped(const char *link, const char *path, struct file_identity *ret_identity)
{
	int r = mapped_identify(link, ret_identity);

	if ((r == -EPERM || r == -EACCES) && path)
		return identify(path, ret_identity);
	/* What is of another length is another program's file. */
	return r == 0 && ret_identity->size_bytes < sizeof(struct region_file) ? -ENODATA : r;
}

/* Its place among those that were found; their count where it is not among them. */
static size_t find_known(const struct sites *s, const struct file_identity *id)
{
	size_t i = 0;

	while (i < s->count && (s->list[i].inode != id->inode || s->list[i].device != id->device))
		i++;
	return i;
}

static bool is_known(const struct sites *s, const struct file_identity *id)
{
	return find_known(s, id) < s->count;
}

/* A slice is its folder: two of them may have one region, by a link. */
static bool is_known_folder(const struct sites *s, const struct file_identity *id)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->list[i].folder_inode == id->inode && s->list[i].folder_device == id->device)
			return true;
	return false;
}

/* Counts one more of the user's folders; false where that is too many. */
static bool may_look(struct sites *s, uid_t user)
{
	struct account *a = s->most_of_user && user ? account_find(&s->accounts, user, 0) : NULL;

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

static void clear_site(struct site *site)
{
	free(site->name);
	free(site->folder);
	free(site->region);
	free(site->mapped);
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
		clear_site(&site);
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

static int add_region(struct sites *s, const char *path)
{
	struct file_identity id;
	struct site *site;
	char name[256];
	int r = identify(path, &id);

	if (r < 0 || is_known(s, &id))
		return r;
	name_region(path, 0, name, sizeof(name));
	site = append(s, name, NULL, path);
	if (!site)
		return -ENOMEM;
	site->device = id.device;
	site->inode = id.inode;
	return 0;
}

void sites_note(struct sites_some *some, const char *path)
{
	if (!some->count++)
		snprintf(some->path, sizeof(some->path), "%s", path);
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
	char folder[PATH_BYTES], region[PATH_BYTES + 8];
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
		sites_note(&s->misnamed, root);
		return 0;
	}
	/* A link to another user's, whose region it stays; view_read() says so. */
	if (id.owner != owner)
		id = (struct file_identity){.inode = 0};
	site = append(s, name, folder, region);
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

/* Every slice below one root; a root that is not there, not ours to read or not its owner's has none. */
static int add_root(struct sites *s, const char *root, uid_t owner)
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
		if (user_read_number(text, &owner))
			r = add_root(s, path, owner);
	}
	return r;
}

/* By the rule of region_open_default(). */
static int add_default_region(struct sites *s)
{
	char path[REGION_DEFAULT_BYTES];
	struct file_identity id;

	region_default_path(path);
	if (identify(path, &id) < 0)
		return 0;
	if (region_is_strangers(&id, geteuid())) {
		sites_note(&s->strangers, path);
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

/*
 * Whether it may be a region's mapping, or a part of one: mlock(), mprotect(), madvise() and munmap() of a page leave several. The part with a
 * program's slot is one to write to.
 */
static bool may_be_region(const struct mapping *m)
{
	return m->path[0] == '/' && m->is_shared_and_written && m->inode &&
	       m->offset < sizeof(struct region_file);
}

static bool is_text(const char *text)
{
	uint32_t character;
	unsigned length = 1;

	while (*text && (length = utf8_read(text, &character)) != 0)
		text += length;
	return length != 0;
}

/*
 * It has gone, or stands there in another way than it is: what is no single line (proc(5)). And what is no text, of which metrics would show
 * several as one.
 */
static bool has_no_path(const struct mapping *m)
{
	static const char deleted[] = " (deleted)";
	size_t length = strlen(m->path);

	return (length > sizeof(deleted) &&
		       !strcmp(m->path + length - (sizeof(deleted) - 1), deleted)) ||
	       strstr(m->path, "\\012") || !is_text(m->path);
}

/* Files that are none, as a device's, of which a program with a context has dozens of mappings. */
#define OTHERS 8
struct others {
	struct {
		uint64_t inode;
		unsigned major, minor;
	} list[OTHERS];
	unsigned count;
};

static bool is_other(const struct others *o, const struct mapping *m)
{
	for (unsigned i = 0; i < min_u64(o->count, OTHERS); i++)
		if (o->list[i].inode == m->inode && o->list[i].major == m->device_major &&
			o->list[i].minor == m->device_minor)
			return true;
	return false;
}

static void note_other(struct others *o, const struct mapping *m)
{
	unsigned at = o->count++ % OTHERS;

	o->list[at].inode = m->inode;
	o->list[at].major = m->device_major;
	o->list[at].minor = m->device_minor;
}

/* A process whose mappings are looked at. */
struct mapper {
	pid_t pid;
	struct others others;
	uid_t user;
	bool sees_ours; /* its paths are ours: nothing of its own is mounted or is its root */
	struct account *account; /* NULL: without an end */
};

static bool sees_ours(pid_t pid)
{
	char path[64], root[4];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	length = readlink(path, root, sizeof(root));
	return length == 1 && root[0] == '/' && !user_mounts_of(pid);
}

/* Anybody may map what he may write to, before or after its owner does. In a container without root the owner is a subordinate number. */
static bool is_owners(const struct mapper *by, const struct file_identity *id)
{
	uid_t user;

	return by->user == id->owner || (user_of_process(by->pid, &user) && user == id->owner);
}

/* Whether it is the mapping by which the region is to be known. */
static bool is_better(
	const struct site *known, const struct mapper *by, const struct file_identity *id)
{
	return known->is_guess && !known->is_owners && is_owners(by, id);
}

/* The one that was found last, in the place of that one. */
static void put_last_at(struct sites *s, size_t at)
{
	clear_site(&s->list[at]);
	s->list[at] = s->list[--s->count];
}

/* Whether another region is known by it: one may be mounted over the other. */
static bool is_taken(const struct sites *s, size_t but, const char *path)
{
	for (size_t i = 0; i < s->count; i++)
		if (i != but && strcmp(s->list[i].region, path) == 0)
			return true;
	return false;
}

static int add_mapping(struct sites *s, struct mapper *by, const struct mapping *m)
{
	char link[MAPPED_PATH_BYTES], path[PATH_BYTES], name[256];
	bool is_own = by->user == geteuid(), has_name = !has_no_path(m), has_path;
	struct file_identity id;
	struct site *site;
	size_t known;
	int r;

	if (is_other(&by->others, m))
		return 0;
	if (by->account)
		by->account->lines += LINES_OF_OPENING;
	mapped_path(by->pid, m, link);
	/* One that is too long for a path has none. */
	has_path = has_name && (size_t)snprintf(path, sizeof(path), "/proc/%d/root%s", (int)by->pid,
				       m->path) < sizeof(path);
	r = identify_mapped(link, is_own && has_path ? path : NULL, &id);
	if (r == -EMEDIUMTYPE)
		s->strange_count++;
	if (r == -EBADF)
		note_other(&by->others, m);
	if (r < 0)
		return 0;
	known = find_known(s, &id);
	if (known < s->count && !is_better(&s->list[known], by, &id))
		return 0;
	if (by->account && by->account->mapped == SITES_OF_USER) {
		by->account->left_out++;
		return 0;
	}
	if (by->account)
		by->account->mapped++;
	/* The path is for people, and nothing is opened by it. */
	if (by->sees_ours && has_path)
		snprintf(path, sizeof(path), "%s", m->path);
	name_region(has_path   ? path
		    : has_name ? m->path
			       : link,
		by->sees_ours && has_path ? 0 : by->pid, name, sizeof(name));
	if (!has_path || is_taken(s, known, path))
		strcpy(path, link);
	site = append(s, name, NULL, path);
	if (!site)
		return -ENOMEM;
	site->mapped = strdup(link);
	site->is_guess = true;
	site->owner = by->user;
	site->is_owners = is_owners(by, &id);
	site->device = id.device;
	site->inode = id.inode;
	if (!site->mapped)
		return -ENOMEM;
	if (known < s->count - 1)
		put_last_at(s, known);
	return 0;
}

static int add_mappings_of(struct sites *s, pid_t pid)
{
	_cleanup_(mappings_close) struct mappings all = MAPPINGS_NULL;
	struct mapper by = {.pid = pid};
	struct mapping m;
	int r = account_enter(&s->accounts, pid, &by.user, &by.account);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (mappings_open(pid, &all) < 0)
		return 0;
	by.sees_ours = sees_ours(pid);
	while (r == 0 && mappings_next(&all, &m)) {
		if (by.account && by.account->lines++ >= LINES_OF_USER) {
			by.account->has_more_lines = true;
			break;
		}
		if (may_be_region(&m))
			r = add_mapping(s, &by, &m);
	}
	return r;
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
		r = add_default_region(s);
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
		clear_site(&sites->list[i]);
	free(sites->list);
	accounts_clear(&sites->accounts);
	*sites = SITES_NULL;
}
