/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's lock on a node, "TIME,NAMESPACE,POD" in an annotation: set before it binds, released after Allocate. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"

#define LOCK_ANNOTATION "hami.io/mutex.lock"

struct node_lock {
	char text[600]; /* "": the node is not locked */
	char space[64], name[254];
	bool has_owner; /* else it is a bare time, or not understood, and anybody's */
};

/* NULL: there is none. -EMSGSIZE where it is longer than any that a scheduler writes. */
int lock_parse(const char *text, struct node_lock *ret_lock) MUST_CHECK;

/* Whether it is this pod's. */
bool lock_is_of(const struct node_lock *lock, const char *space, const char *name);
