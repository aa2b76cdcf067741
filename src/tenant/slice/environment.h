/* SPDX-License-Identifier: Apache-2.0 */
/* What this process's environment says. */
#pragma once

#include "policy/options.h"

/*
 * Reads the options with lookup (getenv's shape) and sets the log levels. What is not understood is logged with
 * the option's name, its value and what is right.
 */
void environment_read(struct options *ret_options, char *(*lookup)(const char *name));
