/* SPDX-License-Identifier: Apache-2.0 */
/* Which work of a slice's streams is doubted. */
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

uint64_t doubt_note_pause(uint64_t word, uint64_t since_ns, uint64_t now_ns)
{
	uint64_t most_ns = (AHEAD_MOST_NS - LOW_BITS) / DOUBTED_TIMES;

	return later(now_ns + DOUBTED_TIMES * min_u64(now_ns - since_ns, most_ns),
		doubt_until_ns(word, now_ns));
}

/*
 * Each by itself: whoever knows which pieces were drawn so far, or makes the draws of many harmless ones, knows no more of the next one.
 */
bool doubt_is_drawn(uint64_t random)
{
	return random % DOUBTED == 0;
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
