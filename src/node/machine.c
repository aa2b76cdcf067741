/* SPDX-License-Identifier: Apache-2.0 */
/* The folders and files that slices of several users share, held against the model of docs/machine.md. */
#include "node/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/listing.h"
#include "node/place.h"
#include "node/turn_folder.h"
#include "policy/share.h"

/* What a place has to be. */
enum kind { FOLDER, FILE_OF_OURS };

struct rule {
	const char *what;
	enum kind kind;
	uid_t owner;
	unsigned forbidden; /* bits of its mode */
	unsigned needed;
};

static struct machine_place *append(struct machine *m, const char *path, const char *what)
{
	struct machine_place *place;

	if (m->count == m->capacity) {
		unsigned capacity = m->capacity ? 2 * m->capacity : 32;

		place = reallocarray(m->list, capacity, sizeof(*place));
		if (!place)
			return NULL;
		m->list = place;
		m->capacity = capacity;
	}
	place = &m->list[m->count++];
	*place = (struct machine_place){.what = what};
	snprintf(place->path, sizeof(place->path), "%s", path);
	return place;
}

static void __attribute__((format(printf, 2, 3)))
blame(struct machine_place *place, const char *format, ...)
{
	size_t used = strlen(place->wrong);
	va_list args;

	va_start(args, format);
	if (used)
		used += (size_t)snprintf(place->wrong + used, sizeof(place->wrong) - used, "; ");
	if (used < sizeof(place->wrong))
		vsnprintf(place->wrong + used, sizeof(place->wrong) - used, format, args);
	va_end(args);
}

/* Judges what is there by the rule. */
static void judge(struct machine_place *place, const struct rule *rule, const struct stat *s)
{
	char user[USER_NAME_BYTES];

	user_name(s->st_uid, place->user);
	place->mode = s->st_mode & 07777;
	if (S_ISLNK(s->st_mode))
		blame(place, "it is a link, which is not followed");
	else if (rule->kind == FOLDER && !S_ISDIR(s->st_mode))
		blame(place, "it is no folder");
	else if (rule->kind == FILE_OF_OURS && !S_ISREG(s->st_mode))
		blame(place, "it is no regular file");
	if (s->st_uid != rule->owner) {
		user_name(rule->owner, user);
		place->is_taken = true;
		blame(place, "it belongs to %s and not to %s", place->user, user);
	}
	if (!S_ISLNK(s->st_mode) && s->st_mode & rule->forbidden)
		blame(place, "others may write to it (mode %04o)", place->mode);
	if (!S_ISLNK(s->st_mode) && (s->st_mode & rule->needed) != rule->needed)
		blame(place, "its mode is %04o and not %04o", place->mode, rule->needed);
}

/* Longest list for one folder, of right ones and of wrong ones: anybody can fill it. */
#define LISTED_MOST 32

/* So many names of a folder are looked at: many more than a machine has users or slices. */
#define LOOKED_AT_MOST 4096

struct listed {
	unsigned looked_at, left_out; /* names */
	unsigned count[2];	      /* right and wrong ones */
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
static bool count_one(struct listed *listed, bool is_wrong)
{
	return listed->count[is_wrong]++ < LISTED_MOST;
}

/* Keeps what was found from there on, or only counts it. */
static void settle(struct machine *m, struct listed *listed, unsigned at)
{
	bool is_wrong = false;

	for (unsigned i = at; i < m->count; i++)
		is_wrong |= m->list[i].wrong[0] != '\0';
	if (at < m->count && !count_one(listed, is_wrong))
		m->count = at;
}

static void tell_of(
	struct machine *m, const char *folder, unsigned count, const char *what, const char *wrong)
{
	struct machine_place *place = count ? append(m, folder, what) : NULL;

	if (!place)
		return;
	place->more = count;
	if (wrong)
		blame(place, "%s", wrong);
}

static void tell_more(struct machine *m, const struct listed *listed, const char *folder)
{
	static const char *const wrong[2] = {NULL, "they are wrong, too"};

	for (unsigned i = 0; i < 2; i++)
		if (listed->count[i] > LISTED_MOST)
			tell_of(m, folder, listed->count[i] - LISTED_MOST, "not listed", wrong[i]);
	tell_of(m, folder, listed->left_out, "not looked at", "nobody has use for so many names");
}

/* Looks at one place; true where it is there and right. -ENOMEM goes unsaid: the list is short then. */
static bool look(struct machine *m, const char *path, const struct rule *rule)
{
	struct machine_place *place = append(m, path, rule->what);
	struct stat s;

	if (!place)
		return false;
	if (lstat(path, &s) < 0) {
		place->is_missed = errno == ENOENT;
		if (!place->is_missed)
			blame(place, "%s", strerror(errno));
		return false;
	}
	judge(place, rule, &s);
	return !place->wrong[0];
}

/* The same, for what `vgpu prepare` makes right. */
static bool look_prepared(struct machine *m, const char *path, const struct rule *rule)
{
	unsigned at = m->count;
	bool is_right = look(m, path, rule);

	if (at < m->count)
		m->list[at].is_prepared = true;
	return is_right;
}

/* Calls for each entry of a folder; dot names too, but for the folder itself and its parent. */
typedef void entry_fn(struct machine *m, struct listed *listed, const char *folder,
	const char *name, uid_t owner);

static void visit(struct machine *m, const char *path, uid_t owner, entry_fn *of)
{
	_cleanup_(listing_close) DIR *folder = listing_open(AT_FDCWD, path);
	struct listed listed = {.count = {0}};

	for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && may_look(&listed))
			of(m, &listed, path, e->d_name, owner);
	tell_more(m, &listed, path);
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
		!count_one(listed, true))
		return;
	place = append(m, path, "a slice's record of its time slices");
	if (!place)
		return;
	user_name(s.st_uid, place->user);
	place->mode = s.st_mode & 07777;
	if (!S_ISREG(s.st_mode))
		blame(place, "it is no regular file");
	else if (s.st_nlink != 1)
		blame(place, "it has another name elsewhere");
	else
		blame(place, "others may write to it (mode %04o)", place->mode);
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
	visit(m, path, 0, look_at_record);
	settle(m, listed, at);
}

