/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads that may bring the device's own runtime with nothing reserved for it: one at a time.
 *
 * It stays in its context when what brought it is unloaded again, as it did not fit. Of several loads at once each would bring it in
 * another context before the first one is judged. So they go one after the other: those of a process on a device, and those of all
 * processes of the slice where little is left. Where more is left it is reserved meanwhile.
 */
#pragma once

#include "base/bits.h"
#include "tenant/slice/state.h"

struct load_turn {
	struct device *device; /* NULL: none is held */
	bool is_slices;	       /* and no other process of the slice has one */
	uint64_t bytes;	       /* else they may, if as much is reserved for the load */
};

/* False where others take too long. load_turn_end() in every case after a success; of none it does nothing. */
bool load_turn_begin(struct device *device, struct load_turn *ret_turn) MUST_CHECK;
/* As much could not be reserved: waits for the other processes, too. */
bool load_turn_take_slices(struct load_turn *turn) MUST_CHECK;
void load_turn_end(struct load_turn *turn);

/* For a child of fork(). */
void load_turn_reset_after_fork(void);
