/* SPDX-License-Identifier: Apache-2.0 */
/* vgpu: finds the command, runs it, and says what went wrong. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#define EXIT_FAILED 1
#define EXIT_USAGE  2

const struct command commands[] = {
#define COMMAND(name, function, arguments, summary) \
	{#name, function, arguments, summary, help_##name},
#include "cli/commands.def"
	{0},
};

const struct command *command_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

int command_refuse(struct err *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return COMMAND_E_USAGE;
}

int command_refuse_option(struct err *err, int answer, char **argv)
{
	if (answer == ':')
		return command_refuse(err, "option %s needs a value; see `vgpu help %s`",
			argv[optind - 1], argv[0]);
	if (optopt && !strncmp(argv[optind - 1], "--", 2))
		return command_refuse(err, "option %s takes no value; see `vgpu help %s`",
			argv[optind - 1], argv[0]);
	if (optopt)
		return command_refuse(
			err, "there is no option -%c; `vgpu help %s` lists them", optopt, argv[0]);
	return command_refuse(
		err, "there is no option %s; `vgpu help %s` lists them", argv[optind - 1], argv[0]);
}

void command_warn(const struct err *err)
{
	fflush(stdout);
	fprintf(stderr, "vgpu: %s\n", err->text);
}

/* The command that argv[1] asks for. */
static const struct command *choose(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
		return command_find("help");
	if (!strcmp(argv[1], "--version"))
		return command_find("version");
	return command_find(argv[1]);
}

int main(int argc, char **argv)
{
	char help[] = "help", *only_name[] = {help, NULL};
	const struct command *command = choose(argc, argv);
	struct err err = ERR_NULL;
	int r, status = 0;

	opterr = 0;
	if (!command)
		r = command_refuse(
			&err, "there is no command '%s'; `vgpu help` lists them", argv[1]);
	else if (argc < 2)
		r = command->run(1, only_name, &status, &err);
	else
		r = command->run(argc - 1, argv + 1, &status, &err);
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
