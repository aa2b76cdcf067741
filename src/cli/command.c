/* SPDX-License-Identifier: Apache-2.0 */
/* How commands refuse what they are called with, and warn. */
#include "cli/command.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

int command_refuse(struct err *err, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	return COMMAND_E_USAGE;
}

/* getopt() stays at a word of several letters, of which it knows none. */
static bool is_at_word(const char *word)
{
	return word && word[0] == '-' && word[1] == optopt && word[2];
}

int command_refuse_option(struct err *err, int answer, char **argv)
{
	if (answer == '?' && (optopt == 'h' || strcmp(argv[optind - 1], "--help") == 0))
		return COMMAND_E_HELP;
	if (answer == ':')
		return command_refuse(err, "option %s needs a value; see `vgpu help %s`",
			argv[optind - 1], argv[0]);
	if (optopt && !is_at_word(argv[optind]) && !strncmp(argv[optind - 1], "--", 2))
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
	fputs("vgpu: ", stderr);
	text_put(stderr, err->text);
	putc('\n', stderr);
}
