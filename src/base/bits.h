/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic that more than one module needs, and the hints for the compiler. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define LIKELY(x)	 __builtin_expect(!!(x), 1)
#define UNLIKELY(x)	 __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a)	 (sizeof(a) / sizeof((a)[0]))
#define MUST_CHECK	 __attribute__((warn_unused_result))
#define CACHE_LINE_BYTES 64

/* Of words that every launch reads, and that hardly ever change: they stand together, in a line or two. */
#define HOT_WORD __attribute__((section("hot_words")))

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Rounds up to a multiple of step (a power of two); UINT64_MAX where the result would not fit. */
static inline uint64_t round_up_u64(uint64_t value, uint64_t step)
{
	uint64_t sum;

	if (__builtin_add_overflow(value, step - 1, &sum))
		return UINT64_MAX;
	return sum & ~(step - 1);
}

/* The sum; UINT64_MAX where it would not fit. */
static inline uint64_t sum_u64(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Rounds away from zero to a multiple of step (a power of two). */
static inline int64_t round_out_i64(int64_t value, int64_t step)
{
	return value < 0 ? -((-value + step - 1) & ~(step - 1)) : (value + step - 1) & ~(step - 1);
}

/* A well-mixed 64-bit hash of one word (the finaliser of splitmix64, Steele et al., 2014). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

/* The place of a word in a table of so many bits' places: multiplicative hashing (Knuth, TAOCP 3, 6.4), in a ns. */
static inline uint32_t hash_place(uint64_t x, unsigned bits)
{
	return (uint32_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}
