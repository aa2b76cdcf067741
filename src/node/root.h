/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Folders of slices, of any user, and slices in them.
 *
 * A user can make what he likes where he may write. So a folder of slices counts only where it is no link, belongs to the
 * user whose it is to be, and nobody else may write to it; and a slice in it only where it belongs to the same user.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bits.h"
#include "base/err.h"

#define ROOT_OF_ANYBODY ((uid_t)-1) /* a folder that a person has named: whoever owns it */

/* -EPERM where it is another user's, or open to others. */
int root_open(const char *path, uid_t owner, int *ret_fd, uid_t *ret_owner) MUST_CHECK;

/* Opens the slice's folder; -EPERM where it is another user's. */
int root_open_slice(int root_fd, uid_t owner, const char *name, int *ret_fd) MUST_CHECK;

/* Both, by the slice's path, ROOT/NAME, as sites_find() gives it; the two belong to one user. */
int root_open_path(const char *path, int *ret_fd, uid_t *ret_owner) MUST_CHECK;

/* The same, and the folder of slices that was checked. */
int root_open_both(const char *path, int *ret_root_fd, int *ret_fd, uid_t *ret_owner) MUST_CHECK;

/* Why a slice that stands there, NAME or USER/NAME, is not taken for one; false where there is none such. */
bool root_explain_distrust(const char *name, char *ret_why, size_t size);

/*
 * Names of folders of slices in /tmp that another user has taken become empty folders of the one whose they are. For root. Of those of
 * numbers that this machine knows no user of, anybody can take four billion: so many are given back at a time, and the others are counted.
 */
#define ROOT_NAMES_OF_NOBODY 64
int root_give_back_names(unsigned *ret_left, struct err *err) MUST_CHECK;
