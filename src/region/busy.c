/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the slice kept a device busy.
 *
 * A word holds 48 cells and, in its upper 16 bits, the lap of the ring to which they belong; a word
 * of an older lap counts as empty and is overtaken by the first who marks in it. The time of a span
 * that is new is its length times the share of its cells that were not marked.
 *
 * There are two rings. In that of 4,096 ns a cell belongs to a span that covers its middle, so a
 * span's ends are rounded, without a bias. It tells of the last 604 ms of a span. In that of long
 * cells, of 262 us, a cell belongs to a span that covers all of it: short work at each one's middle
 * would else hide long work of another stream.
 *
 * Two processes may tell of the same time at once, and one of them has to be charged for it. The
 * rule: what is marked as a long cell was charged to somebody. So a span is charged for its last
 * 604 ms as far as it was the first to mark them in the ring of short cells and had not found them
 * marked as long ones before that, and only then are they marked as long cells. For what is older
 * it is charged as far as it was the first to mark it as long cells.
 */
#include "region/busy.h"

#include "policy/budget.h"
#include "policy/left.h"
#include "policy/overrun.h"

/* A word can be so much further than a span of now that is reported late. */
#define LAPS_AHEAD 4

#define CELL_MASK  ((UINT64_C(1) << REGION_BUSY_WORD_CELLS) - 1)

struct ring {
	_Atomic uint64_t *words;
	uint64_t count;
};

/*
 * Marks cells first to last of word number `number`, counted from the clock's beginning; how many
 * were new.
 */
static unsigned mark_word(const struct ring *ring, uint64_t number, unsigned first, unsigned last)
{
	_Atomic uint64_t *at = &ring->words[number % ring->count];
	uint64_t lap = number / ring->count & 0xffff;
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
		/*
		 * release: of a long cell, with marked_long(); of a short one nothing else is read
		 * because of it
		 */
	} while (!atomic_compare_exchange_weak_explicit(
		at, &seen, now | cells, memory_order_release, memory_order_relaxed));
	return (unsigned)__builtin_popcountll(cells & ~now);
}

/* Marks the cells from first on, and before end; how many were new. */
static uint64_t mark_cells(const struct ring *ring, uint64_t first, uint64_t end)
{
	uint64_t fresh = 0;

	for (uint64_t cell = first; cell < end;) {
		uint64_t number = cell / REGION_BUSY_WORD_CELLS;
		uint64_t next = (number + 1) * REGION_BUSY_WORD_CELLS;
		uint64_t last = (next < end ? next : end) - 1;

		fresh += mark_word(ring, number, (unsigned)(cell % REGION_BUSY_WORD_CELLS),
			(unsigned)(last % REGION_BUSY_WORD_CELLS));
		cell = last + 1;
	}
	return fresh;
}

static uint64_t first_long(uint64_t start_ns)
{
	return (start_ns + REGION_BUSY_LONG_CELL_NS - 1) / REGION_BUSY_LONG_CELL_NS;
}

/* Marks the whole long cells of the time; how much of it was not in marked ones. */
static uint64_t mark_long(struct region_compute *compute, uint64_t start_ns, uint64_t end_ns)
{
	const struct ring ring = {compute->long_cells, REGION_BUSY_LONG_WORDS};
	uint64_t first = first_long(start_ns), end = end_ns / REGION_BUSY_LONG_CELL_NS;

	if (end <= first)
		return end_ns - start_ns;
	return end_ns - start_ns -
	       (end - first - mark_cells(&ring, first, end)) * REGION_BUSY_LONG_CELL_NS;
}

