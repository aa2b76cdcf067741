/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guesses: how long work of a kind takes on the device, as measured so far. A kind is what gate_key() says;
 * a place holds the last one of those that fall there. Under the lock of the device's meter or not: a guess
 * that is a moment old, or mixed up with another, is a worse guess and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What is not known yet is expected to take just this long: a batch of its own, so that it is known soon. */
#define GUESS_UNKNOWN_NS 1000000u

/* The place of a key, taken for it where another one was there. */
uint32_t guess_find(uint64_t key);

/* What is expected: as measured, or GUESS_UNKNOWN_NS. */
uint64_t guess_ns(uint32_t guess);

/* Work that was done together: how often each kind, and how long it took in all. */
#define GUESS_KINDS 12
struct guess_mix {
	uint32_t kind_count;
	struct {
		uint16_t place, times;
	} kind[GUESS_KINDS];
	uint64_t rest_ns; /* guessed for those of kinds that found no room */
};
void guess_mix_add(struct guess_mix *mix, uint32_t guess);

/*
 * is_rough: more than the work itself was measured, so what took a little longer than it was expected to is
 * no news. True where one piece of work took so much longer than guessed that a program which hides that
 * would gain by it.
 */
bool guess_learn(const struct guess_mix *mix, uint64_t took_ns, bool is_rough);
