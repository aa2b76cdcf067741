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

/*
 * The same of a short while ago: all processes are read once for as many slices as are looked at then, so that many slices, and
 * processes with much of an environment, cost what they cost once.
 */
bool started_in_lately(const char *share, uid_t owner);
