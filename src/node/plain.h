/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that may be asked: none of a user's, which may have a program answer, or not. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "base/bits.h"

/*
 * Whether what the descriptor names (O_PATH), which the process sees, is on a file system that is known to answer without asking a program of
 * somebody's: 0 with its type (S_IFMT), or -EMEDIUMTYPE. Asks none that is not.
 */
int plain_check(int fd, pid_t pid, unsigned *ret_type) MUST_CHECK;

/*
 * Whether the process is in a mount namespace that belongs to our user namespace: in another one a user may mount. What was opened
 * in the process's namespace before is in such a one, too: nobody comes back to one.
 */
bool plain_is_in_roots(pid_t pid);
