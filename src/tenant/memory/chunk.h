/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of CHUNK_BYTES in which the driver places small blocks. One block has the charge for all of them; what a module brings may lie
 * there, too, and nobody names that.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

struct holding;

/*
 * One more tenant of the pointer's chunk; *ret_is_first says whether it has the charge. unnamed: charge_unnamed_since() before the
 * driver gave it. -ENOMEM.
 */
int chunk_enter(uint64_t pointer, uint64_t unnamed, bool *ret_is_first) MUST_CHECK;

/* Whether it is the last known block of a chunk in which something may lie that nobody names. */
bool chunk_is_in_doubt(uint64_t pointer, const struct holding *holding);

/* A tenant leaves that may be there still. */
void chunk_doubt(uint64_t pointer);

/* One less. False where others have a part in the chunk; else *ret_is_known says whether all that lay in it is known. */
bool chunk_leave(uint64_t pointer, const struct holding *holding, bool *ret_is_known);

void chunk_reset_after_fork(void);
