/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was looked at of each user, who can make any number of folders, processes and mappings, each of which takes time.
 *
 * A container's root has an account for each container, told by its namespace of users or of mounts. The machine's root has none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bits.h"

/* Of processes so many are looked at: many more than have a use for a device. */
#define ACCOUNT_PROCESSES 2048

/* Of all numbers together that this machine knows no user of: a user has 65536 subordinate ones, by which he may own folders. */
#define ACCOUNT_NOBODYS ((uid_t)-1)

struct account {
	uid_t user;				    /* or ACCOUNT_NOBODYS */
	uint64_t space;				    /* 0: the machine's user */
	unsigned folders, mapped, lines, processes; /* lines: mappings */
	uint64_t environment_bytes;
	unsigned left_out, processes_left_out; /* folders and mapped regions; processes */
	bool has_more_lines, has_more_environment;
};

struct accounts {
	struct account *list;
	size_t count;
};

/* The user's, made where it was missing, good until the next call; NULL without memory. */
struct account *account_find(struct accounts *accounts, uid_t user, uint64_t space);

/*
 * Counts one more process. 0 with the user (user_who_started()) and the account, or NULL for the machine's root; -ESRCH where it has ended, -E2BIG where
 * the account has too many, -ENOMEM.
 */
int account_enter(struct accounts *accounts, pid_t pid, uid_t *ret_user,
	struct account **ret_account) MUST_CHECK;

/* Fit for a zeroed one. */
void accounts_clear(struct accounts *accounts);
