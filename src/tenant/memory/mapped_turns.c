/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of calls that map and unmap in one range: places for the ranges of those that are under way, apart from what is mapped
 * (mapped.c), as it knows of addresses alone.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/mapped_turns.h"

#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "tenant/driver/patience.h"

/* Ranges in which a call maps or unmaps; at most so many at once. */
#define TURNS	     64
#define TURN_WAIT_NS UINT64_C(10000000000)
#define TURN_NONE    (-1)
static struct {
	struct lock lock;
	struct turn {
		CUdeviceptr at, end; /* both 0: free */
	} places[TURNS];
} turns;

/* A free place, or TURN_NONE; false where the range is another call's. */
static bool find_place(const struct turn *own, int *ret_place)
{
	*ret_place = TURN_NONE;
	for (int i = 0; i < TURNS; i++) {
		const struct turn *other = &turns.places[i];

		if (other->at < own->end && own->at < other->end)
			return false;
		if (other->end == 0)
			*ret_place = i;
	}
	return true;
}

int mapped_turn_enter(CUdeviceptr at, uint64_t bytes)
{
	struct turn own = {.at = at, .end = at + bytes < at ? UINT64_MAX : at + bytes};
	struct patience patience = patience_begin(TURN_WAIT_NS);
	bool is_ours;
	int place;

	for (unsigned i = 0; !patience_is_over(&patience); i++) {
		if (!lock_enter_within(&turns.lock, TURN_WAIT_NS))
			return TURN_NONE;
		is_ours = find_place(&own, &place);
		if (is_ours && place != TURN_NONE)
			turns.places[place] = own;
		lock_leave(&turns.lock);
		if (is_ours)
			return place;
		lock_rest(i);
	}
	log_warn("a call that maps or unmaps memory is not waited for any longer");
	return TURN_NONE;
}

void mapped_turn_leave(const int *place)
{
	if (*place == TURN_NONE || !lock_enter_within(&turns.lock, TURN_WAIT_NS))
		return;
	turns.places[*place] = (struct turn){.end = 0};
	lock_leave(&turns.lock);
}

void mapped_turns_reset_after_fork(void)
{
	memset(&turns, 0, sizeof(turns));
}
