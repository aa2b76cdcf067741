/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the slice kept a device busy: rings of cells, marked by all its processes, so that work of
 * several streams and processes at the same time counts once, in whichever order they report it.
 */
#pragma once

#include <stdint.h>

#include "region/layout.h"

/* The longest span that is looked at cell by cell: three quarters of the ring, 604 ms. */
#define BUSY_SPAN_NS \
	(UINT64_C(3) * REGION_BUSY_WORDS / 4 * REGION_BUSY_WORD_CELLS * REGION_BUSY_CELL_NS)
/* Of a longer one, what comes before that is looked at in long cells: 9.6 s in all. */
#define BUSY_LONG_SPAN_NS                                                    \
	(UINT64_C(3) * REGION_BUSY_LONG_WORDS / 4 * REGION_BUSY_WORD_CELLS * \
		REGION_BUSY_LONG_CELL_NS)

/*
 * Marks the time from start_ns to end_ns (CLOCK_MONOTONIC) and returns how much of it was not
 * marked before, at most all of it. Time that is more than BUSY_LONG_SPAN_NS before the end, or
 * older than what the rings hold by now, is taken as not marked before; so is what is more than
 * BUSY_SPAN_NS before the end, and of which single spans marked parts of a long cell only.
 * Lock-free; any number of threads and processes.
 */
uint64_t busy_mark(struct region_compute *compute, uint64_t start_ns, uint64_t end_ns);

/*
 * Charges the work that a process had under way since since_ns when it ended; 0: none. It is
 * charged until ended_ns, when no process of the slice lived any more (ended.h); where that is not
 * known, or is before since_ns, until now, up to a bound (policy/left.h). advance_ns is what the
 * process had taken of the ceiling in advance: it pays for the work, and what is left goes back.
 */
void busy_charge_left(struct region_compute *compute, uint64_t since_ns, int64_t advance_ns,
	uint64_t ended_ns, uint64_t now_ns);

/*
 * Charges, by the clock, what a process that lives has under way and has not looked after since
 * looked_ns: from then on no more than a bound (policy/left.h), as it may have ended at any moment.
 * *since, a word of its slot, says since when it is under way, and is moved on by what is charged:
 * 0.1 s at least, else nothing is. Lock-free; any number of processes.
 */
void busy_charge_unattended(struct region_compute *compute, _Atomic uint64_t *since,
	uint64_t looked_ns, uint64_t now_ns);

/*
 * The slice owes work that ran on for so long, until ended_ns, when its turn was over
 * (policy/overrun.h). Each piece of it took so long; UINT64_MAX: nobody knows. Lock-free.
 */
void busy_note_overrun(struct region_compute *compute, uint64_t ns, uint64_t piece_ns,
	uint64_t ended_ns, uint64_t now_ns);
