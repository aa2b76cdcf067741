/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that stands for us: our signals reach it, its end is ours. */
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/err.h"

struct child {
	pid_t pid;
	sigset_t watched;
};

/*
 * Starts the program (looked for in PATH) with this process's environment and the signal mask it
 * had. From here on this process leaves its signals to child_wait(). The outcome is 0, or -errno of
 * the exec with err set: -ENOENT where there is no such program.
 */
int child_start(char **argv, struct child *ret_child, struct err *err) MUST_CHECK;

/*
 * Waits for the child's end and passes signals on to it until then. Returns its exit status, or
 * 128 and the number of the signal that ended it, as a shell does.
 */
int child_wait(const struct child *child);
