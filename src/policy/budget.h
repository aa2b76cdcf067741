/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of time on a device, in one word: how much a slice has saved up, or owes, at some moment. It
 * grows with the clock times a rate, up to a burst, and what is spent is taken from it, also below zero.
 *
 * Pure arithmetic, so that processes can share the word by exchanging it and tests can replay days.
 * The balance is kept in steps of 64 ns and reaches 137 s above zero. A debt of more than 2.1 s is kept in steps of 0.26 ms until
 * it is 1.1 s, and reaches 78 hours; one beyond that is forgiven. The moment is kept in steps of 1,024 ns and repeats after 73
 * minutes, with a debt in large steps after 13 days: a slice that was idle for so long that it falls into the last second
 * of them has saved up nothing for at most that second.
 */
#pragma once

#include <stdint.h>

struct budget_rate {
	uint32_t permille; /* of the clock */
	uint64_t burst_ns; /* the most that is saved up; at least BUDGET_MIN_BURST_NS */
};

#define BUDGET_MIN_BURST_NS 65536
#define BUDGET_NONE	    0 /* a word that was never used: nothing saved up, nothing owed */

/* The word at now_ns after cost_ns was spent (less than 0: given back). */
uint64_t budget_spend(
	uint64_t word, const struct budget_rate *rate, uint64_t now_ns, int64_t cost_ns);

/*
 * The same for work that began at since_ns and is charged now: what grows meanwhile pays for it, however little may be
 * saved up. Where the word has been written since then, it is as if the work had begun at that moment.
 */
uint64_t budget_spend_since(uint64_t word, const struct budget_rate *rate, uint64_t since_ns,
	uint64_t now_ns, int64_t cost_ns);

/* The budget saved up at now_ns; less than 0: owed. */
int64_t budget_balance_ns(uint64_t word, const struct budget_rate *rate, uint64_t now_ns);

/* How long until nothing is owed, to the ns; 0 where nothing is; UINT64_MAX with a rate of 0. */
uint64_t budget_wait_ns(uint64_t word, const struct budget_rate *rate, uint64_t now_ns);
