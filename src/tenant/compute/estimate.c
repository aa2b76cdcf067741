/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates.
 *
 * Work is measured in batches, not each by itself, so what a batch took beyond its estimates is laid on its
 * kinds in proportion; kinds that come in different mixes part from each other within some batches. An estimate
 * that was far too low lets too much through, so it is raised at once. Work
 * of an unknown kind ends its batch, so a batch has at most one such kind, to which the rest is laid.
 */
#include "tenant/compute/estimate.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/bits.h"

#define PLACE_BITS  14
#define WAYS	    4	   /* in a line of the processor's cache */
#define LEAST_NS    500	   /* nothing takes less (H200: an empty kernel 1.6 us) */
#define LEARN_SHARE 3	   /* of 10 by which an estimate moves towards what was measured */
#define HIDDEN_NS   100000 /* a tenth of what may be charged as estimated at once */
#define RISE_TIMES  2	   /* if that is so many times as long, it moves there at once */

/*
 * Two kinds with one place would be new to each other at each launch, and what is new is waited for: of starts of a program
 * with fifty kinds every fourth has such a pair, by its addresses. So three places beside a kind's own are its, too: of two
 * thousand kinds one at most finds none free.
 */
static _Alignas(64) struct {
	/* relaxed all: see the header */
	_Atomic uint64_t key; /* 0: none has been here */
	_Atomic uint32_t ns;  /* 0: not measured yet */
} places[1u << PLACE_BITS];

uint32_t estimate_find(uint64_t key)
{
	uint32_t own = hash_place(key, PLACE_BITS), at = own;

	for (uint32_t way = 0; way < WAYS; way++) {
		uint64_t there = atomic_load_explicit(&places[own ^ way].key, memory_order_relaxed);

		if (LIKELY(there == key))
			return own ^ way;
		if (!there) {
			at = own ^ way;
			break;
		}
	}
	atomic_store_explicit(&places[at].key, key, memory_order_relaxed);
	atomic_store_explicit(&places[at].ns, 0, memory_order_relaxed);
	return at;
}

/* 0: not measured yet */
static uint64_t measured_ns(uint32_t estimate)
{
	return atomic_load_explicit(&places[estimate].ns, memory_order_relaxed);
}

uint64_t estimate_ns(uint32_t estimate)
{
	uint64_t ns = measured_ns(estimate);

	return ns ? ns : ESTIMATE_UNKNOWN_NS;
}

/* More kinds than there is room for are learned from other batches, but one that nobody knows is from this. */
static void add_beyond(struct estimate_mix *mix, uint32_t estimate)
{
	uint32_t last = ESTIMATE_KINDS - 1;
	uint64_t ns = measured_ns(estimate);

	if (ns) {
		mix->rest_ns += ns;
		return;
	}
	mix->rest_ns += estimate_ns(mix->kind[last].place) * mix->kind[last].times;
	mix->kind[last].place = (uint16_t)estimate;
	mix->kind[last].times = 1;
}

void estimate_mix_add(struct estimate_mix *mix, uint32_t estimate)
{
	if (mix->kind_count == 0)
		mix->rest_ns = 0;
	for (uint32_t i = 0; i < mix->kind_count; i++)
		if (mix->kind[i].place == estimate) {
			mix->kind[i].times += mix->kind[i].times < UINT16_MAX;
			return;
		}
	if (mix->kind_count == ESTIMATE_KINDS) {
		add_beyond(mix, estimate);
		return;
	}
	mix->kind[mix->kind_count].place = (uint16_t)estimate;
	mix->kind[mix->kind_count++].times = 1;
}

static void set(uint32_t estimate, uint64_t ns)
{
	if (ns < LEAST_NS)
		ns = LEAST_NS;
	/* What is measured to take just that is known. */
	if (ns == ESTIMATE_UNKNOWN_NS)
		ns++;
	atomic_store_explicit(&places[estimate].ns, ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX,
		memory_order_relaxed);
}

uint64_t estimate_mix_ns(const struct estimate_mix *mix)
{
	uint64_t sum_ns = mix->kind_count ? mix->rest_ns : 0;

	for (uint32_t i = 0; i < mix->kind_count; i++) {
		uint64_t ns = measured_ns(mix->kind[i].place);

		if (!ns)
			return 0;
		sum_ns += ns * mix->kind[i].times;
	}
	return sum_ns;
}

bool estimate_learn(const struct estimate_mix *mix, uint64_t took_ns, bool is_rough)
{
	uint64_t known_ns = mix->kind_count ? mix->rest_ns : 0;
	uint32_t unknown = UINT32_MAX, unknown_times = 0;

	for (uint32_t i = 0; i < mix->kind_count; i++) {
		uint64_t ns = measured_ns(mix->kind[i].place);

		if (ns) {
			known_ns += ns * mix->kind[i].times;
		} else {
			unknown = mix->kind[i].place;
			unknown_times = mix->kind[i].times;
		}
	}
	if (unknown != UINT32_MAX) {
		set(unknown, took_ns > known_ns ? (took_ns - known_ns) / unknown_times : LEAST_NS);
		return false;
	}
	if (known_ns == 0 || (is_rough && took_ns > known_ns && took_ns < RISE_TIMES * known_ns))
		return false;
	for (uint32_t i = 0; i < mix->kind_count; i++) {
		uint64_t ns = estimate_ns(mix->kind[i].place);
		uint64_t aim = (uint64_t)((double)ns * (double)took_ns / (double)known_ns);

		set(mix->kind[i].place,
			aim > ns * RISE_TIMES ? aim
					      : (ns * (10 - LEARN_SHARE) + aim * LEARN_SHARE) / 10);
	}
	return !is_rough && mix->kind_count == 1 && mix->kind[0].times == 1 &&
	       took_ns > RISE_TIMES * known_ns && took_ns > known_ns + HIDDEN_NS;
}
