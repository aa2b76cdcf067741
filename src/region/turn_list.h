/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who has a record in the folder of a device.
 *
 * All users make files there, as many as they like. So each look at the folder has an end, whatever stands in it: it reads some
 * thousand names, asks of some of those that are new whose they are, opens a few of them, and fewer of one user. The next
 * look goes on where this one ended. A name that was no record is not opened again for some time.
 */
#pragma once

#include <stdint.h>

#include "region/turn.h"

/*
 * Finds records that are new, if the folder has changed and the last look is 50 ms ago: for a ms or so. Those that are gone
 * are forgotten. A slice that claims the turn does not look.
 */
void turn_list_look(struct turn *turn, uint64_t now_ns);

/*
 * Whether a peer's record is gone from the folder, in which the next look would not find it: it is forgotten at once, so that nobody waits for what
 * it said last. The last peer moves to its place.
 */
bool turn_list_forget_gone(struct turn *turn, unsigned peer);
