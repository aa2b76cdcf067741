/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a turn lasts while others wait.
 *
 * Each change of turns costs the device's time, and a waiting slice waits for whole turns. So turns are short where any of those
 * that take them comes and goes, and long where all have worked without a pause for a while.
 *
 * Each slice says in its own record since when it has worked so. The holder's turn is long where its own record and that of
 * each other slice of the last second say so, which is compared at each look at the others. Who says so and comes and goes waits longer itself;
 * who denies it gives others turns as short as its own.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A long turn is so long that a change costs no more than this part of it. What a change costs was measured with two trainings
 * (PyTorch) on an H100: 1.1 to 1.6 ms of each round of two turns, so 0.55 to 0.8 ms. To be measured again: what two trainings
 * without limits get together of one alone's speed, by bench/compute.py --sections two, is 1 - TURN_CHANGE_NS / length.
 */
#define TURN_CHANGE_NS	     UINT64_C(750000)
#define TURN_CHANGE_PERMILLE 30u

/*
 * And a round of long turns is no longer than this. Who waits for the rest of it is owed its part of that, which among equal
 * slices is a quarter of it at most, and below what counts as others' misuse (OWED_NS in tenant/compute/credit.c).
 */
#define TURN_ROUND_NS UINT64_C(75000000)

/* A pause in which the slice's turn ends by itself: it is kept for 0.3 ms (GRACE_NS in region/turn_open.c). */
#define TURN_PAUSE_NS UINT64_C(300000)

/* For so long there must have been none. Work of an answer to a person's question is over by then, or takes many turns. */
#define TURN_STEADY_NS UINT64_C(250000000)

/* No turn is longer, whatever the weight. */
#define TURN_LENGTH_MAX_NS UINT64_C(35000000)

/* Of a slice of this weight in percent of the common one, beside so many others. */
uint64_t turn_length_ns(unsigned peer_count, uint32_t weight_percent);

/* Where all work without a pause; 0: its weight leaves no room for longer turns in proportion. */
uint64_t turn_length_long_ns(unsigned peer_count, uint32_t weight_percent);

/* Whether a slice that has worked without a pause since then (0: it does not say) has done so for long enough. */
bool turn_length_is_steady(uint64_t since_ns, uint64_t now_ns);
