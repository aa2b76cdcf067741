/* SPDX-License-Identifier: Apache-2.0 */
/* Which pauses of a slice's streams are doubted. */
#include "policy/doubt.h"

#include "base/bits.h"

/*
 * Once that has shown work to be hidden, the next pauses are all doubted for so many times as long as what is likely to have
 * been hidden before it was found: that is a 64th of the time then. Found anew it is twice as long each time.
 */
#define SUSPECTED_TIMES	  UINT64_C(64)
#define SUSPECTED_AGAIN	  UINT64_C(10)
#define SUSPECTED_MOST_NS UINT64_C(600000000000)

/* Nothing was found for so long since: it begins anew. */
#define FORGOTTEN_NS UINT64_C(3600000000000)

/* No honest word says more: it is of another clock. */
#define AHEAD_MOST_NS UINT64_C(86400000000000)

/* Words are a moment, of whose ns the lowest bits are for something else. */
#define LOW_BITS UINT64_C(0xff)
#define LOT_BITS 3
#define LOT_MASK UINT64_C(7)
_Static_assert(DOUBTED == LOT_MASK + 1, "a lot");

static uint64_t moment_ns(uint64_t word)
{
	return word & ~LOW_BITS;
}

/* Rounded up; no sooner than another. */
static uint64_t later(uint64_t ns, uint64_t than_ns)
{
	ns = moment_ns(ns + LOW_BITS);
	return ns > than_ns ? ns : than_ns;
}

uint64_t doubt_until_ns(uint64_t word, uint64_t now_ns)
{
	uint64_t ns = moment_ns(word);

	return ns > now_ns && ns - now_ns <= AHEAD_MOST_NS ? ns : 0;
}

/*
 * One of each DOUBTED in a row, and nobody can foresee which. Were each drawn by itself, a program would be lucky now and then,
 * and hide work for as long as it is judged.
 */
uint64_t doubt_draw(uint64_t word, bool is_suspected, uint64_t since_ns, uint64_t now_ns,
	uint64_t random, bool *ret_is_drawn)
{
	uint64_t drawn = word & LOT_MASK, lot = word >> LOT_BITS & LOT_MASK, ns = moment_ns(word);
	uint64_t most_ns = (AHEAD_MOST_NS - LOW_BITS) / DOUBTED_TIMES;

	if (!drawn)
		lot = word ? random & LOT_MASK : 0;
	*ret_is_drawn = is_suspected || drawn == lot;
	if (*ret_is_drawn)
		ns = later(now_ns + DOUBTED_TIMES * min_u64(now_ns - since_ns, most_ns),
			doubt_until_ns(word, now_ns));
	return ns | lot << LOT_BITS | ((drawn + 1) & LOT_MASK);
}

bool doubt_is_suspected(uint64_t word, uint64_t now_ns)
{
	return doubt_until_ns(word, now_ns) != 0;
}

uint64_t doubt_note_hidden(uint64_t word, uint64_t hidden_ns, uint64_t now_ns)
{
	uint64_t until_ns = doubt_until_ns(word, now_ns),
		 times = min_u64(word & LOW_BITS, SUSPECTED_AGAIN), ns;

	if (!until_ns) {
		/* Found out anew, by chance. */
		if (now_ns > moment_ns(word) + FORGOTTEN_NS)
			times = 0;
		times = min_u64(times + 1, SUSPECTED_AGAIN);
	}
	ns = SUSPECTED_TIMES * DOUBTED * min_u64(hidden_ns, SUSPECTED_MOST_NS);
	ns = min_u64(ns << (times ? times - 1 : 0), SUSPECTED_MOST_NS);
	return later(now_ns + ns, until_ns) | times;
}
