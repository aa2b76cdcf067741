/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The container that a process is in.
 *
 *	0::/system.slice/docker-<id>.scope
 *	0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-<id>.scope/container
 *	4:memory:/kubepods/burstable/pod<UID>/<id>
 */
#include "node/cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "region/process.h"

#define GROUPS_BYTES 8192
#define DIGITS	     64 /* of an id, whatever the runtime */

/* "<id>", or "docker-<id>.scope". NULL: it is no container's. */
static const char *find_id(const char *name, size_t length)
{
	static const char scope[] = ".scope";
	const size_t more = sizeof(scope) - 1;
	const char *id;

	if (length > more && strncmp(name + length - more, scope, more) == 0)
		length -= more;
	if (length < DIGITS)
		return NULL;
	id = name + length - DIGITS;
	return strspn(id, "0123456789abcdef") == DIGITS && (id == name || id[-1] == '-') ? id
											 : NULL;
}

static const char *find_outermost(const char *path, const char *end)
{
	const char *id = NULL;

	while (!id && path < end && *path == '/') {
		const char *name = path + 1;

		path = name + strcspn(name, "/\n");
		id = find_id(name, (size_t)(path - name));
	}
	return id;
}

bool cgroup_parse_id(const char *text, char ret_id[CGROUP_ID_BYTES])
{
	const char *found = NULL;

	for (const char *line = text; *line; line += *line == '\n') {
		const char *end = line + strcspn(line, "\n");
		const char *path = memchr(line, ':', (size_t)(end - line));
		const char *id;

		path = path ? memchr(path + 1, ':', (size_t)(end - path - 1)) : NULL;
		id = path ? find_outermost(path + 1, end) : NULL;
		if (id && found && strncmp(id, found, DIGITS) != 0)
			return false;
		found = id ? id : found;
		line = end;
	}
	if (!found)
		return false;
	snprintf(ret_id, CGROUP_ID_BYTES, "%s", found);
	return true;
}

bool cgroup_read_id(pid_t pid, char ret_id[CGROUP_ID_BYTES])
{
	char path[64], text[GROUPS_BYTES];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)process_find_thread(pid));
	return file_read(path, text, sizeof(text), &length) == 0 && cgroup_parse_id(text, ret_id);
}
