/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice is to have back. */
#include "policy/owed.h"

#include "base/bits.h"

#define OWED_BITS   14
#define WAITED_BITS 24
#define SERVED_BITS 26
#define OWED_NS	    UINT64_C(16000)
#define WAITED_NS   UINT64_C(64000)
#define SERVED_NS   UINT64_C(16000)
#define WHOLE	    1000 /* permille */

#define MASK(bits)  ((UINT64_C(1) << (bits)) - 1)

/* Since a process waited last. */
static uint64_t since_ns(uint64_t word, uint64_t now_ns)
{
	uint64_t waited = word >> OWED_BITS & MASK(WAITED_BITS);

	return ((now_ns / WAITED_NS - waited) & MASK(WAITED_BITS)) * WAITED_NS;
}

uint64_t owed_ns(uint64_t word, uint64_t served_ns, uint64_t paid_permille, uint64_t now_ns)
{
	uint64_t owed = (word & MASK(OWED_BITS)) * OWED_NS;
	uint64_t served = word >> (OWED_BITS + WAITED_BITS);
	uint64_t paid_ns = ((served_ns / SERVED_NS - served) & MASK(SERVED_BITS)) * SERVED_NS *
			   paid_permille / WHOLE;

	return since_ns(word, now_ns) > OWED_BELIEVED_NS || paid_ns > owed ? 0 : owed - paid_ns;
}

uint64_t owed_add(uint64_t word, uint64_t served_ns, uint64_t paid_permille, uint64_t now_ns,
	uint64_t more_ns)
{
	uint64_t ns = owed_ns(word, served_ns, paid_permille, now_ns) + more_ns;
	uint64_t steps = (min_u64(ns, OWED_MOST_NS) + OWED_NS / 2) / OWED_NS;

	return (served_ns / SERVED_NS & MASK(SERVED_BITS)) << (OWED_BITS + WAITED_BITS) |
	       (now_ns / WAITED_NS & MASK(WAITED_BITS)) << OWED_BITS | steps;
}

uint64_t owed_wait(uint64_t word, uint64_t served_ns, uint64_t due_permille, uint64_t now_ns,
	uint64_t waited_ns)
{
	uint64_t alone_ns = word ? min_u64(waited_ns, since_ns(word, now_ns)) : waited_ns;

	return owed_add(
		word, served_ns, WHOLE - due_permille, now_ns, alone_ns * due_permille / WHOLE);
}

uint64_t owed_pause(uint64_t word, uint64_t idle_ns, uint64_t now_ns)
{
	uint64_t steps = min_u64(word & MASK(OWED_BITS), idle_ns / OWED_NS);

	return since_ns(word, now_ns) < idle_ns ? word : word - steps;
}
