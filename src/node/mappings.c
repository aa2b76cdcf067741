/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a process has mapped, as /proc tells.
 *
 * The device and the inode that stand there are those of the file below, which on some file systems (overlayfs, btrfs)
 * are not what stat() says. So a file is known by how it stands in this process's own list.
 */
#include "node/mappings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/look.h"
#include "region/process.h"

/* Four times what the kernel lets a process have by default, 65,530 lines, with paths of 256 bytes. */
#define LIST_BYTES ((size_t)64 << 20)

int mappings_open(pid_t pid, struct mappings *ret_mappings)
{
	size_t length;
	int r;

	*ret_mappings = MAPPINGS_NULL;
	r = look_read(process_find_thread(pid), "maps", LIST_BYTES, &ret_mappings->text, &length);
	if (r == 0)
		ret_mappings->at = ret_mappings->text;
	return r;
}

static bool read_line(char *line, struct mapping *ret_mapping)
{
	struct mapping m = {.path = NULL};
	char access[8];
	int at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64 " %n", &m.start,
		    &m.end, access, &m.offset, &m.device_major, &m.device_minor, &m.inode,
		    &at) < 7 ||
		at == 0)
		return false;
	m.is_shared = strlen(access) == 4 && access[3] == 's';
	m.is_run = strlen(access) == 4 && access[2] == 'x';
	m.is_shared_and_written = m.is_shared && access[1] == 'w';
	m.path = line + at;
	*ret_mapping = m;
	return true;
}

bool mappings_next(struct mappings *mappings, struct mapping *ret_mapping)
{
	while (mappings->at && *mappings->at) {
		char *line = mappings->at, *end = strchrnul(line, '\n');

		mappings->at = *end ? end + 1 : end;
		*end = '\0';
		if (read_line(line, ret_mapping))
			return true;
	}
	return false;
}

void mappings_close(struct mappings *mappings)
{
	free(mappings->text);
	*mappings = MAPPINGS_NULL;
}

static bool find_own(const void *address, struct mapping *ret_mapping)
{
	struct mappings all;
	bool is_found = false;

	if (mappings_open(getpid(), &all) == 0)
		while (!is_found && mappings_next(&all, ret_mapping))
			is_found = ret_mapping->start == (uintptr_t)address;
	mappings_close(&all);
	return is_found && ret_mapping->inode;
}

bool mappings_has_file_at(pid_t pid, const void *address)
{
	struct mapping own, other;
	struct mappings all;
	bool is_found = false;

	if (!find_own(address, &own))
		return false;
	if (mappings_open(pid, &all) == 0)
		while (!is_found && mappings_next(&all, &other))
			is_found = other.is_shared_and_written && other.inode == own.inode &&
				   other.device_major == own.device_major &&
				   other.device_minor == own.device_minor &&
				   other.offset == own.offset;
	mappings_close(&all);
	return is_found;
}
