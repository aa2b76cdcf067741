/* SPDX-License-Identifier: Apache-2.0 */
/* When to poll, and the host's clock by the processor's ticks, whose rate one poll tells the next. */
#include "tenant/compute/poll.h"

#include "base/bits.h"
#include "base/clock.h"

HOT_WORD _Atomic uint32_t gate_mode;
HOT_WORD _Atomic uint64_t gate_next_poll;

#define POLL_MS 50u
#define POLL_NS (POLL_MS * UINT64_C(1000000))

/*
 * The host's clock by the processor's ticks, between two polls. Written by one thread at a time, which has made sequence odd, read by all. A thread
 * that is gone in between leaves it odd: nobody believes it any more, and all ask the clock.
 */
static HOT_WORD struct {
	_Atomic uint32_t sequence;
	_Atomic uint64_t ticks, ns;   /* of one moment; ns 0: they are not */
	_Atomic uint64_t ns_per_tick; /* << 32; 0: not known yet */
} rate;

#define RATE_TICKS UINT64_C(0x80000000) /* further from the last poll it is not believed */
#define AWAY_PART  64			/* of a ms: who takes longer for both was away in between */

/* Whether they are of one moment. */
static bool read_both(uint64_t *ret_ticks, uint64_t *ret_ns)
{
	/* The first time it may look at more than the clock. */
	(void)clock_now_ns();
	*ret_ticks = clock_ticks();
	*ret_ns = clock_now_ns();
	return clock_ticks() - *ret_ticks < clock_ticks_of_ms() / AWAY_PART;
}

/* When to poll next: by the rate, where this moment and the last one tell it, and else as is usual. */
static uint64_t set_rate(uint64_t ticks, uint64_t ns, bool is_one_moment, uint64_t usual)
{
	/* relaxed, all loads: one thread at a time writes them */
	uint32_t sequence = atomic_load_explicit(&rate.sequence, memory_order_relaxed);
	uint64_t last_ns, passed_ticks, passed_ns, next = usual, each = 0;

	/* acquire: pairs with the release below */
	if (sequence % 2 || !atomic_compare_exchange_strong_explicit(&rate.sequence, &sequence,
				    sequence + 1, memory_order_acquire, memory_order_relaxed))
		return usual;
	/* pairs with the fence in poll_now_ns(): who sees one of the values below sees the odd number */
	atomic_thread_fence(memory_order_release);
	passed_ticks = ticks - atomic_load_explicit(&rate.ticks, memory_order_relaxed);
	last_ns = atomic_load_explicit(&rate.ns, memory_order_relaxed);
	passed_ns = ns - last_ns;
	if (is_one_moment && last_ns && passed_ns > POLL_NS / 2 && passed_ns < 100 * POLL_NS) {
		each = (uint64_t)((double)passed_ns / (double)passed_ticks * 4294967296.0);
		next = ticks +
		       (uint64_t)((double)passed_ticks / (double)passed_ns * (double)POLL_NS);
	}
	/* relaxed: between the two of the sequence */
	atomic_store_explicit(&rate.ticks, ticks, memory_order_relaxed);
	atomic_store_explicit(&rate.ns, is_one_moment ? ns : 0, memory_order_relaxed);
	atomic_store_explicit(&rate.ns_per_tick, each, memory_order_relaxed);
	/* pairs with the acquire in poll_now_ns() */
	atomic_fetch_add_explicit(&rate.sequence, 1, memory_order_release);
	return next;
}

uint64_t poll_now_ns(uint64_t ticks)
{
	/* pairs with the release in set_rate() */
	uint32_t sequence = atomic_load_explicit(&rate.sequence, memory_order_acquire);
	uint64_t from = atomic_load_explicit(&rate.ticks, memory_order_relaxed);
	uint64_t ns = atomic_load_explicit(&rate.ns, memory_order_relaxed);
	uint64_t each = atomic_load_explicit(&rate.ns_per_tick, memory_order_relaxed);

	/* pairs with the fence in set_rate(): the loads above are not later than the one below */
	atomic_thread_fence(memory_order_acquire);
	if (UNLIKELY(sequence % 2 || !each || ticks - from > RATE_TICKS ||
		     atomic_load_explicit(&rate.sequence, memory_order_relaxed) != sequence))
		return clock_now_ns();
	return ns + ((ticks - from) * (each >> 8) >> 24);
}

bool poll_is_due(uint64_t *ret_now_ns)
{
	/* relaxed, all: a poll too early or late does no harm */
	uint64_t due = atomic_load_explicit(&gate_next_poll, memory_order_relaxed);
	uint64_t ticks, next;
	bool is_one_moment = read_both(&ticks, ret_now_ns);

	next = ticks + POLL_MS * clock_ticks_of_ms();
	if (!atomic_compare_exchange_strong_explicit(
		    &gate_next_poll, &due, next, memory_order_relaxed, memory_order_relaxed))
		return false;
	/* Unless a signal wants one sooner. */
	(void)atomic_compare_exchange_strong_explicit(&gate_next_poll, &next,
		set_rate(ticks, *ret_now_ns, is_one_moment, next), memory_order_relaxed,
		memory_order_relaxed);
	return true;
}
