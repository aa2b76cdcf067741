/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of which nobody knows how long it takes, beside other slices: one piece of the slice at a time.
 *
 * It runs on when its turn is over, if it takes long. Of one piece a slice owes that (policy/overrun.h); of as many as it
 * has processes and streams others would lose as many times as much before any of them is seen to end.
 *
 * A word of the slice says whose piece is under way, and since when; 0: none is. Its process takes that back when it has seen
 * the end. It need not do so, as it may be killed, or make no call for long: so the word counts for some time alone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A process is found by its slot. */
#define UNKNOWN_SLOTS 1024u

/* A piece stands in the way of the next one for so long: it may wait for that, or be over long since. */
#define UNKNOWN_MOST_NS UINT64_C(1000000000)

uint64_t unknown_word(unsigned slot, uint64_t since_ns);
unsigned unknown_slot(uint64_t word);
uint64_t unknown_age_ns(uint64_t word, uint64_t now_ns);

/* Whether the piece stands in the way of another one. */
bool unknown_is_in_way(uint64_t word, uint64_t now_ns);

/* When to look again whether it has ended: soon while it may be short. */
uint64_t unknown_look_ns(uint64_t word, uint64_t now_ns);
