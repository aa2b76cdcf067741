/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process has begun, and how: what each hook asks first (slice/state.h). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum state_mode {
	STATE_NEW = 0, /* nothing was begun; what a child of fork() sees */
	STATE_ASIDE,   /* no quota and no books: every call goes straight to the driver */
	STATE_OPEN,    /* every charge is decided by the ledger */
	STATE_CLOSED,  /* quotas cannot be enforced: every charge is refused */
};

/* The words that a child of fork() finds as zero (see state.c). */
struct state_word {
	_Atomic uint32_t mode; /* enum state_mode */
	_Atomic uint32_t fork_reset;
	_Atomic uint32_t
		has_asked_driver; /* to initialise itself: else it was an ancestor that has */
};
extern _Atomic(struct state_word *) state_word;

/* Whether this process has entered already; a child of fork() that has not is not made to. */
static inline bool state_has_begun(void)
{
	/* relaxed, both: only to know whether to enter */
	struct state_word *word = atomic_load_explicit(&state_word, memory_order_relaxed);

	return atomic_load_explicit(&word->mode, memory_order_relaxed) != STATE_NEW;
}
