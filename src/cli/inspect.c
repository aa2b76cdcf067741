/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc tells of a process that is to live under a quota. */
#include "cli/inspect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"

#define LIBRARY		  "libvgpu.so"
#define ENVIRONMENT_BYTES (UINT64_C(4) << 20)

/* Ends with an empty string, whatever the process has made of it. */
static int read_environment(int pid, char **ret_text)
{
	_cleanup_free_ char *text = calloc(1, ENVIRONMENT_BYTES + 1);
	char path[64];
	size_t length;
	int r;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	r = file_read(path, text, ENVIRONMENT_BYTES, &length);
	if (r < 0)
		return r;
	text[length] = text[length + 1] = '\0';
	*ret_text = text;
	text = NULL;
	return 0;
}

/* The environment for look_up(), whose shape is getenv()'s. */
static const char *environment;

static char *look_up(const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at && *at; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return (char *)(uintptr_t)(at + length + 1);
	return NULL;
}

const char *inspect_option(const struct inspection *inspection, const char *name)
{
	const char *value;

	environment = inspection->environment;
	value = look_up(name);
	return value && *value ? value : NULL;
}

/* The library's path in a line of /proc/PID/maps; NULL where the line is another file's. */
static char *library_in(char *line)
{
	char *path = strchr(line, '/'), *name;

	if (!path)
		return NULL;
	path[strcspn(path, "\n")] = '\0';
	name = strrchr(path, '/') + 1;
	return strncmp(name, LIBRARY, strlen(LIBRARY)) == 0 ? path : NULL;
}

static bool find_library(int pid, char *ret_path, size_t size)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_file_ FILE *maps = NULL;
	size_t capacity = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return false;
	while (getline(&line, &capacity, maps) > 0) {
		const char *library = library_in(line);

		if (!library)
			continue;
		snprintf(ret_path, size, "%s", library);
		break;
	}
	return true;
}

/* The path is the process's own: what it names may be something else for us. */
static struct inspected_share read_share(int pid, const char *path)
{
	struct inspected_share seen = {.path = path};
	char far[4096], text[SHARE_FILE_BYTES];
	struct share_fault fault;
	struct share share;
	size_t length;
	int r;

	if ((size_t)snprintf(far, sizeof(far), "/proc/%d/root%s", pid, path) >= sizeof(far))
		return (struct inspected_share){.path = path, .why = strerror(ENAMETOOLONG)};
	r = file_read(far, text, sizeof(text), &length);
	if (r == 0 && share_parse(text, length, &share, &fault) == 0)
		return seen;
	seen.why = r < 0 ? strerror(-r) : fault.why;
	seen.line = r < 0 ? 0 : fault.line;
	return seen;
}

static void read_shares(int pid, struct inspection *i)
{
	char far[96];
	struct file_identity id;

	snprintf(far, sizeof(far), "/proc/%d/root" SHARE_SYSTEM_PATH, pid);
	if (file_identify_path(far, &id) != -ENOENT)
		i->shares[0] = read_share(pid, SHARE_SYSTEM_PATH);
	if (i->options.share_path)
		i->shares[1] = read_share(pid, i->options.share_path);
}

void inspect_process(int pid, struct inspection *ret_inspection)
{
	struct inspection i = {.library = ""};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	i.is_there = pid > 0 && access(path, F_OK) == 0;
	i.is_readable = i.is_there && read_environment(pid, &i.environment) == 0 &&
			find_library(pid, i.library, sizeof(i.library));
	if (i.is_readable) {
		environment = i.environment;
		options_check(&i.options, look_up);
		read_shares(pid, &i);
	}
	*ret_inspection = i;
}

void inspect_clear(struct inspection *inspection)
{
	free(inspection->environment);
	inspection->environment = NULL;
}
