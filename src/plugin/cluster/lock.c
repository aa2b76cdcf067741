/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's lock on a node. */
#include "plugin/cluster/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The text between two places, where it is not empty and fits. */
static bool take(const char *from, const char *to, char *ret_text, size_t size)
{
	return to > from && (size_t)snprintf(ret_text, size, "%.*s", (int)(to - from), from) < size;
}

int lock_parse(const char *text, struct node_lock *ret_lock)
{
	struct node_lock lock = {.has_owner = false};
	const char *first, *second;

	if (text && strlen(text) >= sizeof(lock.text))
		return -EMSGSIZE;
	snprintf(lock.text, sizeof(lock.text), "%s", text ? text : "");
	first = strchr(lock.text, ',');
	second = first ? strchr(first + 1, ',') : NULL;
	/* the time is the scheduler's to judge */
	lock.has_owner = second && !strchr(second + 1, ',') &&
			 take(first + 1, second, lock.space, sizeof(lock.space)) &&
			 take(second + 1, second + strlen(second), lock.name, sizeof(lock.name));
	*ret_lock = lock;
	return 0;
}

bool lock_is_of(const struct node_lock *lock, const char *space, const char *name)
{
	return lock->has_owner && !strcmp(lock->space, space) && !strcmp(lock->name, name);
}
