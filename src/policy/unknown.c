/* SPDX-License-Identifier: Apache-2.0 */
/* Work of which nobody knows how long it takes. */
#include "policy/unknown.h"

/* A quarter of the time that it has taken so far, within these. */
#define LOOK_LEAST_NS UINT64_C(50000)
#define LOOK_MOST_NS  UINT64_C(2000000)

#define SLOT_MASK     ((uint64_t)UNKNOWN_SLOTS - 1)

uint64_t unknown_word(unsigned slot, uint64_t since_ns)
{
	return (since_ns & ~SLOT_MASK) | (slot & SLOT_MASK);
}

unsigned unknown_slot(uint64_t word)
{
	return (unsigned)(word & SLOT_MASK);
}

/* One of the future is of another clock, or of a processor that read it a moment later. */
uint64_t unknown_age_ns(uint64_t word, uint64_t now_ns)
{
	uint64_t since_ns = word & ~SLOT_MASK;

	return since_ns < now_ns ? now_ns - since_ns : 0;
}

bool unknown_is_in_way(uint64_t word, uint64_t now_ns)
{
	return word && (word & ~SLOT_MASK) <= now_ns + UNKNOWN_MOST_NS &&
	       unknown_age_ns(word, now_ns) < UNKNOWN_MOST_NS;
}

uint64_t unknown_look_ns(uint64_t word, uint64_t now_ns)
{
	uint64_t ns = unknown_age_ns(word, now_ns) / 4;

	if (ns < LOOK_LEAST_NS)
		ns = LOOK_LEAST_NS;
	return now_ns + (ns < LOOK_MOST_NS ? ns : LOOK_MOST_NS);
}
