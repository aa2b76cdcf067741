/* SPDX-License-Identifier: Apache-2.0 */
/* The folders and files that slices of several users share, held against the model of docs/machine.md. */
#include "node/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/listing.h"
#include "node/machine_place.h"
#include "node/place.h"
#include "node/turn_folder.h"
#include "policy/share.h"
#include "region/region.h"

/* Longest list for one folder, of right ones and of wrong ones: anybody can fill it. */
#define LISTED_MOST 32

/* So many names of a folder are looked at: many more than a machine has users or slices. */
#define LOOKED_AT_MOST 4096

enum finding { RIGHT, UNSEEN, WRONG, FINDINGS };

struct listed {
	bool has_all_wrong;	      /* all that are wrong are listed */
	unsigned looked_at, left_out; /* names */
	unsigned count[FINDINGS];
};

/* Whether one more name is looked at. */
static bool may_look(struct listed *listed)
{
	if (listed->looked_at == LOOKED_AT_MOST) {
		listed->left_out++;
		return false;
	}
	listed->looked_at++;
	return true;
}

/* Whether one more is listed. */
static bool count_one(struct listed *listed, enum finding finding)
{
	if (finding == WRONG && listed->has_all_wrong)
		return true;
	return listed->count[finding]++ < LISTED_MOST;
}

static enum finding find(const struct machine_place *place)
{
	return place->wrong[0] ? WRONG : place->unseen ? UNSEEN : RIGHT;
}

/* Keeps what was found from there on, or only counts it. */
static void settle(struct machine *m, struct listed *listed, unsigned at)
{
	enum finding worst = RIGHT;

	for (unsigned i = at; i < m->count; i++)
		if (find(&m->list[i]) > worst)
			worst = find(&m->list[i]);
	if (at < m->count && !count_one(listed, worst))
		m->count = at;
}

static void tell_of(struct machine *m, const char *folder, unsigned count, const char *what,
	enum finding finding, const char *wrong)
{
	struct machine_place *place = count ? place_append(m, folder, what) : NULL;

	if (!place)
		return;
	place->more = count;
	if (finding == UNSEEN)
		place->unseen = EACCES;
	if (finding == WRONG)
		place_blame(place, "%s", wrong);
}

static void tell_more(struct machine *m, const struct listed *listed, const char *folder)
{
	for (unsigned i = 0; i < FINDINGS; i++)
		if (listed->count[i] > LISTED_MOST)
			tell_of(m, folder, listed->count[i] - LISTED_MOST, "not listed",
				(enum finding)i, "they are wrong, too");
	tell_of(m, folder, listed->left_out, "not looked at", WRONG,
		"nobody has use for so many names");
}

/* The same, for what `vgpu prepare` makes right. */
static bool look_prepared(struct machine *m, const char *path, const struct rule *rule)
{
	unsigned at = m->count;
	bool is_right = place_look(m, path, rule);

	if (at < m->count)
		m->list[at].is_prepared = true;
	return is_right;
}

/* Calls for each entry of a folder; dot names too, but for the folder itself and its parent. */
typedef void entry_fn(struct machine *m, struct listed *listed, const char *folder,
	const char *name, uid_t owner);

