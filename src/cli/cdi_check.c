/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what vgpu cdi has mounted binds a container, and harms nobody. */
#include "cli/cdi.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/listing.h"

static bool is_strangers(const struct file_identity *folder)
{
	return folder->owner != 0 && folder->owner != geteuid();
}

/*
 * Programs of a container are not only root's, and the dynamic linker goes without a word past a list that they may not read, as it
 * does past the library: they would run without limits. What a umask has taken is to be seen before.
 */
int cdi_check_readable(const char *path, struct err *err)
{
	struct file_identity id;
	bool is_folder;
	int r = file_identify_path(path, &id);

	if (r < 0)
		return err_set(err, -r, "%.200s: %s", path, strerror(-r));
	is_folder = id.is_folder;
	if (is_strangers(&id) || (id.mode & 022))
		return err_set(err, EACCES,
			"%.200s is not root's and yours alone to write to, so others could change "
			"what binds a container; right is: chown root %.200s, and chmod go-w",
			path, path);
	if ((id.mode & 0444) == 0444 && (!is_folder || (id.mode & 0111) == 0111))
		return 0;
	return err_set(err, EACCES,
		"%.200s has the mode %04o, so programs of a container that are not root's could "
		"not "
		"read it; right is: chmod %s %.200s",
		path, id.mode & 07777, is_folder ? "a+rx" : "a+r", path);
}

/* Whether the path is the folder's, or lies below it. */
static bool is_below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 &&
	       (!path[length] || path[length] == '/' || !strcmp(folder, "/"));
}

static bool is_at(const char *path, const struct file_identity *folder)
{
	struct file_identity id;

	return file_identify_path(path, &id) == 0 && id.inode == folder->inode &&
	       id.device == folder->device;
}

/* The same by what the folders are, whatever their names: another mount of it counts, too. */
static bool lies_in(const char *path, const struct file_identity *folder)
{
	char above[PLACE_BYTES];

	snprintf(above, sizeof(above), "%s", path);
	for (char *end = above + strlen(above); end > above; end = strrchr(above, '/')) {
		*end = '\0';
		if (is_at(above, folder))
			return true;
	}
	return is_at("/", folder);
}

/* Whether others may exchange the inner one in it: with the sticky bit its owner still may. */
static bool is_anybodys(const struct file_identity *folder, const struct file_identity *inner)
{
	bool is_shared = folder->mode & 022, is_sticky = folder->mode & 01000;

	return is_strangers(folder) || (is_shared && (!is_sticky || is_strangers(inner)));
}

/* The nearest folder above it in which others may put something else in its place; false where there is none. */
static bool find_anybodys(const char *path, char ret_above[PLACE_BYTES])
{
	struct file_identity above, inner;

	snprintf(ret_above, PLACE_BYTES, "%s", path);
	if (file_identify_path(path, &inner) < 0)
		return true;
	for (char *end = strrchr(ret_above, '/'); end; end = strrchr(ret_above, '/')) {
		end[end == ret_above] = '\0';
		if (file_identify_path(ret_above, &above) < 0 || is_anybodys(&above, &inner))
			return true;
		inner = above;
		if (end == ret_above)
			break;
	}
	return false;
}

/*
 * Finds a share in the folder or in one in it; the folder itself where nobody can tell. Where others may make what they like, as among turns,
 * only what is not theirs counts.
 */
static bool find_share(const char *folder, bool is_turns, char ret_path[PLACE_BYTES + 300])
{
	_cleanup_(listing_close) DIR *entries = listing_open(AT_FDCWD, folder);
	struct file_identity id;

	snprintf(ret_path, PLACE_BYTES + 300, "%s", folder);
	if (!entries)
		return true;
	for (struct dirent *e = readdir(entries); e; e = readdir(entries)) {
		snprintf(ret_path, PLACE_BYTES + 300, "%s/%s", folder, e->d_name);
		if (!strcmp(e->d_name, "..") || file_identify_at(AT_FDCWD, ret_path, &id) < 0 ||
			!id.is_folder || (is_turns && is_strangers(&id)))
			continue;
		snprintf(ret_path, PLACE_BYTES + 300, "%s/%s/share", folder, e->d_name);
		if (file_identify_at(AT_FDCWD, ret_path, &id) == 0 && id.is_regular &&
			!(is_turns && is_strangers(&id)))
			return true;
	}
	return false;
}

