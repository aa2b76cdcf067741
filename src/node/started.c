/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes were started in a slice.
 *
 * A program inherits the environment in which vgpu run started the first one, however it parts from its parent. Rejected: a
 * descriptor or a lock that all of them inherit (many programs close what they do not know); a process of ours that adopts
 * what is left (one more process for each slice, and a program's parent would not be who started it).
 */
#include "node/started.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define VARIABLE "VGPU_SHARE="
/* Longest wait, for all processes, for those that are within exec: for a moment they have no environment. */
#define EXEC_WAITS 20 /* ms */

enum found { FOUND_NOTHING, FOUND_OTHERS, FOUND_SHARE };

static enum found look(const char *pid, const char *share)
{
	enum found found = FOUND_NOTHING;
	_cleanup_free_ char *entry = NULL;
	_cleanup_file_ FILE *file = NULL;
	size_t size = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	file = fopen(path, "re");
	while (file && found != FOUND_SHARE && getdelim(&entry, &size, '\0', file) > 0)
		found = strncmp(entry, VARIABLE, strlen(VARIABLE)) == 0 &&
					strcmp(entry + strlen(VARIABLE), share) == 0
				? FOUND_SHARE
				: FOUND_OTHERS;
	return found;
}

/* A thread of the kernel has no program, and neither has what has ended. */
static bool has_program(const char *pid)
{
	char path[64], target[1];

	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	return readlink(path, target, sizeof(target)) > 0;
}

bool started_in(const char *share)
{
	struct timespec pause = {.tv_nsec = 1000000};
	DIR *folder = opendir("/proc");
	bool is_found = false;
	int waits = EXEC_WAITS;

	if (!folder)
		return false;
	for (struct dirent *e = readdir(folder); e && !is_found; e = readdir(folder)) {
		enum found found = FOUND_OTHERS;

		if (isdigit((unsigned char)e->d_name[0]))
			found = look(e->d_name, share);
		for (; found == FOUND_NOTHING && waits > 0 && has_program(e->d_name); waits--) {
			nanosleep(&pause, NULL);
			found = look(e->d_name, share);
		}
		is_found = found == FOUND_SHARE;
	}
	closedir(folder);
	return is_found;
}
