/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's own filter of system calls, that makes files of /proc seem absent to the library. */
#pragma once

/* Calls cuInit() in a thread in which such a call fails with ENOENT; argument -1: whatever the third argument is. */
void filtered_begin(int call, int argument);
