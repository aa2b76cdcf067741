/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that can be had again: a seed, and a stream a user. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"

struct random {
	uint64_t state;
};

/* STRESS_SEED repeats a run as far as the scheduler lets it. */
static inline uint64_t random_seed(void)
{
	const char *text = getenv("STRESS_SEED");
	uint64_t seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);

	printf("STRESS_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

static inline struct random random_stream(uint64_t seed, uint64_t user)
{
	return (struct random){.state = hash_u64(seed) + hash_u64(user + 1)};
}

/* 0 to below - 1 */
static inline unsigned random_below(struct random *r, unsigned below)
{
	r->state += 0x9e3779b97f4a7c15ull;
	return (unsigned)(hash_u64(r->state) % below);
}
