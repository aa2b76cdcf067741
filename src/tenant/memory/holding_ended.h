/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of a holding's charge, once it is out of its table and has no reference any more. holding.h has what others call of it.
 */
#pragma once

#include "tenant/memory/holding.h"

/* How its memory has ended. */
enum holding_ended {
	HOLDING_ENDED_SEEN,   /* it has just come back */
	HOLDING_ENDED_UNSEEN, /* the driver gave it back unseen, as its key is new memory's */
	HOLDING_ENDED_WHOLE,  /* it has, and so has all of its chunk, or its context */
};

/* Gives it back, or leaves it charged where something may keep the memory. */
void holding_end_last(uint64_t key, const struct holding *holding, enum holding_ended how);
