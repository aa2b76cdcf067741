/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant that does not answer is at. */
#pragma once

#include <sys/types.h>

/*
 * Prints of each of its threads whether it runs, and where in the kernel and by which call it waits, as far as the kernel tells, and
 * where its programs and libraries lie.
 */
void stuck_print(pid_t pid);