/* A folder that a line names, and whose line it is. */
struct given {
	const char *path; /* "": the line is not there */
	const char *line;
	bool is_turns;
	const struct cdi_slice *of;
};

static struct given given_of(const struct cdi_slice *s, bool is_turns)
{
	return (struct given){.path = is_turns ? s->share.turns : s->books,
		.line = is_turns ? "turns" : "region",
		.is_turns = is_turns,
		.of = s};
}

/* All slices may take turns in one folder, and devices with one region are one slice. */
static bool may_be_one(const struct given *a, const struct given *b)
{
	if (a->is_turns != b->is_turns)
		return false;
	return a->is_turns || strcmp(a->of->region, b->of->region) == 0;
}

/*
 * The folder of another line that is this one, or lies below it, by whatever mount: what may write here can put a link in its place, and what
 * may read the books of others can lock them.
 */
static const char *find_nested(const struct given *g, const struct file_identity *folder,
	const struct cdi_slice *slices, int count)
{
	struct file_identity id;

	for (int i = 0; i < 2 * count; i++) {
		const struct given other = given_of(&slices[i / 2], i % 2);

		if (!*other.path || !lies_in(other.path, folder) ||
			file_identify_path(other.path, &id) < 0)
			continue;
		if (id.inode == folder->inode && id.device == folder->device &&
			may_be_one(g, &other))
			continue;
		return other.path;
	}
	return NULL;
}

/* What nothing that a container has may lie above. */
static const char *find_victim(const struct given *g, const char *whole,
	const struct file_identity *id, const struct cdi_slice *slices, int count,
	const struct cdi_library *library)
{
	const char *victims[] = {library->folder, CONTAINER_SHARES, CONTAINER_LIBRARY,
		CONTAINER_PRELOAD, "/run/vgpu", "/etc/cdi"};

	for (size_t i = 0; i < ARRAY_SIZE(victims); i++)
		if (is_below(victims[i], g->path) || is_below(victims[i], whole))
			return victims[i];
	if (lies_in(library->folder, id) || lies_in(library->list, id))
		return library->list;
	for (int i = 0; i < count; i++)
		if (lies_in(slices[i].folder, id))
			return slices[i].folder;
	return strcmp(g->path, whole) ? NULL : find_nested(g, id, slices, count);
}

static int need_own_place(const char *path, struct err *err)
{
	char above[PLACE_BYTES];

	if (!find_anybodys(path, above))
		return 0;
	return err_set(err, EINVAL,
		"%.150s would be mounted, in whose place others may put something else, as %.150s "
		"is not root's and yours alone",
		path, above);
}

/*
 * A container must not have what its own or another one's limits are made of a second time, where it may write to that, nor be able
 * to write where something is mounted from.
 */
static int check_given(const struct given *g, const struct cdi_slice *slices, int count,
	const struct cdi_library *library, struct err *err)
{
	char whole[PLACE_BYTES], share[PLACE_BYTES + 300];
	const char *victim;
	struct file_identity id;
	int r;

	if (!realpath(g->path, whole) || file_identify_path(whole, &id) < 0)
		return err_set(err, errno, "%.200s: %s", g->path, strerror(errno));
	victim = find_victim(g, whole, &id, slices, count, library);
	if (victim)
		return err_set(err, EINVAL,
			"the line `%s` would give a container all of %.150s, in which "
			"%.150s is; a folder of its own is right",
			g->line, g->path, victim);
	if (strcmp(g->path, whole) != 0)
		return err_set(err, EINVAL,
			"the line `%s` names %.150s, which is %.150s; a container could have "
			"another one by it, so that name is right",
			g->line, g->path, whole);
	if (find_share(whole, g->is_turns, share))
		return err_set(err, EINVAL,
			"the line `%s` would give a container a share, in or below %.150s: %.150s; "
			"a folder of its own is right",
			g->line, g->path, share);
	r = need_own_place(whole, err);
	if (r || g->is_turns || !(is_strangers(&id) || (id.mode & 022)))
		return r;
	return err_set(err, EACCES,
		"the line `%s` has a region made where others may put a link in its place, as "
		"%.150s is not root's and yours alone to write to; right is: chown root %.150s, "
		"and chmod go-w",
		g->line, whole, whole);
}

