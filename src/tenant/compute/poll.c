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
 * The host's clock by the processor's ticks, between two polls. Written by the thread that polls, one at a time
 * (poll_is_due()), read by all: sequence is odd while it changes.
 */
static HOT_WORD struct {
	_Atomic uint32_t sequence;
	_Atomic uint64_t ticks, ns;
	_Atomic uint64_t ns_per_tick; /* << 32; 0: not known yet */
} rate;

#define RATE_TICKS UINT64_C(0x80000000) /* further from the last poll it is not believed */

static void set_rate(uint64_t ticks, uint64_t ns, uint64_t ns_per_tick)
{
	/* relaxed: the fence below keeps what follows behind it */
	atomic_fetch_add_explicit(&rate.sequence, 1, memory_order_relaxed);
	/* pairs with the fence in poll_now_ns(): who sees one of the values below sees the odd number */
	atomic_thread_fence(memory_order_release);
	/* relaxed: between the two of the sequence */
	atomic_store_explicit(&rate.ticks, ticks, memory_order_relaxed);
	atomic_store_explicit(&rate.ns, ns, memory_order_relaxed);
	atomic_store_explicit(&rate.ns_per_tick, ns_per_tick, memory_order_relaxed);
	/* pairs with the acquire in poll_now_ns() */
	atomic_fetch_add_explicit(&rate.sequence, 1, memory_order_release);
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

bool poll_is_due(uint64_t now_ns)
{
	static _Atomic uint64_t last_ticks, last_ns;
	/* relaxed all: a poll too early or late does no harm */
	uint64_t due = atomic_load_explicit(&gate_next_poll, memory_order_relaxed);
	uint64_t ticks = clock_ticks(), passed_ticks, passed_ns, step;

	passed_ticks = ticks - atomic_exchange_explicit(&last_ticks, ticks, memory_order_relaxed);
	passed_ns = now_ns - atomic_exchange_explicit(&last_ns, now_ns, memory_order_relaxed);
	if (passed_ns > POLL_NS / 2 && passed_ns < 100 * POLL_NS) {
		step = (uint64_t)((double)passed_ticks / (double)passed_ns * (double)POLL_NS);
	} else {
		passed_ns = 0;
		step = POLL_MS * clock_ticks_of_ms();
	}
	if (!atomic_compare_exchange_strong_explicit(&gate_next_poll, &due, ticks + step,
		    memory_order_relaxed, memory_order_relaxed))
		return false;
	set_rate(ticks, now_ns,
		passed_ns ? (uint64_t)((double)passed_ns / (double)passed_ticks * 4294967296.0)
			  : 0);
	return true;
}