/* How much of the time is in marked long cells. */
static uint64_t marked_long(struct region_compute *compute, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t end = end_ns / REGION_BUSY_LONG_CELL_NS, marked = 0;

	for (uint64_t cell = first_long(start_ns); cell < end; cell++) {
		uint64_t number = cell / REGION_BUSY_WORD_CELLS;
		/* acquire: with mark_word(): who marked it had marked its short cells before */
		uint64_t word =
			atomic_load_explicit(&compute->long_cells[number % REGION_BUSY_LONG_WORDS],
				memory_order_acquire);

		marked += word >> REGION_BUSY_WORD_CELLS ==
				  (number / REGION_BUSY_LONG_WORDS & 0xffff) &&
			  (word >> cell % REGION_BUSY_WORD_CELLS & 1);
	}
	return marked * REGION_BUSY_LONG_CELL_NS;
}

/* How much of the time was not in marked short cells. */
static uint64_t mark_short(struct region_compute *compute, uint64_t start_ns, uint64_t end_ns)
{
	const struct ring ring = {compute->cells, REGION_BUSY_WORDS};
	uint64_t first = (start_ns + REGION_BUSY_CELL_NS / 2) / REGION_BUSY_CELL_NS;
	uint64_t end = (end_ns + REGION_BUSY_CELL_NS / 2) / REGION_BUSY_CELL_NS;

	if (end == first) /* between two middles: too short to tell */
		return end_ns - start_ns;
	return (end_ns - start_ns) * mark_cells(&ring, first, end) / (end - first);
}

uint64_t busy_mark(struct region_compute *compute, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t older_ns = 0, recent_ns, unmarked_ns, fresh;

	if (end_ns <= start_ns)
		return 0;
	if (end_ns - start_ns > BUSY_LONG_SPAN_NS) {
		older_ns = end_ns - start_ns - BUSY_LONG_SPAN_NS;
		start_ns = end_ns - BUSY_LONG_SPAN_NS;
	}
	recent_ns = end_ns - start_ns > BUSY_SPAN_NS ? end_ns - BUSY_SPAN_NS : start_ns;
	unmarked_ns = end_ns - recent_ns - marked_long(compute, recent_ns, end_ns);
	fresh = mark_short(compute, recent_ns, end_ns);
	mark_long(compute, recent_ns, end_ns);
	if (recent_ns > start_ns)
		older_ns += mark_long(compute, start_ns, recent_ns);
	return older_ns + (fresh < unmarked_ns ? fresh : unmarked_ns);
}

/* What the slice has saved up, which nobody here knows the most of: it stays, and no more comes to it. */
static uint64_t saved_ns(uint64_t word, uint64_t now_ns)
{
	int64_t ns = budget_balance_ns(word, &(struct budget_rate){.burst_ns = INT64_MAX}, now_ns);

	return ns > 0 ? (uint64_t)ns : 0;
}

static void spend(_Atomic uint64_t *word, uint64_t permille, uint64_t since_ns, uint64_t now_ns,
	int64_t cost_ns)
{
	struct budget_rate rate = {.permille = (uint32_t)permille};
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed), spent;

	do {
		rate.burst_ns = saved_ns(seen, now_ns);
		spent = budget_spend_since(seen, &rate, since_ns, now_ns, cost_ns);
	} while (!atomic_compare_exchange_weak_explicit(
		word, &seen, spent, memory_order_relaxed, memory_order_relaxed));
}

void busy_note_overrun(struct region_compute *compute, uint64_t ns, uint64_t piece_ns,
	uint64_t ended_ns, uint64_t now_ns)
{
	uint64_t seen = atomic_load_explicit(&compute->turn.ran_on, memory_order_relaxed);

	/*
	 * First how long: who sees the debt goes on by that. A moment's difference lets one piece
	 * more through.
	 */
	while (!atomic_compare_exchange_weak_explicit(&compute->turn.ran_on, &seen,
		overrun_note_longest(seen, piece_ns, now_ns), memory_order_relaxed,
		memory_order_relaxed))
		;
	seen = atomic_load_explicit(&compute->overrun, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(&compute->overrun, &seen,
		overrun_note(seen, ns, ended_ns, now_ns), memory_order_relaxed,
		memory_order_relaxed))
		;
}

/*
 * Until when work is charged of which nobody knows when it ended, or ends. It began, or was last
 * looked after, at since_ns.
 */
