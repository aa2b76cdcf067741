/* SPDX-License-Identifier: Apache-2.0 */
/* How a slice's turn ends: it is given back, or kept for a while for work that may come. */
#include <errno.h>

#include "region/turn.h"
#include "region/turn_word.h"

#define WAKE_NS UINT64_C(500000) /* turn_idle() wakes others at most that often */

/* Frees the turn; the word is the slice's hold. False where that has gone on in the meantime. */
static bool hand_over(struct turn *t, uint64_t *word, uint64_t now_ns)
{
	uint64_t since_ns = turn_get(&t->books->since_ns);

	if (!turn_word_change(t, word, TURN_WORD(TURN_FREE, 0)))
		return false;
	turn_set(&t->own->face.held_ns,
		turn_get(&t->own->face.held_ns) + (now_ns > since_ns ? now_ns - since_ns : 0));
	t->wanted_since_ns = 0;
	t->held_until_ns = turn_sooner(t->held_until_ns, now_ns);
	turn_word_wake(t);
	return true;
}

/*
 * This process's work ends then (0: there is none), which is sooner than it was announced. The slice keeps the turn until
 * keep_until_ns, where that is later.
 */
static void shorten(struct turn *t, uint64_t now_ns, uint64_t busy_until_ns, uint64_t keep_until_ns)
{
	int saved = errno;
	uint64_t word, others_ns, end_ns;

	turn_set(&t->books->busy_until_ns[t->process], busy_until_ns);
	word = turn_load(&t->books->word);
	if (!turn_counts(word, TURN_HOLD, now_ns) || (word & TURN_WORD_FRESH))
		return;
	others_ns = turn_word_slice_busy_ns(t, now_ns);
	if ((word & TURN_WORD_DRAINING) && !others_ns && !busy_until_ns) {
		hand_over(t, &word, now_ns);
		errno = saved;
		return;
	}
	end_ns = turn_word_lease(t, now_ns, busy_until_ns);
	if (end_ns < others_ns)
		end_ns = others_ns;
	if (end_ns < keep_until_ns)
		end_ns = keep_until_ns;
	if (end_ns >= TURN_WORD_UNTIL_NS(word))
		return;
	/* A shorter lease is no claim: it needs no confirmation. A process that came in between goes first. */
	if (!turn_word_change(t, &word, TURN_WORD(TURN_HOLD, end_ns) | (word & TURN_WORD_DRAINING)))
		return;
	t->held_until_ns = turn_sooner(t->held_until_ns, end_ns);
	if (t->wanted_since_ns && t->woke_ns + WAKE_NS <= now_ns) {
		t->woke_ns = now_ns;
		turn_word_wake(t);
	}
	errno = saved;
}

void turn_idle(struct turn *t, uint64_t keep_ns, uint64_t now_ns)
{
	if (t->own)
		shorten(t, now_ns, 0, turn_sooner(turn_quantum_end_ns(t), now_ns + keep_ns));
}

void turn_shorten(struct turn *t, uint64_t now_ns, uint64_t busy_until_ns)
{
	if (t->own)
		shorten(t, now_ns, turn_sooner(busy_until_ns, now_ns + TURN_LONGEST_NS), 0);
}

static int release(struct turn *t, uint64_t now_ns)
{
	uint64_t word, end_ns;

	turn_set(&t->books->busy_until_ns[t->process], 0);
	word = turn_load(&t->books->word);
	while (turn_counts(word, TURN_HOLD, now_ns)) {
		/* Another process is just going on. */
		if (word & TURN_WORD_FRESH)
			return TURN_E_SHARED;
		end_ns = turn_word_slice_busy_ns(t, now_ns);
		if (end_ns == 0) {
			if (hand_over(t, &word, now_ns))
				return 0;
			continue;
		}
		end_ns = turn_sooner(end_ns, TURN_WORD_UNTIL_NS(word));
		if (turn_word_change(t, &word, TURN_WORD(TURN_HOLD, end_ns) | TURN_WORD_DRAINING)) {
			t->held_until_ns = turn_sooner(t->held_until_ns, end_ns);
			return TURN_E_SHARED;
		}
	}
	return 0;
}

int turn_release(struct turn *t, uint64_t now_ns)
{
	int saved = errno, r = t->own ? release(t, now_ns) : 0;

	errno = saved;
	return r;
}

/* Whether a process of the slice besides this one waits. One that died waiting is believed: the wish ends by itself. */
static bool is_shared_wish(const struct turn *t, unsigned besides)
{
	unsigned high = turn_word_process_high(t);

	for (unsigned i = 0; i < high; i++)
		if (i != besides && turn_get(&t->books->busy_until_ns[i]) == TURN_WANTS)
			return true;
	return false;
}

bool turn_has_others(const struct turn *t, uint64_t now_ns)
{
	return t->own && (turn_word_slice_busy_ns(t, now_ns) != 0 || is_shared_wish(t, t->process));
}

void turn_leave(struct turn *t)
{
	int saved = errno;
	uint64_t word;

	if (!t->own)
		return;
	turn_release(t, t->clock_ns());
	word = turn_load(&t->books->word);
	if (TURN_WORD_STATE(word) == TURN_WANT && !is_shared_wish(t, TURN_PROCESSES) &&
		turn_word_change(t, &word, TURN_WORD(TURN_FREE, 0)))
		turn_word_wake(t);
	t->free_since_ns = 0;
	errno = saved;
}
