/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As closed_beside_free.c, and the mark of the descriptor that is closed stands on another open
 * file as well, by which that memory looks kept: no sweep finds the close.
 */
#include "tests/hostile/closed_within_free.h"

#define MARKED_BYTES (2 * MIB)
#define MARK_STEP    (2 * MIB) /* base/mark.c */

static void free_one(void)
{
	CUdeviceptr block;
	int marked;

	if (!take_both(&block))
		return;
	MUST(!descriptors_create(MARKED_BYTES, &marked));
	descriptors_set_mark(marked, descriptors_mark_of(kept), GIB / MARK_STEP);
	free_watched(block);
	close(marked);
}
