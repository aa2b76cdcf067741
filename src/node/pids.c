/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PID here of a process of another PID namespace.
 *
 * The last number of NSpid in /proc/PID/status is the process's own, and the namespace's inode
 * number says which one it is meant in. That link can only be read of our own processes, or as root;
 * the start time is for all users.
 *
 * A region may name a thousand processes that never were, and there may be many regions: /proc is read once for all that are
 * looked for at a time.
 */
#include "node/pids.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "region/process.h"

/* So many times as long as it took to read, the list is good. */
#define GOOD_TIMES 10

struct process {
	uint64_t start_time;
	int pid;
	bool is_read; /* what follows; only asked for where the time agrees */
	uint32_t own_pid;
	uint64_t pid_namespace; /* 0: it cannot be read */
};

/* All processes that can be seen, by their start. */
static struct {
	struct process *list;
	size_t count, capacity;
	uint64_t good_until_ns;
} all;

/* The process's PID in its own namespace, or 0. Before it stand the process's groups, of which there may be 65536. */
static uint32_t read_own_pid(int pid)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_file_ FILE *file = NULL;
	size_t capacity = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (getline(&line, &capacity, file) > 0)
		if (strncmp(line, "NSpid:", 6) == 0)
			return (uint32_t)strtoul(strrchr(line, '\t') + 1, NULL, 10);
	return (uint32_t)pid;
}

static int compare(const void *a, const void *b)
{
	const struct process *first = a, *second = b;

	return (first->start_time > second->start_time) - (first->start_time < second->start_time);
}

static int append(int pid, uint64_t start_time)
{
	if (all.count == all.capacity) {
		size_t capacity = all.capacity ? 2 * all.capacity : 512;
		struct process *list = reallocarray(all.list, capacity, sizeof(*list));

		if (!list)
			return -1;
		all.list = list;
		all.capacity = capacity;
	}
	all.list[all.count++] = (struct process){.pid = pid, .start_time = start_time};
	return 0;
}

static void read_all(void)
{
	uint64_t before_ns = clock_now_ns(), now_ns;
	struct process_identity seen;
	DIR *folder = opendir("/proc");

	all.count = 0;
	for (struct dirent *e = folder ? readdir(folder) : NULL; e; e = readdir(folder)) {
		int pid = isdigit((unsigned char)e->d_name[0]) ? atoi(e->d_name) : 0;

		if (pid && process_identify(pid, &seen) == 0 && append(pid, seen.start_time) < 0)
			break;
	}
	if (folder)
		closedir(folder);
	if (all.count)
		qsort(all.list, all.count, sizeof(*all.list), compare);
	now_ns = clock_now_ns();
	all.good_until_ns = now_ns + GOOD_TIMES * (now_ns - before_ns);
}

static void read_one(struct process *p)
{
	struct file_identity id;
	char path[64];

	if (p->is_read)
		return;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", p->pid);
	p->pid_namespace = file_identify_path(path, &id) < 0 ? 0 : id.inode;
	p->own_pid = read_own_pid(p->pid);
	p->is_read = true;
}

/* The first that did not start before that time. */
static size_t find_start(uint64_t start_time)
{
	size_t low = 0, high = all.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all.list[middle].start_time < start_time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Its number may have become another's since the list was read. */
static bool is_still(const struct process *p)
{
	struct process_identity seen;

	return process_identify(p->pid, &seen) == 0 && seen.start_time == p->start_time;
}

int pids_find(uint32_t own_pid, uint64_t pid_namespace, uint64_t start_time)
{
	static uint64_t own; /* a process never leaves it */

	if (!own)
		own = process_own_namespace();
	if (pid_namespace == own)
		return (int)own_pid;
	if (clock_now_ns() >= all.good_until_ns)
		read_all();
	for (size_t i = find_start(start_time);
		i < all.count && all.list[i].start_time == start_time; i++) {
		struct process *p = &all.list[i];

		read_one(p);
		if (p->own_pid == own_pid &&
			(!p->pid_namespace || p->pid_namespace == pid_namespace) && is_still(p))
			return p->pid;
	}
	return 0;
}
