/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a slice says of its turn: one word in its books, which are in its region, and its record, which is their copy for
 * others. For turn.c, which has the protocol.
 */
#pragma once

#include "region/turn.h"
#include "region/turn_record.h"

/* What counts for longer is not of this start of the machine: no turn is longer, and it began a moment ago. */
#define TURN_BOOKED_NS (2 * TURN_LONGEST_NS)

static inline uint64_t turn_sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t turn_load(const _Atomic uint64_t *at)
{
	/* Sequentially consistent: what the slice's processes and the others say is one order. */
	return atomic_load(at);
}

static inline void turn_set(_Atomic uint64_t *at, uint64_t value)
{
	/* relaxed: told to others by the change of the word that follows, or only for those who watch */
	atomic_store_explicit(at, value, memory_order_relaxed);
}

static inline uint64_t turn_get(const _Atomic uint64_t *at)
{
	/* relaxed: as in turn_set() */
	return atomic_load_explicit(at, memory_order_relaxed);
}

/* Whether the word is in that state now. */
static inline bool turn_counts(uint64_t word, enum turn_state state, uint64_t now_ns)
{
	return TURN_WORD_STATE(word) == state && now_ns < TURN_WORD_UNTIL_NS(word) &&
	       TURN_WORD_UNTIL_NS(word) < now_ns + TURN_BOOKED_NS;
}

/* Until when the turn is the slice's own, although others wait. */
static inline uint64_t turn_quantum_end_ns(const struct turn *turn)
{
	return turn_get(&turn->books->since_ns) + (turn->is_substitute ? 0 : turn->quantum_ns);
}

/* Replaces the books' word, and says it to others. False where another process was faster: *word is what is there then. */
bool turn_word_change(struct turn *turn, uint64_t *word, uint64_t to);

/* Whether another program has changed the record a short time ago. */
bool turn_word_is_tampered(const struct turn *turn, uint64_t now_ns);

/* A sign of life for others; mends the record where another program has changed it. */
void turn_word_touch(struct turn *turn, uint64_t now_ns);

/*
 * Wakes those that wait for this slice in turn_wait(), or 64 of them, as they came, and 8 for the next second where there
 * were as many: the others look for its news themselves.
 */
void turn_word_wake(struct turn *turn);

/* Above the numbers of all processes of the slice. */
unsigned turn_word_process_high(const struct turn *turn);

/*
 * The latest end of work of the slice's other processes; 0: they have none. Read between a look at the word and its change: who
 * comes with work says so here before it changes the word.
 */
uint64_t turn_word_slice_busy_ns(const struct turn *turn, uint64_t now_ns);

/* Until when the turn is kept for work that ends then (turn_order_lease_ns()). */
uint64_t turn_word_lease(struct turn *turn, uint64_t now_ns, uint64_t busy_until_ns);

/*
 * Puts a hold into the word, from a claim or a hold that counts, and makes sure that it counted until
 * everybody could see the new one. False where it did not, or another process was faster.
 */
bool turn_word_put_hold(struct turn *turn, uint64_t *word, uint64_t until_ns);

/* Prolongs a hold of the slice as far as the work needs it. False where there is none that counts, or it is being handed over. */
bool turn_word_keep(struct turn *turn, uint64_t *word, uint64_t now_ns, uint64_t busy_until_ns);
