/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that runs on when its turn is over.
 *
 * How long work takes nobody knows before it ends. Where it takes longer than was announced it runs on beside the work of
 * others, and each is charged for both. So that they do not lose by it, a slice may do so for a fiftieth of the time. It owes
 * what is beyond that, and has no turn until that is paid.
 *
 * An honest program may have kernels that are long now and then, each time too long for what they were before. So a slice that owes may
 * go on, one piece at a time, if it announces each as one that takes as long as its longest that ran on. It does so where that was short: the
 * next one may be longer still.
 */
#pragma once

#include <stdint.h>

/*
 * By how much work ran on that began and ended then, was expected to take so long, and for which a turn was held until then.
 * Work that was known to be longer than a turn may last did not.
 */
uint64_t overrun_ns(
	uint64_t start_ns, uint64_t end_ns, uint64_t expected_ns, uint64_t held_until_ns);

/* The slice's word (0: none yet) after work ran on for so long, until ended_ns; it is paid from then on. */
uint64_t overrun_note(uint64_t word, uint64_t ns, uint64_t ended_ns, uint64_t now_ns);

/* The longest piece that ran on, in a word of its own (0: none yet), after one that took so long; UINT64_MAX: nobody knows how long. */
uint64_t overrun_note_longest(uint64_t word, uint64_t took_ns, uint64_t now_ns);

/* What each piece of a slice that owes is to be announced as; 0: it may give none. */
uint64_t overrun_careful_ns(uint64_t word, uint64_t now_ns);

/* For how long the slice has no turn; 0: it may have one. */
uint64_t overrun_wait_ns(uint64_t word, uint64_t now_ns);
