/* SPDX-License-Identifier: Apache-2.0 */
/* uthash as it is used here: what is put into a table has `bool is_lost`, which says that there was no memory. */
#pragma once

/* Its default has cases that fall through, which clang takes for a mistake. */
#define HASH_FUNCTION HASH_FNV
/* The table says that it has no memory instead of ending the program. */
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element)       \
	do {                               \
		(element)->is_lost = true; \
	} while (0)
#include <uthash.h>
