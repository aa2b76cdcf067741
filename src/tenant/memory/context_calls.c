/* SPDX-License-Identifier: Apache-2.0 */
/* Calls under way that make a context or end one. */
#include "tenant/memory/context_calls.h"

#include <stdatomic.h>

#include "tenant/driver/patience.h"

/* Contexts are made in some seconds on a cold machine. */
#define ENTER_WAIT_NS UINT64_C(60000000000)
#define ALONE_WAIT_NS UINT64_C(10000000000)

#define ALONE	      UINT32_C(0x80000000)

/* As many calls, or ALONE. */
static _Atomic uint32_t calls;

static bool enter(uint32_t most, uint32_t more, uint64_t longest_ns)
{
	struct patience patience = patience_begin(longest_ns);
	uint32_t there = atomic_load(&calls);

	for (unsigned i = 0;; i++) {
		if (there > most) {
			if (patience_is_over(&patience))
				return false;
			lock_rest(i);
			there = atomic_load(&calls);
		} else if (atomic_compare_exchange_weak(&calls, &there, there + more)) {
			return true;
		}
	}
}

bool context_calls_enter(void)
{
	return enter(ALONE - 2, 1, ENTER_WAIT_NS);
}

void context_calls_leave(void)
{
	atomic_fetch_sub(&calls, 1);
}

bool context_calls_enter_alone(void)
{
	return enter(0, ALONE, ALONE_WAIT_NS);
}

void context_calls_leave_alone(void)
{
	atomic_fetch_sub(&calls, ALONE);
}

void context_calls_let_others_in(void)
{
	atomic_store(&calls, 1);
}

void context_calls_reset_after_fork(void)
{
	atomic_store(&calls, 0);
}
