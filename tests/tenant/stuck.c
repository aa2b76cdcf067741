/* SPDX-License-Identifier: Apache-2.0 */
/* What a tenant that does not answer is at. */
#include "tests/tenant/stuck.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/cmocka_ready.h"

/* The file's first line, or as much of it as there is room for. */
static void read_line(int folder_fd, const char *name, char *ret_line, size_t size)
{
	_cleanup_fd_ int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, ret_line, size - 1) : -1;

	ret_line[length > 0 ? length : 0] = '\0';
	ret_line[strcspn(ret_line, "\n")] = '\0';
}

static void print_thread(int tasks_fd, const char *tid)
{
	_cleanup_fd_ int fd = openat(tasks_fd, tid, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char stat[64], wchan[64], call[128];

	read_line(fd, "stat", stat, sizeof(stat));
	read_line(fd, "wchan", wchan, sizeof(wchan));
	read_line(fd, "syscall", call, sizeof(call));
	print_message("  %s; waits in %s; call %s\n", stat, wchan, call);
}

/* Where code and data of its programs and libraries lie: what the numbers of calls point to. */
static void print_objects(pid_t pid)
{
	char path[64], line[512];
	_cleanup_file_ FILE *maps = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		if (strchr(line, '/') && (strstr(line, " r-xp ") || strstr(line, " rw-p ")))
			print_message("  %s", line);
}

void stuck_print(pid_t pid)
{
	char path[64];
	DIR *tasks;
	const struct dirent *task;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	while (tasks && (task = readdir(tasks)))
		if (task->d_name[0] != '.')
			print_thread(dirfd(tasks), task->d_name);
	if (tasks)
		closedir(tasks);
	print_objects(pid);
}
