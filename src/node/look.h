/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes this one looks at.
 *
 * Whoever reads a process's stat, maps, environment, namespaces or links waits for its exec. That may never end: exec closes descriptors, and a file
 * of a user's own file system answers when that user likes.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether the process may be looked at; it takes no such wait. Who is not root looks at his own and at those in his namespaces of users: of others
 * the kernel shows him nothing of that.
 */
bool look_is_allowed(pid_t pid);

/* The same where one user's processes are looked for: root's have root's number. */
bool look_is_allowed_for(pid_t pid, uid_t owner);

/*
 * From now on process_identify() looks at no others, and answers() is asked before any process is looked at. One that did not answer is left out for
 * some seconds, and so are the others of a user but root of whom several did not. For a program of one thread.
 */
void look_begin(bool (*answers)(pid_t pid));

/* How many did not answer lately; *ret_first may be NULL. */
unsigned look_stuck_count(pid_t *ret_first);

/* Whether any of that user's processes was left out so. */
bool look_has_left_out(uid_t user);
