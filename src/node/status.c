/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells of a process at once, also while it stands still in exec. */
#include "node/status.h"

#include <stdio.h>

#include "region/process.h"

bool status_read_users(pid_t pid, unsigned ret_uids[3])
{
	char path[64], line[PROCESS_LINE_BYTES];

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	/* The name is the process's own, and no line of it is: the kernel writes what ends a line as two characters. */
	return process_read_status(path, "\nUid:", line) == 0 &&
	       sscanf(line, "%u %u %u", &ret_uids[0], &ret_uids[1], &ret_uids[2]) == 3;
}

bool status_read_real(pid_t pid, uid_t *ret_uid)
{
	unsigned uids[3];

	if (!status_read_users(pid, uids))
		return false;
	*ret_uid = uids[0];
	return true;
}
