/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors: how a call of the program reaches us.
 *
 * A program finds a driver function in three ways: by the exported name, by dlsym()/dlvsym(), and by
 * cuGetProcAddress(). The first reaches us because we are preloaded. For the other two one rule
 * holds: ask the real resolver, then swap the answer if it is the address of a function that we
 * replace. So versions, suffixes and flags are the driver's business, and another library's
 * function that has one of these names is left alone.
 */
#pragma once

#include <stdbool.h>

/* The hook of a driver function's address, or the address itself. NULL gives NULL. */
void *swap_address(void *address);

/* Whether an attached driver has the function for which this is the hook. */
bool swap_has(const void *hook);
