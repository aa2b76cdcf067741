/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice says of its turn. */
#include "region/turn_word.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/lock.h"

#define TOUCH_NS       UINT64_C(100000000) /* a sign of life: well within TURN_ALIVE_NS */
#define FRESH_SPINS    100u		   /* another process of ours confirms: two steps */
#define WOKEN	       64		   /* sleepers at a time: as many others are looked at */
#define WOKEN_OF_CROWD 8
#define CROWDED_NS     UINT64_C(1000000000) /* after as many were woken at once */
#define TAMPERED_NS    UINT64_C(2000000000) /* for so long after a change a slice is humble */

/*
 * Says to others what the books say, and notes there that it was said. What is said was read before the word that takes its place:
 * who lost its processor in between finds that others have gone on, and puts no older word over theirs. Sequentially consistent,
 * with the fence in read_peers(): said before polled.
 */
static void publish(struct turn *t)
{
	uint64_t shown = atomic_load(&t->own->face.word), word;

	for (unsigned i = 0; i < FRESH_SPINS; i++) {
		word = turn_load(&t->books->word);
		if (shown == word) {
			/* release: after the record; pairs with the load in is_changed() */
			atomic_store_explicit(&t->books->said, word, memory_order_release);
			return;
		}
		FAULT("turn: before it is said");
		if (atomic_compare_exchange_strong(&t->own->face.word, &shown, word))
			shown = word;
	}
}

bool turn_word_change(struct turn *t, uint64_t *word, uint64_t to)
{
	/* Sequentially consistent: as in publish() */
	if (!atomic_compare_exchange_strong(&t->books->word, word, to))
		return false;
	publish(t);
	*word = to;
	return true;
}

static bool is_as_said(const struct turn *t)
{
	return turn_load(&t->own->face.word) == turn_load(&t->books->word);
}

/*
 * Whether the record said what the books say, and says something else. A process of the slice that lost its processor between the
 * two, or died there, has not said it yet, and another word is in the books where one goes on at this moment.
 */
static bool is_changed(const struct turn *t)
{
	/* acquire: pairs with the release in publish() */
	uint64_t said = atomic_load_explicit(&t->books->said, memory_order_acquire);

	return said == turn_load(&t->books->word) && said != turn_load(&t->own->face.word) &&
	       said == turn_load(&t->books->word);
}

/*
 * Where another program has changed the record, others know nothing of us, or what is wrong. What is no record they do not
 * see: as with a new one, they have some time to find it.
 */
static void mend(struct turn *t, uint64_t now_ns)
{
	if (UNLIKELY(turn_get(&t->own->face.magic) != TURN_MAGIC)) {
		turn_record_show(t);
		t->hidden_ns = now_ns;
	} else if (LIKELY(is_as_said(t))) {
		return;
	} else if (!is_changed(t)) {
		publish(t);
		return;
	}
	if (TURN_WORD_STATE(turn_load(&t->own->face.word)) != TURN_HOLD &&
		TURN_WORD_STATE(turn_load(&t->books->word)) == TURN_HOLD)
		t->hidden_ns = now_ns;
	t->tampered_ns = now_ns;
	publish(t);
}

bool turn_word_is_tampered(const struct turn *t, uint64_t now_ns)
{
	return t->tampered_ns && now_ns < t->tampered_ns + TAMPERED_NS;
}

bool turn_is_hidden(const struct turn *t, uint64_t now_ns)
{
	return t->hidden_ns && now_ns < t->hidden_ns + TAMPERED_NS;
}

void turn_word_touch(struct turn *t, uint64_t now_ns)
{
	uint64_t seen = turn_get(&t->own->face.seen_ns);

	mend(t, now_ns);
	if (seen + TOUCH_NS <= now_ns || seen > now_ns)
		turn_set(&t->own->face.seen_ns, now_ns);
}

/*
 * How many sleepers may be woken. Whoever may read the record may sleep there, with as many threads as he has, and each takes some us
 * to wake, and more of the processors afterwards.
 */
