/* SPDX-License-Identifier: Apache-2.0 */
/* Which work of streams is doubted: the slice's words, and the process's chance. */
#include "tenant/compute/doubts.h"

#include "base/bits.h"
#include "base/clock.h"
#include "base/mark.h"

/* Of the generator: no two of its steps come to the same number. */
#define STEP UINT64_C(0x9e3779b97f4a7c15)

/*
 * All accesses are relaxed: a word is complete in itself, and nothing else is read because of it. Who changes one begins again
 * where another was faster, so that no change is lost, and a moment never comes sooner by one. A word that is seen too old is
 * that of before the other's pause.
 */
static uint64_t get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static bool set(_Atomic uint64_t *word, uint64_t *seen, uint64_t to)
{
	return atomic_compare_exchange_weak_explicit(
		word, seen, to, memory_order_relaxed, memory_order_relaxed);
}

void doubts_note_hidden(struct region_compute *books, uint64_t hidden_ns, uint64_t now_ns)
{
	uint64_t seen = get(&books->suspected);

	while (!set(&books->suspected, &seen, doubt_note_hidden(seen, hidden_ns, now_ns)))
		;
}

bool doubts_are_all(const struct region_compute *books, uint64_t now_ns)
{
	return doubt_is_suspected(get(&books->suspected), now_ns);
}

void doubts_note_pause(struct region_compute *books, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t seen = get(&books->doubted), none = 0;

	while (!set(&books->doubted, &seen, doubt_note_pause(seen, since_ns, now_ns)))
		;
	/* What the slice hides from its beginning on is found out at once, and not after some pieces of it. */
	while (!seen && !none &&
		!set(&books->suspected, &none, doubt_note_pause(0, since_ns, now_ns)))
		;
}

bool doubts_draw(uint64_t *random)
{
	if (!*random)
		*random = mark_random();
	*random += STEP;
	/* A program can read its own memory, and no clock to the cycle of this moment. */
	return doubt_is_drawn(hash_u64(*random ^ hash_u64(clock_ticks())));
}

bool doubts_end_pause(struct region_compute *books, bool is_estimated, uint64_t since_ns,
	uint64_t now_ns, uint64_t *ret_until_ns)
{
	/* At a stream's beginning: until its first pause. */
	uint64_t until_ns = now_ns + DOUBTED_TIMES * (now_ns - since_ns), doubted_ns;
	bool are_all;

	if (is_estimated)
		doubts_note_pause(books, since_ns, now_ns);
	are_all = doubts_are_all(books, now_ns);
	doubted_ns = doubt_until_ns(get(&books->doubted), now_ns);
	*ret_until_ns = 0;
	if (are_all || doubted_ns)
		*ret_until_ns = until_ns < doubted_ns ? doubted_ns : until_ns;
	return are_all;
}
