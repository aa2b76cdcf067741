/* SPDX-License-Identifier: Apache-2.0 */
/* Which processes this one looks at. */
#include "node/look.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "node/status.h"
#include "region/process.h"

#define STUCK_MOST    256
#define STUCK_OF_USER 4
#define STUCK_NS      UINT64_C(10000000000) /* one that did not answer is not asked again */
#define READ_BYTES    16384
#define MAP_BYTES     4096 /* of a namespace's map of users: who has more lines has them from root */

/* Whether the lines map a number to this one. What is mapped in each line is told as the reader's namespace has it. */
static bool maps_to(const char *text, uid_t user)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		uint64_t outside, count;

		line += strspn(line, "\n");
		if (sscanf(line, "%*u %" SCNu64 " %" SCNu64, &outside, &count) == 2 &&
			user >= outside && user - outside < count)
			return true;
	}
	return false;
}

/* Only who owns the number, or root, maps it. Where the map is as ours, the namespace is ours or tells nothing. */
static bool is_in_namespace_of(pid_t pid, uid_t user)
{
	char own[MAP_BYTES], its[MAP_BYTES], path[64];
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	return file_read(path, its, sizeof(its), &length) == 0 &&
	       file_read("/proc/self/uid_map", own, sizeof(own), &length) == 0 &&
	       strcmp(own, its) != 0 && maps_to(its, user);
}

static bool is_own(pid_t pid)
{
	struct file_identity folder;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	r = file_identify_at(AT_FDCWD, path, &folder);
	/* One that is not there keeps nobody waiting. */
	if (r < 0)
		return r == -ENOENT;
	return folder.owner == geteuid() || is_in_namespace_of(pid, geteuid());
}

static const struct look_helper *helper; /* NULL: none */

/* Those that did not answer. */
static struct {
	struct {
		pid_t pid;
		uid_t user;
		uint64_t until_ns;
	} list[STUCK_MOST];
	unsigned count;
} stuck;

static void forget(uint64_t now_ns)
{
	for (unsigned i = 0; i < stuck.count;)
		if (stuck.list[i].until_ns < now_ns)
			stuck.list[i] = stuck.list[--stuck.count];
		else
			i++;
}

static unsigned count_of(uid_t user)
{
	unsigned count = 0;

	for (unsigned i = 0; i < stuck.count; i++)
		count += stuck.list[i].user == user;
	return count;
}

static bool is_known_as_stuck(pid_t pid, uid_t user)
{
	if (user && count_of(user) >= STUCK_OF_USER)
		return true;
	for (unsigned i = 0; i < stuck.count; i++)
		if (stuck.list[i].pid == pid)
			return true;
	return false;
}

static void note_stuck(pid_t pid)
{
	uid_t user;

	if (stuck.count == STUCK_MOST || !status_read_real(pid, &user))
		return;
	stuck.list[stuck.count].pid = pid;
	stuck.list[stuck.count].user = user;
	stuck.list[stuck.count++].until_ns = clock_now_ns() + STUCK_NS;
}

static bool answers(pid_t pid)
{
	uid_t user = 0;

	if (!helper || pid == getpid())
		return true;
	forget(clock_now_ns());
	if (stuck.count && status_read_real(pid, &user) && is_known_as_stuck(pid, user))
		return false;
	if (helper->answers(pid))
		return true;
	note_stuck(pid);
	return false;
}

unsigned look_stuck_count(pid_t *ret_first)
{
	forget(clock_now_ns());
	if (stuck.count && ret_first)
		*ret_first = stuck.list[0].pid;
	return stuck.count;
}

bool look_has_left_out(uid_t user)
{
	return count_of(user) > 0;
}

bool look_is_allowed(pid_t pid)
{
	return (geteuid() == 0 || is_own(pid)) && answers(pid);
}

bool look_is_allowed_for(pid_t pid, uid_t owner)
{
	uid_t real;

	if (owner == 0 && (!status_read_real(pid, &real) || real != 0))
		return false;
	return look_is_allowed(pid);
}

/* Two zero bytes end the text, as an empty string ends an environment. */
static int read_all(int fd, size_t most, char **ret_text, size_t *ret_length)
{
	_cleanup_free_ char *text = NULL;
	size_t length = 0, capacity = 0;

	for (;;) {
		ssize_t got;

		if (capacity - length < READ_BYTES + 2) {
			char *more = realloc(text, 2 * capacity + READ_BYTES + 2);

			if (!more)
				return -ENOMEM;
			text = more;
			capacity = 2 * capacity + READ_BYTES + 2;
		}
		got = read(fd, text + length, READ_BYTES);
		if (got < 0)
			return -errno;
		if ((size_t)got > most - length)
			return -EFBIG;
		length += (size_t)got;
		if (got == 0)
			break;
	}
	text[length] = text[length + 1] = '\0';
	*ret_length = length;
	*ret_text = text;
	text = NULL;
	return 0;
}

int look_read_here(const char *path, size_t most, char **ret_text, size_t *ret_length)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : read_all(fd, most, ret_text, ret_length);
}

int look_read(pid_t pid, const char *name, size_t most, char **ret_text, size_t *ret_length)
{
	char path[64];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	if (!helper || pid == getpid())
		return look_read_here(path, most, ret_text, ret_length);
	r = helper->read(path, most, ret_text, ret_length);
	if (r == -ETIMEDOUT || r == -EPIPE)
		note_stuck(pid);
	return r;
}

int look_name(pid_t pid, const char *path, int *ret_fd)
{
	int r;

	if (helper && pid != getpid()) {
		r = helper->name(path, ret_fd);
		if (r == -ETIMEDOUT || r == -EPIPE)
			note_stuck(pid);
		return r;
	}
	r = open(path, O_PATH | O_CLOEXEC);
	if (r < 0)
		return -errno;
	*ret_fd = r;
	return 0;
}

void look_begin(const struct look_helper *by)
{
	helper = by;
	process_set_gate(look_is_allowed);
}