static bool is_roots_folder(int folder_fd, const char *name)
{
	struct stat s;

	return fstatat(folder_fd, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(s.st_mode) &&
	       s.st_uid == 0;
}

#define NOBODYS ((uid_t)-1)

/*
 * The folder is the last place of the list: what keeps it from being listed is said there. In one of root's all users may make
 * names, but no folder of root's: these come first, and all that are wrong, so that none is hidden among others.
 */
static void visit(struct machine *m, const char *path, uid_t owner, entry_fn *of)
{
	_cleanup_(listing_close) DIR *folder = listing_open(AT_FDCWD, path);
	struct listed listed[2] = {{.has_all_wrong = true}, {.count = {0}}};
	int error = folder ? 0 : errno;
	unsigned at = m->count;
	struct dirent *e;

	for (int others = owner != 0; folder && others < 2; others++) {
		rewinddir(folder);
		while ((errno = 0, e = readdir(folder))) {
			if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
				continue;
			if (owner == 0 && is_roots_folder(dirfd(folder), e->d_name) == others)
				continue;
			if (may_look(&listed[others]))
				of(m, &listed[others], path, e->d_name, owner);
		}
		error = errno ? errno : error;
	}
	/* That it is no folder, or has gone, is not said here. */
	if (error && error != ENOENT && error != ENOTDIR && error != ELOOP && at)
		place_fail(&m->list[at - 1], error);
	for (size_t i = 0; i < ARRAY_SIZE(listed); i++)
		tell_more(m, &listed[i], path);
}

static bool join(char *to, size_t size, const char *folder, const char *name)
{
	return (size_t)snprintf(to, size, "%s/%s", folder, name) < size;
}

/* A record is whosoever's: only what is none is told. */
static void look_at_record(
	struct machine *m, struct listed *listed, const char *folder, const char *name, uid_t owner)
{
	struct machine_place *place;
	char path[512];
	struct stat s;

	(void)owner;
	if (name[0] == '.' || !join(path, sizeof(path), folder, name) || lstat(path, &s) < 0 ||
		(S_ISREG(s.st_mode) && !(s.st_mode & 022) && s.st_nlink == 1) ||
		!count_one(listed, WRONG))
		return;
	place = place_append(m, path, "a slice's record of its time slices");
	if (!place)
		return;
	user_name(s.st_uid, place->user);
	place->mode = s.st_mode & 07777;
	if (!S_ISREG(s.st_mode))
		place_blame(place, "it is no regular file");
	else if (s.st_nlink != 1)
		place_blame(place, "it has another name elsewhere");
	else
		place_blame(place, "others may write to it (mode %04o)", place->mode);
}

static const struct rule device_rule = {
	.what = "time slices of a device", .kind = FOLDER, .owner = 0, .needed = 01777};

static void look_at_device(
	struct machine *m, struct listed *listed, const char *folder, const char *name, uid_t owner)
{
	unsigned at = m->count;
	char path[512];

	(void)owner;
	if (!join(path, sizeof(path), folder, name))
		return;
	look_prepared(m, path, &device_rule);
	visit(m, path, NOBODYS, look_at_record);
	settle(m, listed, at);
}

#define COMMON_LOCK ".lock" /* beside the slices (cli/edit.c) */

static void look_at_slice(
	struct machine *m, struct listed *listed, const char *folder, const char *name, uid_t owner)
{
	static const struct rule lock = {
		.what = "a lock of slices that have none", .kind = FILE_OF_OURS, .forbidden = 022};
	static const char *const files[] = {"share", "lock", "region", "evicted", "sim"};
	struct rule rule = {.what = "a slice", .kind = FOLDER, .forbidden = 022};
	bool is_lock = !strcmp(name, COMMON_LOCK);
	char path[512], file[600];
	unsigned at = m->count;
	bool goes_on;

	if (!join(path, sizeof(path), folder, name))
		return;
	if (is_lock)
		rule = lock;
	rule.owner = owner;
	goes_on = place_look(m, path, &rule) && !is_lock;
	for (size_t i = 0; goes_on && i < ARRAY_SIZE(files); i++) {
		/* The slice's processes write to the region, whoever they are. */
		const struct rule of = {.what = "a slice's file",
			.kind = FILE_OF_OURS,
			.owner = owner,
			.forbidden = strcmp(files[i], "region") ? 022 : 0};

		if (join(file, sizeof(file), path, files[i]))
			place_look_if_there(m, file, &of);
		goes_on = !m->list[m->count - 1].unseen;
	}
	settle(m, listed, at);
}

static void look_at_root(struct machine *m, const char *path, uid_t owner)
{
	const struct rule rule = {
		.what = "slices", .kind = FOLDER, .owner = owner, .forbidden = 022};
	unsigned at = m->count;

	if (place_look(m, path, &rule))
		visit(m, path, owner, look_at_slice);
	/* root's own, and a name that another user has taken */
	if (at < m->count)
		m->list[at].is_prepared = owner == 0 || m->list[at].is_taken;
}

/* The region of a user's processes that name none. Root's is for all to write to. */
static void look_at_region(struct machine *m, const char *path, uid_t owner)
{
	struct rule rule = {.what = "the region of processes that name none",
		.kind = FILE_OF_OURS,
		.owner = owner,
		.forbidden = 022};
	struct stat s;

	if (lstat(path, &s) == 0 && s.st_uid == 0)
		rule.owner = rule.forbidden = 0;
	place_look_if_there(m, path, &rule);
}

/* The one whose name has no number is whosoever's came first. */
static void look_at_first_region(struct machine *m)
{
	struct stat s;

	if (lstat(REGION_DEFAULT_PATH, &s) == 0)
		look_at_region(m, REGION_DEFAULT_PATH, s.st_uid);
}

/* What is in a folder of all users' was not to be listed. */
static void tell_unlisted(struct machine *m, const char *folder, int error)
{
	struct machine_place *place = place_append(m, folder, "what users have there");

	if (place)
		place_fail(place, error);
}

/* All names that begin so. NULL where there is none, or they cannot be listed, which is said. For globfree(). */
static glob_t *list_names(struct machine *m, const char *before, glob_t *names)
{
	_cleanup_(listing_close) DIR *listing = NULL;
	char pattern[64], folder[64];
	int r;

	snprintf(pattern, sizeof(pattern), "%s*", before);
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(before, '/') - before), before);
	listing = listing_open(AT_FDCWD, folder);
	if (!listing) {
		if (errno != ENOENT)
			tell_unlisted(m, folder, errno);
		return NULL;
	}
	r = glob(pattern, GLOB_NOSORT, NULL, names);
	if (r != 0 && r != GLOB_NOMATCH)
		tell_unlisted(m, folder, r == GLOB_NOSPACE ? ENOMEM : EIO);
	return r == 0 ? names : NULL;
}

