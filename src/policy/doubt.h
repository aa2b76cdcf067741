/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pauses of a slice's streams are doubted, and for how long. Two words of the slice: one of the lots that are drawn, and
 * one of what was found to be hidden. Suspicion is counted in time: pauses cost a program nothing. 0: none yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of each so many pauses before which work was charged as estimated, one is followed by work of which each piece is measured. */
#define DOUBTED 8

/*
 * After a pause that is doubted each piece of work is measured for so many times as long as the pause, which is as much as it
 * may have hidden; a launch costs 1.7 us more then (H200).
 */
#define DOUBTED_TIMES 16

/*
 * The word of lots after a pause since then, and whether the lot falls on it: on one of each DOUBTED in a row, on the slice's
 * first, and on each that is_suspected.
 */
uint64_t doubt_draw(uint64_t word, bool is_suspected, uint64_t since_ns, uint64_t now_ns,
	uint64_t random, bool *ret_is_drawn);

/* Until then each piece of work of the slice is measured, by its word of lots; 0: no longer. */
uint64_t doubt_until_ns(uint64_t word, uint64_t now_ns);

/* The word of suspicion after a piece of work was found to take so much longer than estimated; it never ends sooner by that. */
uint64_t doubt_note_hidden(uint64_t word, uint64_t hidden_ns, uint64_t now_ns);

/* Whether the slice is suspected, by that word. */
bool doubt_is_suspected(uint64_t word, uint64_t now_ns);
