/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes were started in a slice, by the environment that they were given. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether a process of the slice's owner that we may look at was started with VGPU_SHARE naming this file. It need not have used a device yet,
 * and may be a daemon that no living process of the slice is the parent of.
 */
bool started_in(const char *share, uid_t owner);
