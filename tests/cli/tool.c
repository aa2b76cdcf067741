/* SPDX-License-Identifier: Apache-2.0 */
/* Calling vgpu from a test. */
#include "tests/cli/tool.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[256];

const char *tool_path(const char *format, ...)
{
	static char paths[4][512];
	static unsigned next;
	char *path = paths[next++ % 4];
	size_t used = (size_t)snprintf(path, sizeof(paths[0]), "%s/", folder);
	va_list args;

	va_start(args, format);
	vsnprintf(path + used, sizeof(paths[0]) - used, format, args);
	va_end(args);
	return path;
}

int tool_set_up(void **state)
{
	const char *base = getenv("TMPDIR");

	/* Under nohup, or behind a shell's &, they are ignored, and no shell can trap what it inherits so. */
	signal(SIGHUP, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	snprintf(folder, sizeof(folder), "%s/vgpu-cli-XXXXXX", base && *base ? base : "/tmp");
	if (!mkdtemp(folder) || mkdir(tool_path("state"), 0700) < 0)
		return -1;
	setenv("HERE", folder, 1);
	setenv("VGPU_STATE", tool_path("state"), 1);
	setenv("VGPU_TURNS", tool_path("turns"), 1);
	unsetenv("LD_PRELOAD");
	unsetenv("CUDA_VISIBLE_DEVICES");
	return 0;
}

int tool_tear_down(void **state)
{
	return system("rm -rf -- \"$HERE\"");
}

static void keep(const char *path, char *to, size_t size)
{
	FILE *file = fopen(path, "re");
	size_t length = 0;

	assert_non_null(file);
	length = fread(to, 1, size - 1, file);
	fclose(file);
	to[length] = '\0';
}

const struct said *tool_run(const char *format, ...)
{
	static struct said said;
	char command[4096], whole[5120];
	va_list args;
	int status;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	snprintf(
		whole, sizeof(whole), "{ %s\n} >\"$HERE/out\" 2>\"$HERE/err\" </dev/null", command);
	status = system(whole);
	said.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	keep(tool_path("out"), said.out, sizeof(said.out));
	keep(tool_path("err"), said.err, sizeof(said.err));
	return &said;
}

void assert_says(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text);
}