#define COMMON_LOCK ".lock" /* beside the slices (cli/edit.c) */

static void look_at_slice(
	struct machine *m, struct listed *listed, const char *folder, const char *name, uid_t owner)
{
	static const struct rule lock = {
		.what = "a lock of slices that have none", .kind = FILE_OF_OURS, .forbidden = 022};
	static const char *const files[] = {"share", "lock", "region"};
	struct rule rule = {.what = "a slice", .kind = FOLDER, .forbidden = 022};
	bool is_lock = !strcmp(name, COMMON_LOCK);
	char path[512], file[600];
	unsigned at = m->count;
	struct stat s;
	bool is_right;

	if (!join(path, sizeof(path), folder, name))
		return;
	if (is_lock)
		rule = lock;
	rule.owner = owner;
	is_right = look(m, path, &rule);
	for (size_t i = 0; is_right && !is_lock && i < ARRAY_SIZE(files); i++) {
		/* The slice's processes write to the region, whoever they are. */
		const struct rule of = {.what = "a slice's file",
			.kind = FILE_OF_OURS,
			.owner = owner,
			.forbidden = strcmp(files[i], "region") ? 022 : 0};

		if (join(file, sizeof(file), path, files[i]) && lstat(file, &s) == 0)
			look(m, file, &of);
	}
	settle(m, listed, at);
}

static void look_at_root(struct machine *m, const char *path, uid_t owner)
{
	const struct rule rule = {
		.what = "slices", .kind = FOLDER, .owner = owner, .forbidden = 022};
	unsigned at = m->count;

	if (look(m, path, &rule))
		visit(m, path, owner, look_at_slice);
	/* root's own, and a name that another user has taken */
	if (at < m->count)
		m->list[at].is_prepared = owner == 0 || m->list[at].is_taken;
}

static bool is_owners(const char *path, uid_t owner)
{
	struct stat s;

	return lstat(path, &s) == 0 && s.st_uid == owner;
}

/* False where the name has another form: such are anybody's, and nothing here looks into them. */
static bool read_owner(const char *path, const char *before, const char *after, uid_t *ret_owner)
{
	const char *number = path + strlen(before);
	char text[16];

	snprintf(text, sizeof(text), "%.*s", (int)(strlen(number) - strlen(after)), number);
	return user_read_number(text, ret_owner);
}

/*
 * The folders whose names say whose they are. A user can make any number of them, and one that is named after him: these
 * come first, and all of them.
 */
static void look_at_roots(struct machine *m, const char *before, const char *after)
{
	struct listed listed = {.count = {0}};
	char pattern[64];
	glob_t paths;
	uid_t owner;

	snprintf(pattern, sizeof(pattern), "%s*%s", before, after);
	if (glob(pattern, 0, NULL, &paths) != 0)
		return;
	for (int taken = 0; taken < 2; taken++)
		for (size_t i = 0; i < paths.gl_pathc; i++) {
			const char *path = paths.gl_pathv[i];
			unsigned at = m->count;

			if (!read_owner(path, before, after, &owner) ||
				is_owners(path, owner) == taken || (taken && !may_look(&listed)))
				continue;
			look_at_root(m, path, owner);
			settle(m, &listed, at);
		}
	globfree(&paths);
	tell_more(m, &listed, pattern);
}

static void look_at_links(struct machine *m)
{
	static const char *const files[] = {
		"/proc/sys/fs/protected_symlinks", "/proc/sys/fs/protected_hardlinks"};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct machine_place *place = append(m, files[i], "the kernel's care for links");
		char text[16];
		size_t length;

		if (!place)
			return;
		place->is_missed =
			file_read(files[i], text, sizeof(text), &length) < 0 || length == 0;
		if (!place->is_missed && text[0] == '0')
			blame(place, "it is off: links of others in shared folders are followed by "
				     "programs that do not take care");
	}
}

int machine_look(struct machine *ret_machine, struct err *err)
{
	static const struct rule turns = {
		.what = "time slices", .kind = FOLDER, .owner = 0, .needed = 01777};
	static const struct rule operators = {
		.what = "the operator's share", .kind = FILE_OF_OURS, .owner = 0, .forbidden = 022};
	static const struct rule library = {
		.what = "the library", .kind = FILE_OF_OURS, .owner = 0, .forbidden = 022};
	const char *named = getenv("VGPU_TURNS");
	struct machine m = {.list = NULL};
	struct err ignored = ERR_NULL;
	char path[PLACE_BYTES];

	named = named && *named ? named : TURN_FOLDER_COMMON;
	if (look_prepared(&m, named, &turns))
		visit(&m, named, 0, look_at_device);
	look_at_root(&m, "/run/vgpu", 0);
	look_at_roots(&m, "/run/user/", "/vgpu");
	look_at_roots(&m, "/tmp/vgpu-", "");
	look(&m, SHARE_SYSTEM_PATH, &operators);
	if (place_find_library(path, &ignored) == 0)
		look(&m, path, &library);
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