static uint64_t bounded_end_ns(struct region_compute *compute, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t seen = atomic_load_explicit(&compute->left, memory_order_relaxed);
	uint64_t most_ns = left_most_ns(seen, since_ns, now_ns);

	if (now_ns - since_ns <= most_ns)
		return now_ns;
	/* relaxed: the word is complete in itself; of two that meet the bound at once one counts */
	atomic_compare_exchange_strong_explicit(&compute->left, &seen,
		left_note(seen, since_ns, now_ns), memory_order_relaxed, memory_order_relaxed);
	return since_ns + most_ns;
}

/* Charges the slice the time, of which the process that had it has paid so much. No turn covers it. */
static void charge(struct region_compute *compute, uint64_t since_ns, uint64_t ended_ns,
	int64_t paid_ns, uint64_t now_ns)
{
	uint64_t limits = atomic_load_explicit(&compute->limits, memory_order_relaxed);
	uint64_t elapsed = busy_mark(compute, since_ns, ended_ns);

	spend(&compute->budget, limits >> 48, since_ns, now_ns, (int64_t)elapsed);
	if (limits & REGION_COMPUTE_LIMITED)
		spend(&compute->ceiling, limits >> 32 & 0xffff, since_ns, now_ns,
			(int64_t)elapsed - paid_ns);
	if (limits & REGION_COMPUTE_TURNS)
		busy_note_overrun(
			compute, overrun_ns(0, elapsed, 0, 0), UINT64_MAX, ended_ns, now_ns);
	atomic_fetch_add_explicit(&compute->elapsed_ns, elapsed, memory_order_relaxed);
	atomic_fetch_add_explicit(&compute->busy_ns, elapsed, memory_order_relaxed);
}

/*
 * A word of the region's is believed within its bounds: what is expected of the longest work, and
 * what is owed at most.
 */
static int64_t believed(int64_t advance_ns)
{
	int64_t most_ns = LEFT_NS;

	if (advance_ns > most_ns)
		return most_ns;
	return advance_ns < -most_ns ? -most_ns : advance_ns;
}

void busy_charge_left(struct region_compute *compute, uint64_t since_ns, int64_t advance_ns,
	uint64_t ended_ns, uint64_t now_ns)
{
	if (!since_ns || since_ns > now_ns)
		since_ns = now_ns;
	/* An end before that was another process's. */
	if (ended_ns <= since_ns || ended_ns > now_ns)
		ended_ns = bounded_end_ns(compute, since_ns, now_ns);
	charge(compute, since_ns, ended_ns, believed(advance_ns), now_ns);
}

#define UNATTENDED_STEP_NS UINT64_C(100000000)

void busy_charge_unattended(struct region_compute *compute, _Atomic uint64_t *since,
	uint64_t looked_ns, uint64_t now_ns)
{
	uint64_t seen = atomic_load_explicit(since, memory_order_relaxed), end_ns;
	uint64_t awaited = seen & REGION_BUSY_AWAITED, since_ns = seen & ~REGION_BUSY_AWAITED;

	if (!since_ns || since_ns >= now_ns || !looked_ns || looked_ns >= now_ns)
		return;
	end_ns = bounded_end_ns(compute, looked_ns, now_ns);
	if (end_ns <= since_ns + UNATTENDED_STEP_NS)
		return;
	/*
	 * Who moves it on charges for that, once. What the process says later of the same time it
	 * has marked. relaxed: the word is complete in itself
	 */
	if (!atomic_compare_exchange_strong_explicit(since, &seen,
		    (end_ns & ~REGION_BUSY_AWAITED) | awaited, memory_order_relaxed,
		    memory_order_relaxed))
		return;
	charge(compute, since_ns, end_ns, 0, now_ns);
	/*
	 * release: pairs with the acquire in credit.c. What nobody knew of comes before what others
	 * have taken in advance.
	 */
	atomic_fetch_add_explicit(&compute->turn.overdrafts, 1, memory_order_release);
}
