/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When to poll whether anything has changed (limits.h), and what was found: the two words that every
 * launch asks, and that a signal's handler may set.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The gate's treatment of work; changed by limits_poll(). */
enum gate_mode {
	GATE_OFF,  /* nothing: the process is in no slice, or has no context yet */
	GATE_POLL, /* nothing but to read the clock: limits may come */
	GATE_ON,   /* it is metered */
};
extern _Atomic uint32_t gate_mode;	/* enum gate_mode */
extern _Atomic uint64_t gate_next_poll; /* in clock_ticks() */

/* Sets the next poll, by what the poll before tells of the ticks' rate; false where another thread does. Tells the time in any case. */
bool poll_is_due(uint64_t *ret_now_ns);

/* The clock at these ticks, to some us; costs 2 ns where clock_now_ns() costs 27. */
uint64_t poll_now_ns(uint64_t ticks);
