/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holdings that were replaced in their table, and may be there still: entered by a call that may have come after the one that
 * replaces it. Each stays charged until its context ends.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

struct holding;
struct table_cursor;
struct table_entry;

/*
 * Whether a holding that was there is to be put aside for one with these flags, since then (charge_since()): not what is
 * sure to have ended, and not a chunk's part, where both have a part in one chunk.
 */
bool aside_is_due(const struct holding *gone, uint64_t since, unsigned flags);

/*
 * Under the lock of its place in its own table, so that the end of the context finds it in the one table or in the other. False
 * where it cannot be put aside: it ends with no context, one of this key is aside, or there is no memory.
 */
bool aside_put(uint64_t key, const struct holding *gone) MUST_CHECK;

/* Takes out the next one that ends with this life, as table_take_next(). */
int aside_take_next(
	uint64_t life, struct table_cursor *cursor, struct table_entry *ret_entry) MUST_CHECK;

/* For a child of fork(). */
void aside_reset_after_fork(void);
