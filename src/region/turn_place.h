/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where turn records lie: FOLDER/UUID, which many users share.
 *
 * Who owns a folder can remove and rename what others have in it. So both count only where they are no links and belong to
 * root or to this process's user, and where others may write, only with the sticky bit, by which each may remove
 * only his own. Root makes them for all (docs/machine.md).
 *
 * In a user namespace that does not know root of the machine (a container without root) every user whom it does not know has the
 * same number, 65534. So there a folder of that number's counts only where no user can have made it: it has the mark that
 * root alone can give, or is a mount of its own, or lies in one that counts and is closed.
 */
#pragma once

#include "base/bits.h"

/* Makes what is missing of FOLDER and UUID in it; what is there already stays as it is. */
void turn_place_make(const char *folder, const char *uuid);

/* Opens FOLDER. -EPERM where it does not count. */
int turn_place_open_folder(const char *folder, int *ret_fd) MUST_CHECK;

/* Marks a folder as root's. Nothing happens where this process may not, or the file system has no room for marks. */
void turn_place_mark(int folder_fd);

/* Opens FOLDER/UUID, of which nothing but the folder's own part may hold links. -EPERM where it does not count. */
int turn_place_open(const char *path, int *ret_fd) MUST_CHECK;

/*
 * Opens this user's record of that name, made where it is missing. One that is another user's is -EEXIST, but for
 * the operator's in a folder of his in which this user can make none, which is -EACCES, or -EROFS, where there is none. A file with
 * something else in it is -EBADMSG. Nothing is written into either. Nobody learns the name before the record has it.
 */
int turn_place_open_record(int folder_fd, const char *name, int *ret_fd) MUST_CHECK;
