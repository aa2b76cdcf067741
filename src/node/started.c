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
#include "base/file.h"
#include "node/user.h"

#define VARIABLE "VGPU_SHARE="
/* The kernel gives no program more (fs/exec.c), but a process may say that its environment is all of its memory. */
#define ENVIRONMENT_BYTES (UINT64_C(6) << 20)
/* Longest wait, for all processes, for those that are within exec: for a moment they have no environment. */
#define EXEC_WAITS 20 /* ms */

enum found { FOUND_NOTHING, FOUND_OTHERS, FOUND_SHARE };

/* The text has room for ENVIRONMENT_BYTES. */
static enum found look(const char *pid, const char *share, char *text)
{
	size_t length = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.20s/environ", pid);
	if (file_read(path, text, ENVIRONMENT_BYTES, &length) < 0)
		return FOUND_OTHERS;
	for (size_t at = 0; at < length; at += strlen(text + at) + 1)
		if (strncmp(text + at, VARIABLE, strlen(VARIABLE)) == 0 &&
			strcmp(text + at + strlen(VARIABLE), share) == 0)
			return FOUND_SHARE;
	return length ? FOUND_OTHERS : FOUND_NOTHING;
}

/*
 * Anybody can put the path into an environment. Whoever began the slice began what is in it; of a setuid program the real
 * user is who called it.
 */
static bool is_of(const char *pid, uid_t owner)
{
	uid_t real;

	return user_who_started(atoi(pid), &real) && real == owner;
}

/* A thread of the kernel has no program, and neither has what has ended. */
static bool has_program(const char *pid)
{
	char path[64], target[1];

	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	return readlink(path, target, sizeof(target)) > 0;
}

bool started_in(const char *share, uid_t owner)
{
	_cleanup_free_ char *text = malloc(ENVIRONMENT_BYTES);
	struct timespec pause = {.tv_nsec = 1000000};
	DIR *folder = opendir("/proc");
	bool is_found = false;
	int waits = EXEC_WAITS;

	if (!folder)
		return false;
	/* Without memory it cannot be known, and counts as so. */
	is_found = !text;
	for (struct dirent *e = readdir(folder); e && !is_found; e = readdir(folder)) {
		enum found found = FOUND_OTHERS;

		if (isdigit((unsigned char)e->d_name[0]))
			found = look(e->d_name, share, text);
		for (; found == FOUND_NOTHING && waits > 0 && has_program(e->d_name); waits--) {
			nanosleep(&pause, NULL);
			found = look(e->d_name, share, text);
		}
		is_found = found == FOUND_SHARE && is_of(e->d_name, owner);
	}
	closedir(folder);
	return is_found;
}
