/* SPDX-License-Identifier: Apache-2.0 */
/* A command, as vgpu's main() sees it, and common parts of commands. */
#pragma once

#include "base/bits.h"
#include "base/err.h"

enum {
	_COMMAND_E_SUCCESS = 0,
	COMMAND_E_USAGE, /* called in a way that it does not know; err says what would be right */
	COMMAND_E_HELP,	 /* it was asked what it is for */
};

/*
 * argv[0] is the command's own name. 0 with *ret_status, the program's exit status (and, where a
 * person should still be told something, err); COMMAND_E_USAGE; COMMAND_E_HELP; or -errno with err set.
 */
typedef int command_fn(int argc, char **argv, int *ret_status, struct err *err) MUST_CHECK;

#define COMMAND(name, function, arguments, summary) \
	command_fn function;                        \
	extern const char help_##name[];
#include "cli/commands.def"

struct command {
	const char *name;
	command_fn *run;
	const char *arguments, *summary;
	const char *details; /* whole lines, or "" */
};

/* Sets err and returns COMMAND_E_USAGE. */
int command_refuse(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The same for what getopt_long() answered with '?' or ':'. Options strings must begin with ':' (or
 * "+:"), and opterr be 0, so that getopt_long() does not speak itself. COMMAND_E_HELP for --help and -h.
 */
int command_refuse_option(struct err *err, int answer, char **argv);

/* Tells a person about something that does not stop the command: one line on stderr. */
void command_warn(const struct err *err);
