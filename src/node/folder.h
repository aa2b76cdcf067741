/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders that only this user may write to, and files in them that are whole or not there.
 *
 * No link is followed in the last part of a path, nor anywhere below a folder that was opened so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/err.h"

/*
 * Makes the folder, and folders above it where they are missing (mode 0755), and gives it the mode. What another user has
 * put in its place is moved out of the way. -errno with err set.
 */
int folder_make(const char *path, unsigned mode, int *ret_fd, struct err *err) MUST_CHECK;

/*
 * Where another user's file or folder has the path, it is moved out of the way, and an empty folder of this one's comes in its
 * place (mode 0700). For root. -errno with err set.
 */
int folder_give_back(const char *path, uid_t owner, struct err *err) MUST_CHECK;

/* Makes the folder in one of this user's. What else has the name, and is no folder, is removed. */
int folder_make_at(int folder_fd, const char *name, unsigned mode, int *ret_fd) MUST_CHECK;

/* What of a new file is on the disk when folder_put() returns. */
enum folder_sync {
	FOLDER_SYNC,	/* all of it */
	FOLDER_NO_SYNC, /* nothing: it is made again where it is missing */
};

/*
 * Writes the file anew under a name of its own (a dot, the name, ".new") and renames it: after a power cut it has the old
 * content or the new one. One caller at a time. Where the content is there already, nothing is written.
 */
int folder_put(int folder_fd, const char *name, const void *content, size_t bytes, unsigned mode,
	enum folder_sync sync) MUST_CHECK;

/* Files and folders that are to be on the disk soon, for the caller to fsync() and close: all at once take one commit's time. */
struct folder_later {
	int fds[8];
	unsigned count;
};

/*
 * The same, but that is on the disk only when what it has added to the list is. A file of a new name may be empty after a
 * power cut until then; another one has the old content or the new one. NULL: as FOLDER_SYNC.
 */
int folder_put_later(int folder_fd, const char *name, const void *content, size_t bytes,
	unsigned mode, struct folder_later *later) MUST_CHECK;

/* Adds what the descriptor is of, once. Without a list, or where it is full, it waits for the disk. */
int folder_sync_later(int fd, struct folder_later *later) MUST_CHECK;

/* Whether the file is this user's own, by no other name, with that mode and content. */
bool folder_has(int folder_fd, const char *name, const void *content, size_t bytes, unsigned mode);

/* Calls what for each name in the folder, in no order, until one is not 0, which it returns. */
int folder_each(int folder_fd, int (*what)(void *context, int folder_fd, const char *name),
	void *context) MUST_CHECK;

/* Removes hidden files, which those that were killed have left. */
int folder_sweep(int folder_fd) MUST_CHECK;

/* Removes the folder of that name with the files in it; -ENOTEMPTY where folders are in it. None is no failure. */
int folder_remove_at(int folder_fd, const char *name) MUST_CHECK;
