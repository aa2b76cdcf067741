/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes this one looks at.
 *
 * Whoever reads a process's stat, maps, environment, namespaces or links waits for its exec. That may never end: exec closes descriptors, and a file
 * of a user's own file system answers when that user likes. Who reads its maps, its environment or the links to what it has mapped waits for
 * its mmap(), too, in which the same may happen.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bits.h"

/*
 * Whether the process may be looked at; it takes no such wait. Who is not root looks at his own and at those in his namespaces of users: of others
 * the kernel shows him nothing of that.
 */
bool look_is_allowed(pid_t pid);

/* The same where one user's processes are looked for: root's have root's number. */
bool look_is_allowed_for(pid_t pid, uid_t owner);

/* Who looks in our place and can be given up (probe/probe.h). Where it did not come back in time, answers() is false and the others are -ETIMEDOUT. */
struct look_helper {
	bool (*answers)(pid_t pid);
	int (*read)(const char *path, size_t most, char **ret_text, size_t *ret_length);
	int (*name)(const char *path, int *ret_fd);
};

/*
 * From now on process_identify() looks at no others, and the helper is asked before any process is looked at. One that did not answer is left out for
 * some seconds, and so are the others of a user but root of whom several did not. For a program of one thread.
 */
void look_begin(const struct look_helper *helper);

/*
 * All of /proc/PID/NAME with two zero bytes behind it; the caller frees. -errno: -ETIMEDOUT where it did not answer, -EFBIG where it has
 * more than so many bytes.
 */
int look_read(
	pid_t pid, const char *name, size_t most, char **ret_text, size_t *ret_length) MUST_CHECK;

/* A descriptor that names what that link of the process's leads to, and opens nothing. -errno, as above. */
int look_name(pid_t pid, const char *path, int *ret_fd) MUST_CHECK;

/* The first of them without a helper, by the whole path: for one. */
int look_read_here(const char *path, size_t most, char **ret_text, size_t *ret_length) MUST_CHECK;

/* How many did not answer lately; *ret_first may be NULL. */
unsigned look_stuck_count(pid_t *ret_first);

/* Whether any of that user's processes was left out so. */
bool look_has_left_out(uid_t user);
