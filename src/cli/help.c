/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu help and vgpu version: what the table of commands says. */
#include "cli/help.h"

#include <stdio.h>
#include <string.h>

const char help_help[] = "  --names     the commands' names alone, one a line (for completion)\n";
const char help_version[] = "";

const struct command *help_find(const struct command *commands, const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static void print_all(const struct command *commands)
{
	puts("vgpu: slices of GPUs, with a memory quota that holds\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  vgpu %-9s %s\n", c->name, c->summary);
	puts("\n`vgpu help COMMAND`, or `vgpu COMMAND --help`, says more of one. Sizes are numbers "
	     "with\n"
	     "k, m, g or t behind them, in steps of 1,024: 512m, 2.5g, 8GiB. Try:\n"
	     "  vgpu run --memory 2g -- python3 train.py\n"
	     "and without a GPU, or to see how it is, the same on a simulated one: vgpu run --sim "
	     "...");
}

static void print_one(const struct command *c)
{
	printf("vgpu %s%s%s\n  %s\n", c->name, *c->arguments ? " " : "", c->arguments, c->summary);
	if (*c->details)
		printf("\n%s", c->details);
}

int help_show(const struct command *commands, int argc, char **argv, struct err *err)
{
	const struct command *c;

	if (argc > 2)
		return command_refuse(err, "help takes one command's name, not %d", argc - 1);
	if (argc < 2) {
		print_all(commands);
		return 0;
	}
	if (!strcmp(argv[1], "--names")) {
		for (c = commands; c->name; c++)
			puts(c->name);
		return 0;
	}
	c = help_find(commands, argv[1]);
	if (!c)
		return command_refuse(
			err, "there is no command '%s'; `vgpu help` lists them", argv[1]);
	print_one(c);
	return 0;
}

int command_version(int argc, char **argv, int *ret_status, struct err *err)
{
	if (argc > 1)
		return command_refuse(err, "version takes no arguments, not '%s'", argv[1]);
	puts("vgpu " VGPU_VERSION);
	*ret_status = 0;
	return 0;
}
