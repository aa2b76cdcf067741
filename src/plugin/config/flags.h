/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin's command line and environment, as texts: what they mean is in its configuration (config.h). */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/err.h"
#include "base/option_table.h"

enum flag {
#define FLAG(field, ...) FLAG_##field,
#define IGNORED(name)
#define ALIAS(name, of)
#include "plugin/config/flags.def"
	FLAG_COUNT
};

struct flags {
	const char *text[FLAG_COUNT]; /* NULL: not given */
	bool is_from_environment[FLAG_COUNT];
	bool wants_help, wants_version; /* something is only to be shown */
};

struct flag_row {
	const char *name, *variable, *otherwise, *meaning;
};
extern const struct flag_row flag_rows[FLAG_COUNT];

/*
 * Reads both; the texts stay the caller's. "--name value", "--name=value" and one dash for two are taken, and a switch
 * alone is true. The environment is asked by `lookup`, which is getenv() but in tests. -EINVAL with err set.
 */
int flags_read(int argc, char **argv, char *(*lookup)(const char *name), struct flags *ret_flags,
	struct err *err) MUST_CHECK;

/* The list of all flags with their defaults, for people. */
void flags_write_help(FILE *out);
