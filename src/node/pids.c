/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PID here of a process of another PID namespace.
 *
 * The last number of NSpid in /proc/PID/status is the process's own, and the namespace's inode
 * number says which one it is meant in. That link can only be read of our own processes, or as root;
 * the start time is for all users.
 */
#include "node/pids.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "region/process.h"

/* The process's PID in its own namespace, or 0. */
static uint32_t read_own_pid(int pid)
{
	char path[64], text[8192];
	size_t length;
	char *line, *last;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (file_read(path, text, sizeof(text), &length) < 0)
		return 0;
	line = strstr(text, "\nNSpid:");
	if (!line)
		return (uint32_t)pid;
	line++;
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, '\t');
	return last ? (uint32_t)strtoul(last + 1, NULL, 10) : 0;
}

static bool is_in_namespace(int pid, uint64_t pid_namespace)
{
	struct file_identity id;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return file_identify_path(path, &id) < 0 || id.inode == pid_namespace;
}

int pids_find(uint32_t own_pid, uint64_t pid_namespace, uint64_t start_time)
{
	struct process_identity seen;
	DIR *folder;
	int found = 0;

	if (pid_namespace == process_own_namespace())
		return (int)own_pid;
	folder = opendir("/proc");
	if (!folder)
		return 0;
	for (struct dirent *e = readdir(folder); e && !found; e = readdir(folder)) {
		int pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid == 0 || process_identify(pid, &seen) != 0 || seen.start_time != start_time)
			continue;
		if (read_own_pid(pid) == own_pid && is_in_namespace(pid, pid_namespace))
			found = pid;
	}
	closedir(folder);
	return found;
}
