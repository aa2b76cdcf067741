/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the share file of a slice that may be running. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/share.h"

struct edit {
	char name[128];		/* as a person calls it */
	int folder_fd, lock_fd; /* no lock: -1; of another user's slice alone */
	uid_t folder_owner;
	char region
		[32]; /* the region in this folder, whatever the share says; good while the folder is open */
	struct share share; /* to be changed between edit_begin() and edit_commit() */
	struct share before;
	char temporary[40]; /* the changed share's name before it is in its place */
	mode_t mode;
	uid_t owner;
	gid_t group;
};

#define EDIT_NULL                              \
	(struct edit)                          \
	{                                      \
		.folder_fd = -1, .lock_fd = -1 \
	}

#define EDIT_FOLDER_BYTES 4096

/*
 * The folder of the slice with this name, and whether it is on the simulated node. -ENOENT with err set where there is none, or it is a region
 * without a share file of ours; -EEXIST where several users have one.
 */
int edit_find(const char *name, char ret_folder[EDIT_FOLDER_BYTES], bool *ret_is_sim,
	struct err *err) MUST_CHECK;

/*
 * Takes the slice's lock, waiting for other changes of it, and reads its share. -errno with err set. The
 * caller ends it, whatever comes. Of another user's slice root waits shortly, and says that it goes on without the lock.
 */
int edit_begin(
	const char *folder, const char *name, struct edit *ret_edit, struct err *err) MUST_CHECK;

/*
 * The device's own line. One that is granted by the "*" line gets its own first, which says the same.
 * -ENODEV with err set where it is not granted.
 */
int edit_line(struct share *share, const char *uuid, struct share_device **ret_line,
	struct err *err) MUST_CHECK;

/* Puts the changed share in the place of the old one, whole. -errno with err set. */
int edit_commit(struct edit *edit, struct err *err) MUST_CHECK;

/*
 * Gives the lock back and keeps the slice's folder and lock file open; takes it again, and reads the share
 * anew. Fit for any number of rounds.
 */
void edit_unlock(struct edit *edit);
int edit_relock(struct edit *edit, struct err *err) MUST_CHECK;

/* Takes another of the slice's locks (node/slice.h), until edit_end(); the same holds for it. */
int edit_lock(struct edit *edit, int at, struct err *err) MUST_CHECK;

/* Gives the lock back; fit for EDIT_NULL. */
void edit_end(struct edit *edit);
