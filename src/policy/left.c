/* SPDX-License-Identifier: Apache-2.0 */
/* How much is charged of work that was left under way. */
#include "policy/left.h"

#include <stdbool.h>

#include "base/bits.h"

#define SECOND_NS   UINT64_C(1000000000)
#define MOMENT_BITS 32		 /* of the word, below the second in which the bound was last met */
#define TIMES_MOST  UINT64_C(12) /* 11 hours */

/* One time is forgotten after so long, the next after as long again. */
#define FORGOTTEN_S UINT64_C(600)

/* How often the bound was met, as far as that is not forgotten. */
static uint64_t times(uint64_t word, uint64_t now_ns)
{
	uint64_t then_s = word >> MOMENT_BITS, now_s = now_ns / SECOND_NS;
	uint64_t met = min_u64(word & UINT32_MAX, TIMES_MOST);
	uint64_t forgotten = now_s > then_s ? (now_s - then_s) / FORGOTTEN_S : 0;

	return met > forgotten ? met - forgotten : 0;
}

/* Whether it began before the bound was last met. */
static bool is_of_then(uint64_t word, uint64_t since_ns)
{
	return word && since_ns / SECOND_NS <= word >> MOMENT_BITS;
}

uint64_t left_most_ns(uint64_t word, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t met = times(word, now_ns);

	return LEFT_NS << (met && is_of_then(word, since_ns) ? met - 1 : met);
}

uint64_t left_note(uint64_t word, uint64_t since_ns, uint64_t now_ns)
{
	if (is_of_then(word, since_ns))
		return word;
	return now_ns / SECOND_NS << MOMENT_BITS | min_u64(times(word, now_ns) + 1, TIMES_MOST);
}
