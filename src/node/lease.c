/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of files, as /proc/locks shows them. */
#include "node/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "base/file.h"

pid_t lease_holder_of(dev_t device, ino_t seen_inode)
{
	unsigned major_seen, minor_seen;
	pid_t holder = 0;
	char *line = NULL;
	uint64_t inode;
	size_t size = 0;
	FILE *file;
	int pid;

	file = fopen("/proc/locks", "re");
	while (file && !holder && getline(&line, &size, file) >= 0)
		if (sscanf(line, "%*u: LEASE %*s %*s %d %x:%x:%" SCNu64, &pid, &major_seen,
			    &minor_seen, &inode) == 4 &&
			inode == seen_inode && makedev(major_seen, minor_seen) == device)
			holder = pid;
	free(line);
	if (file)
		fclose(file);
	return holder;
}

pid_t lease_holder(int folder_fd, const char *name)
{
	struct file_identity id;

	return file_identify_at(folder_fd, name, &id) < 0 ? 0
							  : lease_holder_of(id.device, id.inode);
}