/* Whether a folder above it is root's or the caller's alone to enter. */
static bool is_closed(const char *path)
{
	struct file_identity id;
	char above[PLACE_BYTES + SHARE_PATH_BYTES];

	snprintf(above, sizeof(above), "%s", path);
	for (char *end = strrchr(above, '/'); end > above; end = strrchr(above, '/')) {
		*end = '\0';
		if (file_identify_path(above, &id) == 0 && !is_strangers(&id) && !(id.mode & 011))
			return true;
	}
	return false;
}

/* What is made there neither starts as somebody else's program nor opens a device. */
static bool is_harmless(const char *folder)
{
	struct statvfs s;

	return statvfs(folder, &s) == 0 && (s.f_flag & ST_NOSUID) && (s.f_flag & ST_NODEV);
}

/*
 * A container's root can give a file to which it may write the setuid bit and a program of its own, which a user of the host starts; and a user
 * of the host can cut a region short, which all may write to, and end the container's programs.
 */
static int need_closed(const struct cdi_slice *s, struct err *err)
{
	if (*s->region && !is_closed(s->region))
		return err_set(err, EACCES,
			"the region %.150s can be reached by users of this machine, who could end "
			"a container's programs by it, and start what its root makes of it; right "
			"is a folder above that its owner alone may enter (mode 0700)",
			s->region);
	if (*s->share.turns && !is_closed(s->share.turns) && !is_harmless(s->share.turns))
		return err_set(err, EACCES,
			"the folder of turns %.150s can be reached by users of this machine, who "
			"could start what a container's root makes there with the setuid bit, or "
			"open a device; "
			"right is one on a file system that is mounted `nosuid,nodev`, as /run is, "
			"or "
			"below a folder that its owner alone may enter (mode 0700)",
			s->share.turns);
	return 0;
}

/* What is another slice's in the folder; NULL: nothing. s: whose folder it is, NULL: it is for all. */
static const char *find_others(const struct file_identity *folder, const struct cdi_slice *s,
	const struct cdi_slice *slices, int count)
{
	for (int i = 0; i < count; i++) {
		if (lies_in(slices[i].folder, folder) && !(s && is_at(slices[i].folder, folder)))
			return slices[i].folder;
		for (int k = 0; k < 2 && s != &slices[i]; k++) {
			const struct given its = given_of(&slices[i], k);
			const struct given own = s ? given_of(s, k) : (struct given){.path = ""};

			if (*its.path && lies_in(its.path, folder) &&
				(strcmp(own.path, its.path) != 0 || !may_be_one(&own, &its)))
				return its.path;
		}
	}
	return NULL;
}

/* A container sees a folder whole, and may lock what it may read. */
static int check_folder(const char *folder, const struct cdi_slice *s,
	const struct cdi_slice *slices, int count, struct err *err)
{
	struct file_identity id;
	const char *others;
	int r = need_own_place(folder, err);

	if (r == 0 && (r = file_identify_path(folder, &id)) < 0)
		r = err_set(err, -r, "%.200s: %s", folder, strerror(-r));
	if (r)
		return r;
	others = find_others(&id, s, slices, count);
	if (!others)
		return 0;
	return err_set(err, EINVAL,
		"a container that has %.150s would have %.150s, too; a folder of its own is right",
		folder, others);
}

int cdi_check(const struct cdi_slice *slices, int count, const struct cdi_library *library,
	struct err *err)
{
	int r = need_own_place(library->folder, err);

	if (r == 0)
		r = need_own_place(library->list, err);
	for (int i = 0; i < count && r == 0; i++)
		r = check_folder(slices[i].folder, &slices[i], slices, count, err);
	for (int i = 0; i < 2 * count && r == 0; i++) {
		const struct given g = given_of(&slices[i / 2], i % 2);

		if (*g.path)
			r = check_given(&g, slices, count, library, err);
	}
	if (r == 0)
		r = check_folder(library->folder, NULL, slices, count, err);
	for (int i = 0; i < count && r == 0; i++)
		r = need_closed(&slices[i], err);
	return r;
}

int cdi_check_region(const struct cdi_slice *slice, struct err *err)
{
	return need_own_place(slice->region, err);
}
