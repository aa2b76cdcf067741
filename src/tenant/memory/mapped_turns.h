/* SPDX-License-Identifier: Apache-2.0 */
/* The order of calls that map and unmap in one range. */
#pragma once

#include <stdint.h>

#include "gpu/abi/cuda.h"

/*
 * Calls that map or unmap in one range are one after the other: else the driver would have them in another order than the books, and
 * unmap what another entry is of. The rest of the enclosing block is such a call. One that does not come back is not waited for, and of too
 * many at once some have no place.
 */
int mapped_turn_enter(CUdeviceptr at, uint64_t bytes);
void mapped_turn_leave(const int *place);
#define MAPPED_TURN_SCOPE(at, bytes)                                                 \
	__attribute__((cleanup(mapped_turn_leave), unused)) const int mapped_turn_ = \
		mapped_turn_enter((at), (bytes))

/* For a child of fork(). */
void mapped_turns_reset_after_fork(void);
