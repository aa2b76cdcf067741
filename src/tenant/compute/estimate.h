/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates: how long work of a kind takes on the device, as measured so far. A kind is what gate_key() says. Under
 * the lock of the device's meter or not: an estimate that is a moment old, or mixed up with another, is a worse estimate
 * and nothing else.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Unknown work is expected to take just this long: a batch of its own, so that it is known soon. */
#define ESTIMATE_UNKNOWN_NS 1000000u

/* The place of an odd key; where all of its places are taken, that of another one. */
uint32_t estimate_find(uint64_t key);

/* The estimate: as measured, or ESTIMATE_UNKNOWN_NS. */
uint64_t estimate_ns(uint32_t estimate);

/* Work that was done together: how often each kind, and how long it took in all. */
#define ESTIMATE_KINDS 12
struct estimate_mix {
	uint32_t kind_count;
	struct {
		uint16_t place, times;
	} kind[ESTIMATE_KINDS];
	uint64_t rest_ns; /* estimated for those of kinds that found no room */
};
#define ESTIMATE_MIX_NONE ((struct estimate_mix){.kind_count = 0}) /* of which nothing is learned */
void estimate_mix_add(struct estimate_mix *mix, uint32_t estimate);

/* How long it should take; 0: there is work in it that nobody knows. */
uint64_t estimate_mix_ns(const struct estimate_mix *mix);

/*
 * is_rough: more than the work itself was measured, so what took a little longer than it was expected to is
 * no news. True where one piece of work took so much longer than estimated that a program which hides that
 * would gain by it.
 */
bool estimate_learn(const struct estimate_mix *mix, uint64_t took_ns, bool is_rough);
