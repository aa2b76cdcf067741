/* SPDX-License-Identifier: Apache-2.0 */
/* Which pauses of streams are doubted: the slice's words. */
#include "tenant/compute/doubts.h"

#include "base/bits.h"

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

bool doubts_are_drawn(const struct region_compute *books, uint64_t now_ns)
{
	return doubt_until_ns(get(&books->doubted), now_ns) && !doubts_are_all(books, now_ns);
}

bool doubts_draw(struct region_compute *books, uint64_t since_ns, uint64_t now_ns)
{
	bool is_drawn, are_all = doubts_are_all(books, now_ns);
	uint64_t seen = get(&books->doubted), random = hash_u64(now_ns);

	while (!set(&books->doubted, &seen,
		doubt_draw(seen, are_all, since_ns, now_ns, random, &is_drawn)))
		;
	return is_drawn;
}

bool doubts_end_pause(struct region_compute *books, bool is_estimated, uint64_t since_ns,
	uint64_t now_ns, uint64_t *ret_until_ns)
{
	bool is_drawn = is_estimated && doubts_draw(books, since_ns, now_ns);
	uint64_t doubted_ns = doubt_until_ns(get(&books->doubted), now_ns);
	/* At a stream's beginning: until its first pause. */
	uint64_t until_ns = now_ns + DOUBTED_TIMES * (now_ns - since_ns);

	*ret_until_ns = until_ns < doubted_ns ? doubted_ns : until_ns;
	return is_drawn || doubted_ns || doubts_are_all(books, now_ns);
}
