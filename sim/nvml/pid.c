/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a PID in another namespace to ours.
 *
 * In our own namespace the PID is the same. Any other is found by looking through our /proc for the
 * process that lives in that namespace, has that PID there, and started at that tick. A process
 * that /proc does not show is none that the driver would show.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "sim/nvml/node.h"
#include "sim/nvml/pid.h"

static void close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static uint64_t namespace_of(const char *pid)
{
	char path[300];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%s/ns/pid", pid);
	return stat(path, &status) ? 0 : status.st_ino;
}

/* The last number of the NSpid line: the PID in the innermost namespace. */
static int32_t innermost_pid(const char *pid)
{
	_cleanup_file_ FILE *file = NULL;
	char line[256];

	snprintf(line, sizeof(line), "/proc/%.64s/status", pid);
	file = fopen(line, "re");
	while (file && fgets(line, sizeof(line), file)) {
		char *last;

		if (strncmp(line, "NSpid:", 6))
			continue;
		line[strcspn(line, "\n")] = '\0';
		last = strrchr(line, '\t');
		return last ? (int32_t)strtol(last + 1, NULL, 10) : 0;
	}
	return 0;
}

/* Field 22 of /proc/PID/stat, counted from the ')' since the name may hold anything. */
static uint64_t start_time(const char *pid)
{
	_cleanup_file_ FILE *file = NULL;
	char text[1024];
	char *at;

	snprintf(text, sizeof(text), "/proc/%.64s/stat", pid);
	file = fopen(text, "re");
	if (!file || !fgets(text, sizeof(text), file))
		return 0;
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

/* PIDs end below 2^22, and the sum of both parts below 2^30. */
static int32_t made_up_pid(const struct machine_process *process)
{
	return (int32_t)((process->pid_namespace % 200 + 1) << 22) + process->pid;
}

int32_t pid_seen(const struct machine_process *process)
{
	_cleanup_(close_dir) DIR *dir = NULL;
	struct dirent *row;

	if (node_is_told("host-pids"))
		return made_up_pid(process);
	if (process->pid_namespace == namespace_of("self"))
		return process->pid;
	dir = opendir("/proc");
	while (dir && (row = readdir(dir)))
		if (isdigit((unsigned char)row->d_name[0]) &&
			namespace_of(row->d_name) == process->pid_namespace &&
			innermost_pid(row->d_name) == process->pid &&
			start_time(row->d_name) == process->start_time)
			return (int32_t)strtol(row->d_name, NULL, 10);
	return 0;
}
