/* SPDX-License-Identifier: Apache-2.0 */
/* What dlsym() and dlvsym() do for a name that leads to us, or may lead to the driver. */
#pragma once

#include <stdbool.h>

/* The letters that a driver's names begin with. */
#define LOOKUP_START_BYTES 4

/* Whether it begins as a driver's names, or dlsym and dlvsym, do. At its end there are zeros. */
static inline bool lookup_is_drivers_start(const char start[LOOKUP_START_BYTES])
{
	if (start[0] == 'c' && start[1] == 'u')
		return true;
	if (start[0] == 'n' && start[1] == 'v' && start[2] == 'm' && start[3] == 'l')
		return true;
	return start[0] == 'd' && start[1] == 'l' && (start[2] == 's' || start[2] == 'v') &&
	       (start[3] == 'y' || start[3] == 's');
}

/*
 * The function as the program is to have it: what the C library finds for the caller, and of the driver's functions
 * ours. dlerror() speaks of this lookup. A version of NULL is any.
 */
void *lookup_for(const void *caller, void *handle, const char *symbol, const char *version);
