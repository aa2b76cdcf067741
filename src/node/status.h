/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells of a process at once, also while it stands still in exec (node/look.h). */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* Its real, effective and saved user. False where they cannot be read. */
bool status_read_users(pid_t pid, unsigned ret_uids[3]);

/* The real one alone. */
bool status_read_real(pid_t pid, uid_t *ret_uid);
