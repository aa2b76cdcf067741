/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a hunt lasts, and where its random numbers begin: in `make test` with the day, so that each day
 * tries something new and all runs of a day are alike.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The number in the environment's variable, or another one. */
static inline uint64_t seed_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* HUNT_SEED, or the date as a number: 20261231. */
static inline uint64_t seed_of_today(void)
{
	time_t now = time(NULL);
	struct tm day;
	uint64_t seed;

	gmtime_r(&now, &day);
	seed = seed_number("HUNT_SEED", (uint64_t)(day.tm_year + 1900) * 10000 +
						(uint64_t)(day.tm_mon + 1) * 100 +
						(uint64_t)day.tm_mday);
	printf("HUNT_SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	return seed;
}

/* HUNT_SECONDS, or so many as a test of `make test` may take. */
static inline uint64_t seed_seconds(uint64_t otherwise)
{
	return seed_number("HUNT_SECONDS", otherwise);
}
