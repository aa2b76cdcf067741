/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as another process means them. */
#pragma once

#include <sys/types.h>

#include "base/bits.h"
#include "base/file.h"

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
 * ours. For root nothing on the way is asked that might ask a program of a user's: -EMEDIUMTYPE there (node/plain.h).
 * -errno; to be closed in any case.
 */
int far_open(pid_t pid, const char *path, struct far *ret_far) MUST_CHECK;

/* What the path names, by the same rule; its last part may be a link, which is not followed. */
int far_identify(pid_t pid, const char *path, struct file_identity *ret_identity) MUST_CHECK;

/*
 * As far_open(), of a folder in which more is opened by far.path, or of what is listened at there: -EMEDIUMTYPE, for root, where a user may
 * mount something in it at any moment.
 */
int far_open_tree(pid_t pid, const char *path, struct far *ret_far) MUST_CHECK;

/* For people. */
const char *far_explain(int r);
void far_close(struct far *far);
