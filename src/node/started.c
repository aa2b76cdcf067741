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
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "node/account.h"
#include "node/look.h"
#include "node/user.h"
#include "policy/share.h"
#include "region/process.h"

#define VARIABLE "VGPU_SHARE="
/* The kernel gives no program more (fs/exec.c), but a process may say that its environment is all of its memory. */
#define ENVIRONMENT_BYTES (UINT64_C(6) << 20)
/* Longest wait, for all processes, for those that are within exec: for a moment they have no environment. */
#define EXEC_WAITS 20 /* ms */

/* Of all processes of a user together, in a list of all: 2048 with 32 KiB each. */
#define ENVIRONMENT_OF_USER (UINT64_C(64) << 20)

/* A process has one; of more than these the rest is not looked at where all processes are. */
#define SHARES_OF_PROCESS 8
/* So many times as long as it took to read, the list of all is good. */
#define GOOD_TIMES 10

/* The value of the next of its variables, or NULL. */
static const char *next_share(const char *text, size_t length, size_t *at)
{
	while (*at < length) {
		const char *variable = text + *at;

		*at += strlen(variable) + 1;
		if (strncmp(variable, VARIABLE, strlen(VARIABLE)) == 0)
			return variable + strlen(VARIABLE);
	}
	return NULL;
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

/* Whether a process's environment is read at all. */
typedef bool filter_fn(const char *pid, void *context);

/* What is done with a process and its environment; true ends the walk. */
typedef bool process_fn(const char *pid, const char *text, size_t length, void *context);

#define ANYBODY ((uid_t)-1)

/* The environment, which the caller frees; *ret_length is 0 where there is none. -ENOMEM. */
static int read_environment(const char *pid, int *waits, char **ret_text, size_t *ret_length)
{
	struct timespec pause = {.tv_nsec = 1000000};
	int r;

	while ((r = look_read(atoi(pid), "environ", ENVIRONMENT_BYTES, ret_text, ret_length)) ==
			0 &&
		!*ret_length && *waits && has_program(pid)) {
		free(*ret_text);
		*ret_text = NULL;
		nanosleep(&pause, NULL);
		(*waits)--;
	}
	if (r < 0)
		*ret_length = 0;
	return r == -ENOMEM ? r : 0;
}

/* Every process of the owner's, or of anybody, that may be looked at, until one ends the walk: true. So does a lack of memory. */
static bool walk(uid_t owner, filter_fn *is_read, process_fn *look, void *context)
{
	DIR *folder = opendir("/proc");
	bool is_found = false;
	int waits = EXEC_WAITS;

	for (struct dirent *e = folder ? readdir(folder) : NULL; e && !is_found;
		e = readdir(folder)) {
		_cleanup_free_ char *text = NULL;
		size_t length = 0;
		char pid[16];

		if (!isdigit((unsigned char)e->d_name[0]) ||
			!look_is_allowed_for(atoi(e->d_name), owner))
			continue;
		snprintf(pid, sizeof(pid), "%d", (int)process_find_thread(atoi(e->d_name)));
		if (!is_read(pid, context))
			continue;
		is_found = read_environment(pid, &waits, &text, &length) < 0 ||
			   (length && look(pid, text, length, context));
	}
	if (folder)
		closedir(folder);
	return is_found;
}

struct search {
	const char *share;
	uid_t owner;
};

static bool is_owners(const char *pid, void *context)
{
	const struct search *search = context;

	return is_of(pid, search->owner);
}

static bool is_wanted(const char *pid, const char *text, size_t length, void *context)
{
	const struct search *search = context;
	const char *share;

	for (size_t at = 0; (share = next_share(text, length, &at));)
		if (strcmp(share, search->share) == 0)
			return is_of(pid, search->owner);
	return false;
}

bool started_in(const char *share, uid_t owner)
{
	struct search search = {share, owner};

	/* Without memory, or an answer of one of them, it cannot be known, and counts as so. */
	return walk(owner, is_owners, is_wanted, &search) || look_has_left_out(owner);
}

struct started {
	char *share;
	uid_t owner;
};

/* What any process was started in, by share and owner. */
static struct {
	struct accounts accounts;
	struct account *account; /* of the process that is looked at; NULL: without an end */
	struct started *list;
	size_t count, capacity;
	uint64_t good_until_ns;
	bool is_whole, lacks_memory;
} all;

static bool append(const char *share, uid_t owner)
{
	if (all.count == all.capacity) {
		size_t capacity = all.capacity ? 2 * all.capacity : 64;
		struct started *list = reallocarray(all.list, capacity, sizeof(*list));

		if (!list)
			return false;
		all.list = list;
		all.capacity = capacity;
	}
	all.list[all.count] = (struct started){strdup(share), owner};
	return all.list[all.count++].share;
}

/* Whether it is one of those that are looked at of its user. */
static bool may_read(const char *pid, void *context)
{
	uid_t user;
	int r = account_enter(&all.accounts, atoi(pid), &user, &all.account);

	(void)context;
	all.lacks_memory |= r == -ENOMEM;
	if (r < 0)
		return false;
	if (!all.account || all.account->environment_bytes < ENVIRONMENT_OF_USER)
		return true;
	all.account->has_more_environment = true;
	return false;
}

/* Ends the walk without memory. */
static bool note(const char *pid, const char *text, size_t length, void *context)
{
	const char *share;
	size_t at = 0;
	uid_t owner;

	(void)context;
	if (all.account)
		all.account->environment_bytes += length;
	for (unsigned i = 0; i < SHARES_OF_PROCESS && (share = next_share(text, length, &at)); i++)
		if (strlen(share) < SHARE_PATH_BYTES + 16 && user_who_started(atoi(pid), &owner) &&
			!append(share, owner))
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	const struct started *first = a, *second = b;
	int by_share = strcmp(first->share, second->share);

	return by_share ? by_share
			: (first->owner > second->owner) - (first->owner < second->owner);
}

static void read_all(void)
{
	uint64_t before_ns = clock_now_ns(), now_ns;

	for (size_t i = 0; i < all.count; i++)
		free(all.list[i].share);
	all.count = 0;
	accounts_clear(&all.accounts);
	all.lacks_memory = false;
	all.is_whole = !walk(ANYBODY, may_read, note, NULL) && !all.lacks_memory;
	if (all.is_whole && all.count)
		qsort(all.list, all.count, sizeof(*all.list), compare);
	now_ns = clock_now_ns();
	all.good_until_ns = now_ns + GOOD_TIMES * (now_ns - before_ns);
}

/* Of who has more than is looked at nobody knows: it counts as started. */
static bool is_cut(uid_t owner)
{
	if (look_has_left_out(owner))
		return true;
	for (size_t i = 0; i < all.accounts.count; i++) {
		const struct account *a = &all.accounts.list[i];

		if (a->user == owner && !a->space &&
			(a->processes_left_out || a->has_more_environment))
			return true;
	}
	return false;
}

bool started_in_lately(const char *share, uid_t owner)
{
	struct started wanted = {(char *)(uintptr_t)share, owner};

	if (clock_now_ns() >= all.good_until_ns)
		read_all();
	return !all.is_whole || is_cut(owner) ||
	       (all.count && bsearch(&wanted, all.list, all.count, sizeof(*all.list), compare));
}