static int may_wake(const struct turn *t, uint64_t now_ns)
{
	return t->crowded_ns && now_ns < t->crowded_ns + CROWDED_NS ? WOKEN_OF_CROWD : WOKEN;
}

void turn_word_wake(struct turn *t)
{
	_Atomic uint32_t *news = &t->own->face.news;
	uint64_t now_ns = t->clock_ns();
	int count = may_wake(t, now_ns);

	/*
	 * release: after the word. Pairs with the fence in turn_record_is_as_read(), for the slice's own processes with the load in
	 * take() (turn.c), and with the kernel's read of it before a sleep in turn_wait().
	 */
	atomic_fetch_add_explicit(news, 1, memory_order_release);
	if (syscall(SYS_futex, news, FUTEX_WAKE, count, NULL, NULL, 0) >= WOKEN)
		t->crowded_ns = now_ns;
}

unsigned turn_word_process_high(const struct turn *t)
{
	return (unsigned)turn_sooner(atomic_load(&t->books->process_high), TURN_PROCESSES);
}

uint64_t turn_word_slice_busy_ns(const struct turn *t, uint64_t now_ns)
{
	unsigned high = turn_word_process_high(t);
	uint64_t latest = 0;

	for (unsigned i = 0; i < high; i++) {
		/* relaxed: ordered by the word, as said */
		uint64_t until = turn_get(&t->books->busy_until_ns[i]);

		/* A dead one's is past soon; beyond the longest lease it is not believed. */
		if (i != t->process && until > latest && until <= now_ns + TURN_LONGEST_NS)
			latest = until;
	}
	return latest > now_ns ? latest : 0;
}

uint64_t turn_word_lease(struct turn *t, uint64_t now_ns, uint64_t busy_until_ns)
{
	/* Of an earlier turn, which another process of the slice may have ended. */
	if (t->wanted_since_ns < turn_get(&t->books->since_ns))
		t->wanted_since_ns = 0;
	if (t->begun_ns != turn_get(&t->books->since_ns))
		t->first_until_ns = 0;
	return turn_order_lease_ns(
		now_ns, busy_until_ns, t->grace_ns, t->wanted_since_ns, t->first_until_ns);
}

bool turn_word_put_hold(struct turn *t, uint64_t *word, uint64_t until_ns)
{
	uint64_t counted_until_ns = TURN_WORD_UNTIL_NS(*word);
	uint64_t hold = TURN_WORD(TURN_HOLD, until_ns);

	FAULT("turn: before the hold");
	if (!turn_word_change(t, word, hold | TURN_WORD_FRESH))
		return false;
	FAULT("turn: before the hold is confirmed");
	if (t->clock_ns() < counted_until_ns)
		return turn_word_change(t, word, hold);
	turn_word_change(t, word, TURN_WORD(TURN_FREE, 0));
	return false;
}

bool turn_word_keep(struct turn *t, uint64_t *word, uint64_t now_ns, uint64_t busy_until_ns)
{
	uint64_t until_ns = turn_word_lease(t, now_ns, busy_until_ns);

	for (unsigned i = 0; i < FRESH_SPINS && (*word & TURN_WORD_FRESH); i++) {
		lock_pause();
		*word = turn_load(&t->books->word);
	}
	while (turn_counts(*word, TURN_HOLD, now_ns) &&
		!(*word & (TURN_WORD_DRAINING | TURN_WORD_FRESH))) {
		uint64_t counted_until_ns = TURN_WORD_UNTIL_NS(*word);

		/* By 1 ns: a process of the slice that is about to end the turn finds it changed. */
		if (until_ns <= counted_until_ns &&
			turn_word_change(t, word, *word + TURN_WORD(0, 1)))
			return t->clock_ns() < counted_until_ns;
		if (until_ns > counted_until_ns && turn_word_put_hold(t, word, until_ns))
			return true;
	}
	return false;
}