/* Calls for what is named after a user. */
typedef void named_fn(struct machine *m, const char *path, uid_t owner);

static bool is_owners(const char *path, uid_t owner)
{
	struct stat s;

	return lstat(path, &s) == 0 && s.st_uid == owner;
}

/*
 * What is named after the user whose it is. A user can make any number of such, and one that is named after him: these
 * come first, and all of them. Names of another form are anybody's, and nothing here looks into them.
 */
static void look_at_named(struct machine *m, const char *before, const char *after, named_fn *look)
{
	struct listed listed = {.count = {0}};
	char path[512], pattern[64];
	glob_t buffer, *names = list_names(m, before, &buffer);
	uid_t owner;

	for (int taken = 0; names && taken < 2; taken++)
		for (size_t i = 0; i < names->gl_pathc; i++) {
			unsigned at = m->count;

			if (!user_read_number(names->gl_pathv[i] + strlen(before), &owner))
				continue;
			snprintf(path, sizeof(path), "%s%s", names->gl_pathv[i], after);
			if (is_owners(path, owner) == taken || (taken && !may_look(&listed)))
				continue;
			look(m, path, owner);
			if (at < m->count && m->list[at].is_missed)
				m->count = at;
			settle(m, &listed, at);
		}
	if (names)
		globfree(names);
	snprintf(pattern, sizeof(pattern), "%s*%s", before, after);
	tell_more(m, &listed, pattern);
}

static void look_at_links(struct machine *m)
{
	static const char *const files[] = {
		"/proc/sys/fs/protected_symlinks", "/proc/sys/fs/protected_hardlinks"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct machine_place *place =
			place_append(m, files[i], "the kernel's care for links");
		char text[16];
		size_t length;

		if (!place)
			return;
		place->is_missed =
			file_read(files[i], text, sizeof(text), &length) < 0 || length == 0;
		if (!place->is_missed && text[0] == '0')
			place_blame(place,
				"it is off: links of others in shared folders are followed by "
				"programs that do not take care");
	}
}

/* Programs of all users, root's too, run what these are. */
static void look_at_installed(struct machine *m)
{
	struct rule rule = {.what = "the library",
		.kind = FILE_OF_OURS,
		.owner = 0,
		.forbidden = 022,
		.needed = 0444};
	const char *named = getenv("VGPU_LIBDIR");
	struct machine_place *place;
	struct err why = ERR_NULL;
	char path[PLACE_BYTES], *last;
	ssize_t length;

	if (place_find_library(path, &why) == 0) {
		place_look(m, path, &rule);
		place_look_above(m, path);
		rule.what = "what preloads the library in containers";
		last = strrchr(path, '/');
		snprintf(last, sizeof(path) - (size_t)(last - path), "/ld.so.preload");
		place_look_if_there(m, path, &rule);
	} else if ((place = place_append(m, "libvgpu.so", rule.what))) {
		place_blame(place, "%s", why.text);
	}
	if (named && *named && snprintf(path, sizeof(path), "%s/", named) < (int)sizeof(path))
		place_look_above(m, path);
	length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[length < 0 ? 0 : length] = '\0';
	rule.what = "this program";
	rule.needed = 0;
	place_look(m, path, &rule);
	place_look_above(m, path);
}

int machine_look(struct machine *ret_machine, struct err *err)
{
	static const struct rule turns = {
		.what = "time slices", .kind = FOLDER, .owner = 0, .needed = 01777};
	static const struct rule operators = {.what = "the operator's share",
		.kind = FILE_OF_OURS,
		.owner = 0,
		.forbidden = 022,
		.needed = 0444};
	const char *named = getenv("VGPU_TURNS");
	struct machine m = {.list = NULL};

	named = named && *named ? named : TURN_FOLDER_COMMON;
	if (look_prepared(&m, named, &turns))
		visit(&m, named, 0, look_at_device);
	look_at_root(&m, "/run/vgpu", 0);
	look_at_named(&m, "/run/user/", "/vgpu", look_at_root);
	look_at_named(&m, "/tmp/vgpu-", "", look_at_root);
	look_at_first_region(&m);
	look_at_named(&m, REGION_DEFAULT_PATH ".", "", look_at_region);
	place_look(&m, SHARE_SYSTEM_PATH, &operators);
	look_at_installed(&m);
	place_look_above(&m, named);
	place_look_above(&m, "/run/user/");
	place_look_above(&m, REGION_DEFAULT_PATH);
	place_look_above(&m, TURN_FOLDER_COMMON);
	place_look_above(&m, SHARE_SYSTEM_PATH);
	look_at_links(&m);
	if (m.count == 0)
		return err_set(err, ENOMEM, "no memory");
	*ret_machine = m;
	return 0;
}

void machine_clear(struct machine *machine)
{
	free(machine->list);
	*machine = (struct machine){.list = NULL};
}
