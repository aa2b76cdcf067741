/* SPDX-License-Identifier: Apache-2.0 */
/* Users, by name and by number. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"

#define USER_NAME_BYTES 64

/* The user's name, or the number where there is none. */
void user_name(uid_t uid, char ret_name[USER_NAME_BYTES]);

/* Whether this machine knows a user of that number. */
bool user_is_known(uid_t uid);

/* The user that a person means by a name or a number; false where there is none. */
bool user_find(const char *text, uid_t *ret_uid);

/* A user's number as a folder's name has it: digits alone, and no zero in front. */
bool user_read_number(const char *text, uid_t *ret_uid);

/* Whose the process is: the real, effective and saved user in one. False where they differ or cannot be read. */
bool user_of_process(pid_t pid, uid_t *ret_uid);

/*
 * The real user of the process alone. Of one in a namespace of users that a user has made, as of a container without root, that user: the
 * numbers there are subordinate ones of his.
 */
bool user_who_started(pid_t pid, uid_t *ret_uid);

/* The same, and what tells a container's root from the machine's: its namespace of users, where root has made that, or of mounts; 0: nothing. */
bool user_and_space(pid_t pid, uid_t *ret_uid, uint64_t *ret_space);

/* The number of the process's namespace of mounts; 0 where that is ours, or is not told. */
uint64_t user_mounts_of(pid_t pid);
