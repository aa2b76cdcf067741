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

/* Two processes look at different moments, and one may come to the word with what it saw before the other. */
#define BACKWARD_NS UINT64_C(1000000000)

/* How much later now is than the field, in steps; 0 where it is a little earlier. */
static uint64_t steps_since(uint64_t now, uint64_t field, unsigned bits, uint64_t step_ns)
{
	uint64_t steps = (now - field) & MASK(bits);

	return steps > MASK(bits) - BACKWARD_NS / step_ns ? 0 : steps;
}

static uint64_t waited_field(uint64_t word)
{
	return word >> OWED_BITS & MASK(WAITED_BITS);
}

static uint64_t served_field(uint64_t word)
{
	return word >> (OWED_BITS + WAITED_BITS);
}

/* Since a process waited last. */
static uint64_t since_ns(uint64_t word, uint64_t now_ns)
{
	return steps_since(now_ns / WAITED_NS, waited_field(word), WAITED_BITS, WAITED_NS) *
	       WAITED_NS;
}

uint64_t owed_ns(uint64_t word, uint64_t served_ns, uint64_t paid_permille, uint64_t now_ns)
{
	uint64_t owed = (word & MASK(OWED_BITS)) * OWED_NS;
	uint64_t paid_ns =
		steps_since(served_ns / SERVED_NS, served_field(word), SERVED_BITS, SERVED_NS) *
		SERVED_NS * paid_permille / WHOLE;

	return since_ns(word, now_ns) > OWED_BELIEVED_NS || paid_ns > owed ? 0 : owed - paid_ns;
}

/* What the field becomes: never an earlier moment by what was seen too late. */
static uint64_t later_field(uint64_t now, uint64_t field, unsigned bits, uint64_t step_ns)
{
	return steps_since(now, field, bits, step_ns) ? now & MASK(bits) : field;
}

uint64_t owed_add(uint64_t word, uint64_t served_ns, uint64_t paid_permille, uint64_t now_ns,
	uint64_t more_ns)
{
	uint64_t ns = owed_ns(word, served_ns, paid_permille, now_ns) + more_ns;
	uint64_t steps = (min_u64(ns, OWED_MOST_NS) + OWED_NS / 2) / OWED_NS;
	uint64_t served = served_ns / SERVED_NS, waited = now_ns / WAITED_NS;

	if (word) {
		served = later_field(served, served_field(word), SERVED_BITS, SERVED_NS);
		waited = later_field(waited, waited_field(word), WAITED_BITS, WAITED_NS);
	}
	return (served & MASK(SERVED_BITS)) << (OWED_BITS + WAITED_BITS) |
	       (waited & MASK(WAITED_BITS)) << OWED_BITS | steps;
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
