/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu: finds the command, runs it, and says what went wrong. */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/help.h"
#include "node/look.h"
#include "probe/probe.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

static const struct command commands[] = {
#define COMMAND(name, function, arguments, summary) \
	{#name, function, arguments, summary, help_##name},
#include "cli/commands.def"
	{0},
};

/* Help has to know all commands, and so is called from here. */
int command_help(int argc, char **argv, int *ret_status, struct err *err)
{
	*ret_status = 0;
	return help_show(commands, argc, argv, err);
}

static bool is_help(const char *text)
{
	return !strcmp(text, "--help") || !strcmp(text, "-h");
}

static int show_help_of(const struct command *command, struct err *err)
{
	char help[] = "help", *words[] = {help, (char *)(uintptr_t)command->name, NULL};

	return help_show(commands, 2, words, err);
}

/* The command that argv[1] asks for. */
static const struct command *choose(int argc, char **argv)
{
	if (argc < 2 || is_help(argv[1]))
		return help_find(commands, "help");
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return help_find(commands, "version");
	return help_find(commands, argv[1]);
}

int main(int argc, char **argv)
{
	char help[] = "help", *only_name[] = {help, NULL};
	const struct command *command = choose(argc, argv);
	struct err err = ERR_NULL;
	int r, status = 0;

	opterr = 0;
	look_begin(&probe_helper);
	if (!command)
		r = command_refuse(
			&err, "there is no command '%s'; `vgpu help` lists them", argv[1]);
	else if (argc < 2)
		r = command->run(1, only_name, &status, &err);
	else if (argc == 3 && is_help(argv[2]))
		r = COMMAND_E_HELP;
	else
		r = command->run(argc - 1, argv + 1, &status, &err);
	if (r == COMMAND_E_HELP)
		r = show_help_of(command, &err);
	if (r == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		r = err_set(&err, EIO, "the output could not be written whole");
	if (err.text[0])
		command_warn(&err);
	/* Called with nothing at all, it has shown its help and still done nothing. */
	if (argc < 2 && r == 0)
		return EXIT_USAGE;
	if (r)
		return r == COMMAND_E_USAGE ? EXIT_USAGE : EXIT_FAILED;
	return status;
}
