/* SPDX-License-Identifier: Apache-2.0 */
/* Quiet: calls that begin wait for one thread that looks at what the process holds. */
#include "tenant/memory/quiet.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "tenant/memory/charge.h"

/* Who waits for calls that stay holds back others one part in so many of the time. */
#define TIMES 4

/* Until then calls wait, and another may have them wait afterwards; 0: for nobody. And what this thread has put there. */
static _Atomic uint64_t held_until_ns;
static __thread uint64_t own_until_ns;

/* Threads that wait to measure what the driver has given them: they are in nobody's way. */
static _Atomic uint32_t measuring;

bool quiet_begin(uint64_t now_ns)
{
	uint64_t until_ns = atomic_load(&held_until_ns);

	if (until_ns > now_ns ||
		!atomic_compare_exchange_strong(&held_until_ns, &until_ns, now_ns + QUIET_NS))
		return false;
	own_until_ns = now_ns + QUIET_NS;
	return true;
}

void quiet_end(void)
{
	uint64_t until_ns = own_until_ns;

	if (!until_ns)
		return;
	own_until_ns = 0;
	/* Unless it is another's by now. Pairs with the load in quiet_wait(). */
	atomic_compare_exchange_strong(&held_until_ns, &until_ns, 0);
}

void quiet_wait(void)
{
	for (unsigned i = 0; clock_now_ns() < atomic_load(&held_until_ns) && !own_until_ns; i++)
		lock_rest(i);
}

void quiet_measure_begin(void)
{
	atomic_fetch_add(&measuring, 1);
}

void quiet_measure_end(void)
{
	quiet_end();
	atomic_fetch_sub(&measuring, 1);
}

bool quiet_is_reached(void)
{
	uint32_t waiting = atomic_load(&measuring);

	return (uint32_t)charge_traffic() <= waiting;
}

void quiet_wait_for_calls(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns(), again_ns = now_ns;

	FAULT("quiet: waiting");
	for (unsigned i = 0; now_ns < until_ns && !quiet_is_reached(); i++) {
		if (now_ns >= again_ns) {
			quiet_end();
			quiet_begin(now_ns);
			again_ns = now_ns + TIMES * QUIET_NS;
		}
		lock_rest(i);
		now_ns = clock_now_ns();
	}
}

void quiet_reset_after_fork(void)
{
	atomic_store(&held_until_ns, 0);
	atomic_store(&measuring, 0);
	own_until_ns = 0;
}
