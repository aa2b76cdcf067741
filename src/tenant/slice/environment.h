/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process's environment says: nothing else in the library reads it (tools/check_layers.py).
 *
 * A program that runs with rights which who started it has not (setuid, setgid, capabilities of its file, a change of its label) was given
 * its environment by that one. Limits count there as ever, as they lower; no path does, as what is opened and made is
 * opened and made with the program's rights, and no log level, as more lines tell of the program's memory.
 */
#pragma once

#include <stdbool.h>

#include "policy/options.h"

/* Whether it is such a program, as the kernel says it to the dynamic linker (AT_SECURE). */
bool environment_is_anothers(void);

/* The value, or NULL. For what is compared and never opened, whosever the environment is. */
const char *environment_value(const char *name);

/*
 * Reads the options with lookup (getenv's shape) and sets the log levels. What is not understood is logged with
 * the option's name, its value and what is right.
 */
void environment_read(
	struct options *ret_options, char *(*lookup)(const char *name), bool is_anothers);

/* The same of the process's own. */
void environment_read_own(struct options *ret_options);
