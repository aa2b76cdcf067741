/* SPDX-License-Identifier: Apache-2.0 */
/* Work of which nobody knows how long it takes. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/unknowns.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "base/fault.h"
#include "base/log.h"
#include "policy/unknown.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/overruns.h"

/* Streams may be there to work beside each other: so many have such a piece at once, until the oldest has run for so long. */
#define AT_ONCE	 4
#define SHORT_NS UINT64_C(4000000)

_Static_assert(UNKNOWN_SLOTS == REGION_SLOTS, "a word has room for a slot's number");

/* Of a piece that nobody waits for it is not sure that it does not end: so much is owed. */
#define UNSURE_NS UINT64_C(100000000)

/* The word is complete in itself. Who puts his piece there sees what the one before was found to take. */
static _Atomic uint64_t *word_of(const struct meter *m)
{
	return &m->books->turn.unknown;
}

static uint64_t get(const struct meter *m)
{
	return atomic_load_explicit(word_of(m), memory_order_relaxed);
}

static bool exchange(const struct meter *m, uint64_t seen, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(
		word_of(m), &seen, to, memory_order_acq_rel, memory_order_relaxed);
}

static bool are_others_about(const struct meter *m)
{
	return m->turns.is_open && m->turns.peer_count;
}

/* Alone a slice owes what it has beyond its cap, and of a piece of each process that is as many times as much. */
static bool is_bounded(const struct meter *m)
{
	return are_others_about(m) || m->limits.is_limited;
}

/* Whether the process whose piece it is lives, and a thread of it waits for its work. */
static bool is_awaited(const struct meter *m, uint64_t word)
{
	const struct region_slot *slot = &state.region.file->own.slots[unknown_slot(word)];

	return atomic_load_explicit(&slot->busy_since_ns[m->device->entry], memory_order_relaxed) &
	       REGION_BUSY_AWAITED;
}

static bool is_gone(uint64_t word)
{
	const struct region_slot *slot = &state.region.file->own.slots[unknown_slot(word)];

	return atomic_load_explicit(&slot->state, memory_order_relaxed) != SLOT_LIVE;
}

/* Of a process that is gone, or had this one's slot before. */
static bool is_left(const struct meter *m, uint64_t word)
{
	return unknown_slot(word) == state.slot ? word != m->unknowns.word : is_gone(word);
}

/*
 * Alone nobody waits long in its launch for the end of a piece, so the process may not have looked: one that waits for its work
 * will, and of another one it is as likely over.
 */
static bool is_in_way(const struct meter *m, uint64_t word, uint64_t now_ns)
{
	return unknown_is_in_way(word, now_ns) &&
	       (are_others_about(m) || unknown_age_ns(word, now_ns) < UNKNOWNS_ALONE_NS ||
		       is_awaited(m, word));
}

/*
 * Another process's piece did not end in time. Where that is waited for, it runs on beside others' work, and the slice owes
 * that; else it is likely to.
 */
static void give_up(struct meter *m, uint64_t word, uint64_t now_ns)
{
	bool is_running = is_awaited(m, word);

	if (!exchange(m, word, 0))
		return;
	log_debug("work of unknown length did not end", U64("at_ns", now_ns));
	if (!are_others_about(m))
		return;
	overruns_note_running(
		m, is_running ? UNKNOWN_MOST_NS - UNKNOWNS_WAIT_NS : UNSURE_NS, now_ns);
}

/* When a call was let in whose piece may come at any moment; 0: there is none, or it does not come back. */
static uint64_t call_ns(const struct stream_state *s, uint64_t now_ns)
{
	return s->unknown_calls && now_ns <= s->unknown_in_ns + UNKNOWN_MOST_NS ? s->unknown_in_ns
										: 0;
}

static uint64_t since_ns(const struct stream_state *s, uint64_t now_ns)
{
	uint64_t ns = stream_state_unknown_since_ns(s);

	return ns ? ns : call_ns(s, now_ns);
}

uint64_t unknowns_since_ns(const struct meter *m, const struct stream_state *s, uint64_t now_ns)
{
	uint64_t own_ns = since_ns(s, now_ns), oldest_ns = 0;
	unsigned count = 0;

	for (unsigned i = 0; i < m->streams.high && !own_ns; i++) {
		const struct stream_state *other = &m->streams.at[i];
		uint64_t ns = other->is_shared ? 0 : since_ns(other, now_ns);

		if (!ns || now_ns > ns + UNKNOWN_MOST_NS)
			continue;
		count++;
		if (!oldest_ns || ns < oldest_ns)
			oldest_ns = ns;
	}
	if (own_ns || !oldest_ns)
		return own_ns;
	return count >= AT_ONCE || now_ns > oldest_ns + SHORT_NS ? oldest_ns : 0;
}

bool unknowns_may_begin(struct meter *m, bool is_unknown, uint64_t now_ns, uint64_t *ret_wake_ns)
{
	uint64_t word = get(m);

	if (!is_bounded(m) || !word || is_left(m, word))
		return true;
	/* Alone nobody else waits for what is known, nor for the process's other streams (unknowns_since_ns()). */
	if (!are_others_about(m) && (!is_unknown || word == m->unknowns.word))
		return true;
	/* It may be what this process's own piece waits for. */
	if (!is_unknown && (word == m->unknowns.word || !is_in_way(m, word, now_ns)))
		return true;
	if (!is_in_way(m, word, now_ns)) {
		if (word == m->unknowns.word)
			return true;
		give_up(m, word, now_ns);
	}
	*ret_wake_ns = unknown_look_ns(word, now_ns);
	return false;
}

bool unknowns_begin(struct meter *m, uint64_t now_ns)
{
	uint64_t word = get(m), own = unknown_word(state.slot, now_ns);

	if (!is_bounded(m))
		return true;
	if (word && !is_left(m, word) && is_in_way(m, word, now_ns))
		return word == m->unknowns.word && !are_others_about(m);
	if (!exchange(m, word, own))
		return false;
	/* What does not end may wait for this piece, and for none after it. */
	if (word && word == m->unknowns.word && are_others_about(m))
		overruns_note_running(m, UNKNOWN_MOST_NS - UNKNOWNS_WAIT_NS, now_ns);
	m->unknowns.word = own;
	FAULT("unknowns: begun");
	return true;
}

static bool has_any(const struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		const struct stream_state *s = &m->streams.at[i];

		if (stream_state_has_unknown(s) || (!s->is_shared && call_ns(s, now_ns)))
			return true;
	}
	return false;
}

void unknowns_end(struct meter *m, uint64_t now_ns)
{
	if (!m->unknowns.word || has_any(m, now_ns))
		return;
	(void)exchange(m, m->unknowns.word, 0);
	m->unknowns.word = 0;
}

uint64_t unknowns_moved_ns(const struct meter *m, const struct stream_state *s)
{
	/* Its own stream's may wait for just this piece, whatever ends elsewhere. */
	return s->pending || s->is_open ? m->unknowns.passed_ns
					: max_u64(m->unknowns.passed_ns, m->unknowns.ended_ns);
}

void unknowns_pass(struct meter *m, uint64_t now_ns)
{
	m->unknowns.passed_ns = now_ns;
}

void unknowns_note_end(struct meter *m, uint64_t now_ns)
{
	m->unknowns.ended_ns = now_ns;
}
