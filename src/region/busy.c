/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the slice kept a device busy.
 *
 * A word holds 48 cells of 4,096 ns and, in its upper 16 bits, the lap of the ring to which they belong; a
 * word of an older lap counts as empty and is overtaken by the first who marks in it. A cell belongs to a
 * span that covers its middle, so a span's ends are rounded, without a bias. The time of a span that is new
 * is its length times the share of its cells that were not marked.
 *
 * All accesses are relaxed: a word is complete in itself, and nothing else is read because of it.
 */
#include "region/busy.h"

#include "policy/budget.h"
#include "policy/overrun.h"

/* A word can be so much further than a span of now that is reported late. */
#define LAPS_AHEAD 4

#define CELL_MASK  ((UINT64_C(1) << REGION_BUSY_WORD_CELLS) - 1)

/* Marks cells first to last of word number `number`, counted from the clock's beginning; how many were new. */
static unsigned mark_word(
	struct region_compute *compute, uint64_t number, unsigned first, unsigned last)
{
	_Atomic uint64_t *at = &compute->cells[number % REGION_BUSY_WORDS];
	uint64_t lap = number / REGION_BUSY_WORDS & 0xffff;
	uint64_t cells = (CELL_MASK >> (REGION_BUSY_WORD_CELLS - 1 - (last - first))) << first;
	uint64_t seen = atomic_load_explicit(at, memory_order_relaxed), now;

	do {
		uint64_t seen_lap = seen >> REGION_BUSY_WORD_CELLS;

		now = lap << REGION_BUSY_WORD_CELLS;
		if (seen_lap == lap)
			now = seen;
		else if (seen && (uint16_t)(seen_lap - lap) <= LAPS_AHEAD)
			return last - first + 1; /* the ring is a lap further */
		if ((now & cells) == cells)
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		at, &seen, now | cells, memory_order_relaxed, memory_order_relaxed));
	return (unsigned)__builtin_popcountll(cells & ~now);
}

uint64_t busy_mark(struct region_compute *compute, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t before_ns = 0, first, end, fresh = 0;

	if (end_ns <= start_ns)
		return 0;
	if (end_ns - start_ns > BUSY_SPAN_NS) {
		before_ns = end_ns - start_ns - BUSY_SPAN_NS;
		start_ns = end_ns - BUSY_SPAN_NS;
	}
	first = (start_ns + REGION_BUSY_CELL_NS / 2) / REGION_BUSY_CELL_NS;
	end = (end_ns + REGION_BUSY_CELL_NS / 2) / REGION_BUSY_CELL_NS;
	if (end == first) /* between two middles: too short to tell */
		return before_ns + end_ns - start_ns;
	for (uint64_t cell = first; cell < end;) {
		uint64_t number = cell / REGION_BUSY_WORD_CELLS;
		uint64_t next = (number + 1) * REGION_BUSY_WORD_CELLS;
		uint64_t last = (next < end ? next : end) - 1;

		fresh += mark_word(compute, number, (unsigned)(cell % REGION_BUSY_WORD_CELLS),
			(unsigned)(last % REGION_BUSY_WORD_CELLS));
		cell = last + 1;
	}
	return before_ns + (end_ns - start_ns) * fresh / (end - first);
}

static void spend(_Atomic uint64_t *word, uint64_t permille, uint64_t since_ns, uint64_t now_ns,
	int64_t cost_ns)
{
	struct budget_rate rate = {.permille = (uint32_t)permille};
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(word, &seen,
		budget_spend_since(seen, &rate, since_ns, now_ns, cost_ns), memory_order_relaxed,
		memory_order_relaxed))
		;
}

/* A word of the region's is believed within its bounds: what is expected of the longest work, and what is owed at most. */
static int64_t believed(int64_t advance_ns)
{
	int64_t most_ns = BUSY_LEFT_NS;

	if (advance_ns > most_ns)
		return most_ns;
	return advance_ns < -most_ns ? -most_ns : advance_ns;
}

void busy_note_overrun(
	struct region_compute *compute, uint64_t ns, uint64_t ended_ns, uint64_t now_ns)
{
	uint64_t seen = atomic_load_explicit(&compute->overrun, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&compute->overrun, &seen,
		overrun_note(seen, ns, ended_ns, now_ns), memory_order_relaxed,
		memory_order_relaxed))
		;
}

void busy_charge_left(struct region_compute *compute, uint64_t since_ns, int64_t advance_ns,
	uint64_t ended_ns, uint64_t now_ns)
{
	uint64_t limits = atomic_load_explicit(&compute->limits, memory_order_relaxed), elapsed;

	if (!since_ns || since_ns > now_ns)
		since_ns = now_ns;
	/* An end before that was another process's. */
	if (ended_ns <= since_ns || ended_ns > now_ns)
		ended_ns = now_ns;
	elapsed = busy_mark(compute, since_ns,
		ended_ns - since_ns < BUSY_LEFT_NS ? ended_ns : since_ns + BUSY_LEFT_NS);
	spend(&compute->budget, limits >> 48, since_ns, now_ns, (int64_t)elapsed);
	if (limits & REGION_COMPUTE_LIMITED)
		spend(&compute->ceiling, limits >> 32 & 0xffff, since_ns, now_ns,
			(int64_t)elapsed - believed(advance_ns));
	/* Its turn is over, as it is no more. */
	if (limits & REGION_COMPUTE_TURNS)
		busy_note_overrun(compute, overrun_ns(0, elapsed, 0, 0), ended_ns, now_ns);
	atomic_fetch_add_explicit(&compute->elapsed_ns, elapsed, memory_order_relaxed);
	atomic_fetch_add_explicit(&compute->busy_ns, elapsed, memory_order_relaxed);
}
