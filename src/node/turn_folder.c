/* SPDX-License-Identifier: Apache-2.0 */
/* The folder in which slices take turns on a device. */
#include "node/turn_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "node/folder.h"
#include "region/turn.h"
#include "region/turn_place.h"

/* Every user may write to it, and remove what is that user's own. */
#define TURNS_MODE 01777

#define VIEWS_MAX  256 /* slices of a device that are looked at */

static bool is_usable(const char *path)
{
	_cleanup_fd_ int fd = -1;

	/* Another user may have put a link where the common folder is to be, or made it. */
	return turn_place_open_folder(path, &fd) == 0 && access(path, W_OK | X_OK) == 0;
}

static void make(const char *path)
{
	int r = file_make_folder(AT_FDCWD, path, TURNS_MODE);

	if (r < 0 && r != -EEXIST)
		rmdir(path);
}

static int prepare(const char *path, struct err *err)
{
	_cleanup_fd_ int fd = -1;
	int r = folder_make(path, TURNS_MODE, &fd, err);

	if (r == 0)
		turn_place_mark(fd);
	return r;
}

static const char *find_path(void)
{
	const char *named = getenv("VGPU_TURNS");

	return named && *named ? named : TURN_FOLDER_COMMON;
}

/* Whether it can stand in a share. */
static bool is_path(const char *path)
{
	return path[0] == '/' && path[1] && strlen(path) < SHARE_PATH_BYTES &&
	       !strpbrk(path, " \t\r\n");
}

int turn_folder_prepare(const struct inventory *devices, struct err *err)
{
	const char *path = find_path();
	char device[SHARE_PATH_BYTES + UUID_TEXT_BYTES + 2];
	struct err next = ERR_NULL;
	int r, made;

	if (!is_path(path))
		return err_set(err, EINVAL,
			"VGPU_TURNS '%.200s': an absolute path without white space is right", path);
	r = prepare(path, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < devices->count; i++) {
		snprintf(device, sizeof(device), "%s/%s", path, devices->device[i].uuid);
		made = prepare(device, r ? &next : err);
		r = r ? r : made;
	}
	return r;
}

void turn_folder_find(char ret_path[SHARE_PATH_BYTES], struct err *ret_warning)
{
	const char *named = getenv("VGPU_TURNS"), *path = find_path();
	bool is_right = is_path(path);

	ret_path[0] = '\0';
	if (is_right)
		make(path);
	if (is_right && is_usable(path)) {
		strcpy(ret_path, path);
		return;
	}
	if (path != named) {
		struct file_identity id;

		if (file_identify_at(AT_FDCWD, path, &id) == 0)
			err_set(ret_warning, EPERM,
				"note: %s is not root's, so the slice has no time slices; `vgpu "
				"prepare`, as root, mends that",
				path);
		return;
	}
	err_set(ret_warning, EINVAL,
		"VGPU_TURNS '%.200s' is no folder of root's or this user's that can be written to, "
		"so "
		"the slice has no time slices; an absolute path without white space is right, and "
		"the "
		"sticky bit where others may write",
		path);
}

/* A record's name is the slice's, and a random part that tells it from another of that name (turns.c). */
static bool is_record_of(const char *record, const char *slice)
{
	size_t length = strlen(slice);

	return strncmp(record, slice, length) == 0 &&
	       (!record[length] || (record[length] == '.' &&
					   strspn(record + length + 1, "0123456789abcdef") == 16 &&
					   !record[length + 17]));
}

int turn_folder_count_slices(
	const char *folder, const char *uuid, const char *except, unsigned *ret_count)
{
	_cleanup_free_ struct turn_view *views = calloc(VIEWS_MAX, sizeof(*views));
	uint64_t now_ns = clock_now_ns();
	struct file_identity id;
	unsigned there = 0, count = 0;
	int r = views ? file_identify_path(folder, &id) : -ENOMEM;

	if (r == 0)
		r = turn_read(folder, uuid, now_ns, views, VIEWS_MAX, &there);
	if (r < 0 && (r != -ENOENT || file_identify_path(folder, &id) < 0))
		return r;
	for (unsigned i = 0; i < there; i++)
		count += views[i].seen_ns + TURN_ALIVE_NS > now_ns &&
			 !is_record_of(views[i].slice, except);
	*ret_count = count;
	return 0;
}
