/* SPDX-License-Identifier: Apache-2.0 */
/* The files by which the kernel lets a process use an instance of a GPU. */
#include "plugin/host/capability.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* "gpu0/gi1/access 12", "gpu0/gi1/ci0/access 13" */
static void take_line(const char *line, const char *of_instance, const char *of_compute,
	struct capability *capability)
{
	char name[64];
	int number;

	if (sscanf(line, "%63s %d", name, &number) != 2)
		return;
	if (!strcmp(name, of_instance))
		capability->instance = number;
	else if (!strcmp(name, of_compute))
		capability->compute = number;
}

int capability_find(const char *path, unsigned minor, unsigned instance, unsigned compute,
	struct capability *ret_capability, struct err *err)
{
	struct capability capability = {-1, -1};
	char of_instance[64], of_compute[64], line[128];
	FILE *file = fopen(path, "re");

	if (!file && errno != ENOENT && errno != ENOTDIR)
		return err_set(err, errno, "read %.200s: %s", path, strerror(errno));
	snprintf(of_instance, sizeof(of_instance), "gpu%u/gi%u/access", minor, instance);
	snprintf(
		of_compute, sizeof(of_compute), "gpu%u/gi%u/ci%u/access", minor, instance, compute);
	while (file && fgets(line, sizeof(line), file))
		take_line(line, of_instance, of_compute, &capability);
	if (file)
		fclose(file);
	if (file && (capability.instance < 0 || capability.compute < 0))
		return err_set(err, ENOENT, "%.200s has no file for instance %u of /dev/nvidia%u",
			path, instance, minor);
	*ret_capability = capability;
	return 0;
}
