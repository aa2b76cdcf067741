/* SPDX-License-Identifier: Apache-2.0 */
/* The slice's queue. */
#include "tenant/compute/queue.h"

#include <stdatomic.h>

#include "tenant/compute/meters.h"

/* All accesses are relaxed: the word is complete in itself, and nothing else is read because of it. */
static _Atomic uint64_t *word_of(const struct meter *m)
{
	return &m->books->turn.queued_until_ns;
}

/* What lies further ahead than any turn is long is no queue: a process was killed, or somebody wrote to the books. */
static uint64_t end_ns(uint64_t word, uint64_t now_ns)
{
	return word > now_ns && word < now_ns + TURN_LONGEST_NS ? word : now_ns;
}

struct queue queue_look(const struct meter *m, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(word_of(m), memory_order_relaxed);

	return (struct queue){.word = word, .end_ns = end_ns(word, now_ns)};
}

bool queue_enter(const struct meter *m, const struct queue *seen, uint64_t ns)
{
	uint64_t word = seen->word;

	return atomic_compare_exchange_strong_explicit(
		word_of(m), &word, seen->end_ns + ns, memory_order_relaxed, memory_order_relaxed);
}

void queue_correct(const struct meter *m, int64_t ns, uint64_t now_ns)
{
	uint64_t word = atomic_load_explicit(word_of(m), memory_order_relaxed), to;

	do {
		if (word + TURN_LONGEST_NS < now_ns || word > now_ns + TURN_LONGEST_NS)
			return;
		to = word + (uint64_t)ns;
	} while (!atomic_compare_exchange_weak_explicit(
		word_of(m), &word, to, memory_order_relaxed, memory_order_relaxed));
}
