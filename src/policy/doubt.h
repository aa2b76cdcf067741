/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which work of a slice's streams is doubted, and how much of that is measured. Two words of the slice: until when work is doubted, and one of
 * what was found to be hidden. Any of its programs can read them, so neither tells which piece is measured. Suspicion is counted in time:
 * pauses cost a program nothing. 0: none yet.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of so many pieces of work that are doubted one is measured by itself, by chance; a launch costs 1.7 us more then (H200). */
#define DOUBTED 8

/*
 * After a pause before which work was charged as estimated, work is doubted for so many times as long as the pause, which is as much as that may
 * have hidden.
 */
#define DOUBTED_TIMES 16

/* The word of doubt after such a pause since then; it never ends sooner by that. */
uint64_t doubt_note_pause(uint64_t word, uint64_t since_ns, uint64_t now_ns);

/* Whether a piece that is doubted is measured. */
bool doubt_is_drawn(uint64_t random);

/* Until then work of the slice is doubted, by that word; 0: no longer. */
uint64_t doubt_until_ns(uint64_t word, uint64_t now_ns);

/* The word of suspicion after a piece of work was found to take so much longer than estimated; it never ends sooner by that. */
uint64_t doubt_note_hidden(uint64_t word, uint64_t hidden_ns, uint64_t now_ns);

/* Whether the slice is suspected, by that word: what is doubted is measured piece by piece. */
bool doubt_is_suspected(uint64_t word, uint64_t now_ns);
