/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is, and who is believed.
 *
 * A page says a state and until when it counts. Its reader takes that with doubt: nobody is believed
 * longer than 50 ms at a stretch while others wait, and who overstays is not believed at all for a
 * while.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The order matters: from TURN_CLAIM on, a slice stands in the way of others. */
enum turn_state { TURN_FREE, TURN_WANT, TURN_CLAIM, TURN_HOLD };

/* What a page says. */
struct turn_claim {
	enum turn_state state;
	uint64_t until_ns; /* the state counts until then */
	uint64_t ticket_ns; /* since when it wants */
	uint64_t seen_ns;
	uint32_t rank;
};

/* What one reader knows of another slice's honesty; all zero is a stranger, who is believed. */
struct turn_doubt {
	uint64_t in_way_since_ns; /* first seen in the way of the reader's wish; 0: it is not */
	uint64_t ticket_ns;	  /* earliest that is believed */
	uint64_t ignored_until_ns;
	uint32_t ignored_times;
};
