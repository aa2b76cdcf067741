/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a command's options. */
#pragma once

#include <stdbool.h>

/* An option: `--name` (is_given is set) or, where text is not NULL, `--name VALUE`. */
struct arg {
	const char *name; /* with its dashes */
	bool *is_given;	  /* may be NULL */
	const char **text;
};

/*
 * Reads argv[1..]. Options may stand anywhere and be written --name=VALUE; "--" ends them.
 * `--state PATH` is known to every command and sets $VGPU_SIM_STATE. The other words are moved to
 * the front of argv (from argv[1]); how many must lie between `least` and `most`. Returns their
 * number, or -1 after a sentence on stderr.
 */
int args_read(
	int argc, char **argv, const struct arg *args, unsigned int arg_count, int least, int most);

#define ARGS_READ(argc, argv, args, least, most) \
	args_read(argc, argv, args, sizeof(args) / sizeof((args)[0]), least, most)
