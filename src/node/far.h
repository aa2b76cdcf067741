/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as another process means them. */
#pragma once

#include <sys/types.h>

#include "base/bits.h"

/* What the path leads to, by a name that leads this process there as long as the descriptor is open. */
struct far {
	int fd; /* O_PATH */
	char path[32];
};

#define FAR_NULL          \
	(struct far)      \
	{                 \
		.fd = -1, \
	}

/*
 * Links and ".." lead to nothing that is not below the process's root: in a root of its own a tenant's link to /etc would be
 * ours. -errno; to be closed in any case.
 */
int far_open(pid_t pid, const char *path, struct far *ret_far) MUST_CHECK;
void far_close(struct far *far);
