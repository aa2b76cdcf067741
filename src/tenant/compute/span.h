/* SPDX-License-Identifier: Apache-2.0 */
/* A span of time in which the device worked for a stream, and what the slice is charged for it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/compute/estimate.h"

struct span {
	uint64_t start_ns, end_ns;
	int64_t reserved_ns, running_ns; /* charged while it ran */
	uint64_t queued_ns;		 /* in the slice's queue */
	uint64_t paid_ns;		 /* until then; 0: nothing was */
	uint64_t expected_ns;		 /* as it was given */
	uint64_t ran_on_ns;		 /* when its turn was over, as noted while it ran */
	bool is_measured;
	bool is_drawn;	    /* one piece, by chance (doubts.h) */
	bool is_waited_for; /* its end was seen by a wait */
	bool is_placed; /* it is known when it was; else none of it is taken for another stream's time */
	uint64_t
		unsure_ns; /* it was so much later at most, and as much of it is taken for no other's time */
	bool is_behind; /* it was given behind what is no work, and may have begun when its turn was over */
	bool is_first; /* after a pause: getting the device to work is part of it */
	struct estimate_mix mix;
};

/* Of a meter; written by span.c alone. */
struct spans {
	uint32_t
		overlap_permille; /* of what streams took, what nobody else of the slice took as well */
	uint64_t took_ns, fresh_ns; /* both, of the last work that they did */
	uint32_t
		interrupted; /* batches in a row that an untracked process's work is taken to have interrupted */
	uint64_t busy_ns; /* the device worked for this process so long, since it began */
	/* By how much pieces of work that were drawn took longer than estimated, one after the other. */
	uint64_t longer_ns;
};

/* clang-format off */
#define SPANS_NULL {.overlap_permille = 1000}
/* clang-format on */

struct meter;

/*
 * Charges a span that is over, with the meter's lock. Returns by how much one piece of work took longer than estimated,
 * where a program which hides that would gain by it; else 0.
 */
uint64_t span_charge(struct meter *meter, const struct span *span, uint64_t now_ns);

/*
 * Charges a part of a span that is not over: so much, which is the slice's debt, and does not keep this process from
 * giving more work, for which the span may wait. unsure_ns as in a span; UINT64_MAX: nobody knows when it was.
 */
int64_t span_charge_running(
	struct meter *meter, uint64_t from_ns, uint64_t now_ns, uint64_t unsure_ns);
