/* SPDX-License-Identifier: Apache-2.0 */
/* What a region is called that was found as a process's mapping. */
#include "node/site_label.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "node/cgroup.h"

#define FILE_BYTES 64 /* of "MAJOR:MINOR:INODE" */

static void write_file(const struct file_identity *id, char ret_text[FILE_BYTES])
{
	snprintf(ret_text, FILE_BYTES, "%u:%u:%" PRIu64, major(id->device), minor(id->device),
		(uint64_t)id->inode);
}

void site_label_by_file(const struct there *there, struct site_label *ret_label)
{
	char file[FILE_BYTES], id[CGROUP_ID_BYTES];

	write_file(there->identity, file);
	site_list_name(there->path ? there->path : "region",
		cgroup_read_id(there->pid, id) ? id : file, ret_label->name,
		sizeof(ret_label->name));
	snprintf(ret_label->region, sizeof(ret_label->region), "file %s", file);
}

void site_label_make(const struct there *there, unsigned *lines, unsigned most_lines,
	struct site_label *ret_label)
{
	char id[CGROUP_ID_BYTES];
	bool is_own, is_contained = cgroup_read_id(there->pid, id);

	/* What is in a container's own root is known by the container, and not by where the runtime has put that. */
	if (here_find(there, lines, most_lines, ret_label->region, &is_own) == 0 &&
		!(is_own && is_contained)) {
		site_list_name(ret_label->region, NULL, ret_label->name, sizeof(ret_label->name));
		return;
	}
	site_label_by_file(there, ret_label);
	if (is_contained)
		snprintf(ret_label->region, sizeof(ret_label->region), "%s:%s", id, there->path);
}
