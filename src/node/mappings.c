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
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "region/process.h"

int mappings_open(pid_t pid, struct mappings *ret_mappings)
{
	char path[64];

	*ret_mappings = MAPPINGS_NULL;
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)process_find_thread(pid));
	ret_mappings->file = fopen(path, "re");
	return ret_mappings->file ? 0 : -errno;
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
	m.is_shared_and_written = m.is_shared && access[1] == 'w';
	m.path = line + at;
	m.path[strcspn(m.path, "\n")] = '\0';
	*ret_mapping = m;
	return true;
}

bool mappings_next(struct mappings *mappings, struct mapping *ret_mapping)
{
	while (mappings->file && getline(&mappings->line, &mappings->capacity, mappings->file) > 0)
		if (read_line(mappings->line, ret_mapping))
			return true;
	return false;
}

void mappings_close(struct mappings *mappings)
{
	if (mappings->file)
		fclose(mappings->file);
	free(mappings->line);
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
