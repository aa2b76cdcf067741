/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping a slice off its devices, and letting it go on. */
#pragma once

#include <stdbool.h>

#include "base/bits.h"
#include "base/err.h"
#include "cli/evict.h"

/*
 * Adds the share's line; with is_evicting, moves the memory of the slice's processes to the host when they are
 * quiet. Where that fails the slice stays suspended, with its memory where it was. -errno with err set.
 */
int suspension_begin(const char *folder, const char *name, bool is_evicting,
	const struct evict_libraries *libraries, struct err *err) MUST_CHECK;

/* Brings back what was evicted, and takes the line away; where one process does not come back, the line stays. */
int suspension_end(const char *folder, const char *name, const struct evict_libraries *libraries,
	struct err *err) MUST_CHECK;
