/* SPDX-License-Identifier: Apache-2.0 */
/* Calling vgpu from a test, with a folder of its own for everything. */
#pragma once

#include <stddef.h>

struct said {
	int status;
	char out[65536], err[16384];
};

/* cmocka's group fixture: makes the folder, and points VGPU_STATE into it. */
int tool_set_up(void **state);
int tool_tear_down(void **state);

/* A path in the test's folder; static, good until the fourth call after it. */
const char *tool_path(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Runs a shell command and keeps what it said. In it $VGPU is the program under test, and $HERE the
 * folder. The result is static, good until the next call.
 */
const struct said *tool_run(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A function of the shell: whether the process has ended, even if its parent has not waited for it yet. */
#define TOOL_HAS_ENDED "has_ended() { ! grep -q '^State:.[^ZX]' /proc/$1/status 2>/dev/null; }\n"

/* Fails the test unless the text has the part in it. */
void assert_says(const char *text, const char *part);
