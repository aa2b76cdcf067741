/* SPDX-License-Identifier: Apache-2.0 */
/* A child as of _Fork(): no handler of fork() runs, so that neither the driver nor the C library is told of it. */
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline pid_t raw_child(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}
