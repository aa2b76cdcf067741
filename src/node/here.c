/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path here of a file that another process has by a path of its own.
 *
 * A line of /proc/PID/mountinfo tells the file system, the place on it where the mount begins, and the mount's own place:
 *
 *	36 35 8:1 /srv/vgpu/a/region /etc/vgpu/region ro,noatime - ext4 /dev/sda1 rw
 *
 * Where that file system is mounted here, the rest is a path. A process may mount what it likes over anything, so what is found counts
 * only where it is the same file.
 */
#include "node/here.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "node/far.h"

#define TRIES_MOST 32 /* paths here that may be it */

/* A list of mounts that is read. */
struct mounts {
	FILE *file;
	char *line;
	size_t capacity;
	unsigned *lines, most;
};

struct mount {
	unsigned major, minor;
	const char *from, *at; /* on its file system; among the process's mounts. "" for a root */
};

static void mounts_close(struct mounts *m)
{
	if (m->file)
		fclose(m->file);
	free(m->line);
}

static int mounts_open(pid_t pid, unsigned *lines, unsigned most, struct mounts *ret_mounts)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	*ret_mounts = (struct mounts){.file = fopen(path, "re"), .lines = lines, .most = most};
	return ret_mounts->file ? 0 : -errno;
}

/* Ends the word at the text; what is behind it. */
static char *cut(char *text)
{
	text += strcspn(text, " \n");
	if (*text)
		*text++ = '\0';
	return text;
}

/* A path with a blank stands there in another way than it is; such are passed over. */
static bool read_line(char *line, struct mount *ret_mount)
{
	struct mount m;
	int at = 0;
	char *end;

	if (sscanf(line, "%*s %*s %u:%u %n", &m.major, &m.minor, &at) < 2 || at == 0)
		return false;
	end = cut(line + at);
	m.from = line + at;
	m.at = end;
	cut(end);
	if (m.from[0] != '/' || m.at[0] != '/' || strchr(m.from, '\\') || strchr(m.at, '\\'))
		return false;
	m.from += !m.from[1];
	m.at += !m.at[1];
	*ret_mount = m;
	return true;
}

static bool mounts_next(struct mounts *all, struct mount *ret_mount)
{
	while (*all->lines < all->most && getline(&all->line, &all->capacity, all->file) > 0) {
		++*all->lines;
		if (read_line(all->line, ret_mount))
			return true;
	}
	return false;
}

/* What of the path is below the folder, or "" where it is that itself; NULL: it is elsewhere. */
static const char *below(const char *path, const char *folder)
{
	size_t length = strlen(folder);

	return strncmp(path, folder, length) == 0 && (!path[length] || path[length] == '/')
		       ? path + length
		       : NULL;
}

/* The file's place on its file system, by the mount that is over all others there. */
struct place_on {
	unsigned major, minor;
	bool is_own;
	char path[HERE_PATH_BYTES];
};

static int find_place(
	const struct there *there, unsigned *lines, unsigned most, struct place_on *ret_place)
{
	_cleanup_(mounts_close) struct mounts all = {.file = NULL};
	size_t longest = 0;
	struct mount m;
	int r = mounts_open(there->pid, lines, most, &all);

	if (r < 0)
		return r;
	r = -ENOENT;
	while (mounts_next(&all, &m)) {
		const char *rest = below(there->path, m.at);

		if (!rest || strlen(m.at) < longest)
			continue;
		longest = strlen(m.at);
		ret_place->major = m.major;
		ret_place->minor = m.minor;
		ret_place->is_own = !*m.at;
		r = (size_t)snprintf(ret_place->path, sizeof(ret_place->path), "%s%s", m.from,
			    rest) < sizeof(ret_place->path)
			    ? 0
			    : -ENAMETOOLONG;
	}
	return r;
}

bool here_is_at(const char *path, const struct file_identity *identity)
{
	struct file_identity id;

	return far_identify(getpid(), path, &id) == 0 && id.device == identity->device &&
	       id.inode == identity->inode;
}

int here_find(const struct there *there, unsigned *lines, unsigned most,
	char ret_path[HERE_PATH_BYTES], bool *ret_is_own)
{
	_cleanup_(mounts_close) struct mounts all = {.file = NULL};
	struct place_on place;
	struct mount m;
	int r = find_place(there, lines, most, &place);

	if (r == 0)
		r = mounts_open(getpid(), lines, most, &all);
	for (unsigned tries = 0; r == 0 && tries < TRIES_MOST && mounts_next(&all, &m);) {
		const char *rest = m.major == place.major && m.minor == place.minor
					   ? below(place.path, m.from)
					   : NULL;

		if (!rest || (size_t)snprintf(ret_path, HERE_PATH_BYTES, "%s%s", m.at, rest) >=
				     HERE_PATH_BYTES)
			continue;
		tries++;
		if (here_is_at(ret_path, there->identity)) {
			*ret_is_own = place.is_own;
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}
