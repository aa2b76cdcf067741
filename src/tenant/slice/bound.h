/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a share of the machine binds this process, and is there. */
#pragma once

#include <stdbool.h>

enum bound {
	BOUND_BY_NOTHING, /* no share, and none is meant */
	BOUND_BY_SHARE,	  /* something is at SHARE_SYSTEM_PATH, whether or not it can be read */
	BOUND_TO_MISSING, /* a share is meant to be there, and is not: all memory is refused */
};

/*
 * A share is meant to be there where its folder is a mount of its own, or the list that loads the library from SHARE_SYSTEM_LIBRARY is, as a
 * container has them, or one was when the program began. On a host without a share none is so. *ret_meant: how that is known, where it is missing; ret_meant may be NULL.
 * Context: any thread, before main() too; two system calls where no share is there.
 */
enum bound bound_find(const char **ret_meant);

/* Finds it before main(), by one thread, and keeps it for the process and its children; whether a share binds it. */
bool bound_remember(void);
