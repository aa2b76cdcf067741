/* SPDX-License-Identifier: Apache-2.0 */
/* Places of the model and the folders above them, each judged by its rule. */
#include "node/machine_place.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct machine_place *place_append(struct machine *m, const char *path, const char *what)
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

void place_blame(struct machine_place *place, const char *format, ...)
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
	bool is_link = S_ISLNK(s->st_mode);
	bool is_kept = rule->kind == FOLDER_ABOVE && s->st_mode & S_ISVTX;
	char user[USER_NAME_BYTES];

	user_name(s->st_uid, place->user);
	place->mode = s->st_mode & 07777;
	if (is_link && rule->kind != FOLDER_ABOVE)
		place_blame(place, "it is a link, which is not followed");
	else if (rule->kind == FILE_OF_OURS && !S_ISREG(s->st_mode))
		place_blame(place, "it is no regular file");
	else if (rule->kind != FILE_OF_OURS && !is_link && !S_ISDIR(s->st_mode))
		place_blame(place, "it is no folder");
	if (s->st_uid != rule->owner) {
		user_name(rule->owner, user);
		place->is_taken = true;
		place_blame(place, "it belongs to %s and not to %s", place->user, user);
	}
	if (!is_link && !is_kept && s->st_mode & rule->forbidden)
		place_blame(place, "others may write to it (mode %04o)", place->mode);
	if (!is_link && rule->kind == FILE_OF_OURS && (s->st_mode & rule->needed) != rule->needed)
		place_blame(place, "not everybody may read it (mode %04o), right is: chmod a+r",
			place->mode);
	else if (!is_link && (s->st_mode & rule->needed) != rule->needed)
		place_blame(place, "its mode is %04o and not %04o", place->mode, rule->needed);
}

void place_fail(struct machine_place *place, int error)
{
	if (geteuid() != 0 && (error == EACCES || error == EPERM))
		place->unseen = error;
	else
		place_blame(place, "it cannot be looked at: %s", strerror(error));
}

bool place_look(struct machine *m, const char *path, const struct rule *rule)
{
	struct machine_place *place = place_append(m, path, rule->what);
	struct stat s;

	if (!place)
		return false;
	if (lstat(path, &s) < 0) {
		place->is_missed = errno == ENOENT;
		if (!place->is_missed)
			place_fail(place, errno);
		return false;
	}
	judge(place, rule, &s);
	return !place->wrong[0];
}

bool place_look_if_there(struct machine *m, const char *path, const struct rule *rule)
{
	unsigned at = m->count;
	bool is_right = place_look(m, path, rule);

	if (at < m->count && m->list[at].is_missed)
		m->count = at;
	return is_right;
}

static bool is_listed(const struct machine *m, const char *path)
{
	for (unsigned i = 0; i < m->count; i++)
		if (!m->list[i].more && !strcmp(m->list[i].path, path))
			return true;
	return false;
}

/* Whether what is below it can be looked at. Only what is wrong stays in the list, and once. */
static bool look_at_parent(struct machine *m, const char *path)
{
	static const struct rule rule = {.what = "above what is believed",
		.kind = FOLDER_ABOVE,
		.owner = 0,
		.forbidden = 022};
	unsigned at = m->count;

	if (is_listed(m, path))
		return true;
	if (place_look_if_there(m, path, &rule)) {
		m->count = at;
		return true;
	}
	return m->count > at && !m->list[at].unseen;
}

static void look_at_parents(struct machine *m, const char *path)
{
	char parent[PATH_MAX];

	if (path[0] != '/' || strlen(path) >= sizeof(parent))
		return;
	for (const char *end = path; end; end = strchr(end + 1, '/')) {
		size_t length = end == path ? 1 : (size_t)(end - path);

		memcpy(parent, path, length);
		parent[length] = '\0';
		if (!look_at_parent(m, parent))
			return;
	}
}

void place_look_above(struct machine *m, const char *path)
{
	char folder[PATH_MAX], whole[PATH_MAX + 2];
	char *last;

	look_at_parents(m, path);
	if (snprintf(folder, sizeof(folder), "%s", path) >= (int)sizeof(folder))
		return;
	last = strrchr(folder, '/');
	if (!last)
		return;
	last[last == folder] = '\0';
	if (!realpath(folder, whole))
		return;
	strcat(whole, "/");
	look_at_parents(m, whole);
}
