/* SPDX-License-Identifier: Apache-2.0 */
/* Work that runs on when its turn is over. */
#include "policy/overrun.h"

#include <stdbool.h>

#include "policy/budget.h"

/* As much as others may lose by it. */
#define PERMILLE 20
#define SAVED_NS UINT64_C(100000000)

/* The most that is owed, and is paid in 12.5 s: a program that is not used to its own work may go on after that. */
#define OWED_NS INT64_C(250000000)

/* What ended longer ago is paid. */
#define PAST_NS UINT64_C(60000000000)

/* The longest of pieces that a slice may go on with. It is forgotten when none has run on for a minute. */
#define CAREFUL_NS UINT64_C(50000000)

/* Of a word: when that was, in seconds, and how long it took, in us. */
#define MOMENT_BITS 32

/* By so much an honest end is seen late. */
#define LEAST_NS UINT64_C(500000)

static const struct budget_rate rate = {.permille = PERMILLE, .burst_ns = SAVED_NS};

uint64_t overrun_ns(
	uint64_t start_ns, uint64_t end_ns, uint64_t expected_ns, uint64_t held_until_ns)
{
	uint64_t announced_ns = start_ns + expected_ns;

	if (held_until_ns > announced_ns)
		announced_ns = held_until_ns;
	return end_ns > announced_ns + LEAST_NS ? end_ns - announced_ns : 0;
}

uint64_t overrun_note(uint64_t word, uint64_t ns, uint64_t ended_ns, uint64_t now_ns)
{
	int64_t most_ns;

	if (now_ns - ended_ns > PAST_NS)
		ended_ns = ended_ns < now_ns ? now_ns - PAST_NS : now_ns;
	if (word == BUDGET_NONE)
		word = budget_spend(word, &rate, ended_ns, -(int64_t)SAVED_NS);
	most_ns = budget_balance_ns(word, &rate, now_ns) + OWED_NS;
	if (most_ns < 0)
		most_ns = 0;
	return budget_spend_since(
		word, &rate, ended_ns, now_ns, ns < (uint64_t)most_ns ? (int64_t)ns : most_ns);
}

static bool is_past(uint64_t word, uint64_t now_ns)
{
	return !word || (uint32_t)(now_ns / 1000000000) - (uint32_t)(word >> MOMENT_BITS) >
				PAST_NS / 1000000000;
}

uint64_t overrun_note_longest(uint64_t word, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t us = took_ns / 1000 < UINT32_MAX ? took_ns / 1000 + 1 : UINT32_MAX;

	if (!is_past(word, now_ns) && (uint32_t)word > us)
		us = (uint32_t)word;
	return now_ns / 1000000000 << MOMENT_BITS | us;
}

uint64_t overrun_careful_ns(uint64_t word, uint64_t now_ns)
{
	uint64_t ns = (uint64_t)(uint32_t)word * 1000;

	/* Never just what stands for work of which nobody knows (estimate.h). */
	return is_past(word, now_ns) || ns > CAREFUL_NS ? 0 : ns + 1;
}

uint64_t overrun_wait_ns(uint64_t word, uint64_t now_ns)
{
	return word == BUDGET_NONE ? 0 : budget_wait_ns(word, &rate, now_ns);
}
