/* SPDX-License-Identifier: Apache-2.0 */
/* Where events stand on the host's clock. With the meter's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gpu/abi/cuda.h"

/*
 * How the events of a context are placed on the host's clock. An event happens at its recording or later, so
 * of all recordings the one that came soonest tells where the base is.
 */
struct timebase {
	CUcontext context;
	CUevent base;	  /* NULL: there is none yet */
	uint64_t base_ns; /* when it was, on the host's clock: at that time or later */
	/* and at that one or sooner: no event happens after it was seen to have. 0: it was recorded where it happened at once */
	uint64_t latest_ns;
	uint64_t made_ns;
};

/*
 * When the event happened, in ns on the host's clock, which was recorded at soonest_ns or later. False where nothing tells, also
 * without a base (NULL): then it was at soonest_ns or later.
 */
bool timebase_place(struct timebase *base, CUevent event, uint64_t soonest_ns, uint64_t *ret_ns);

/* By how many ns what is placed may have been later; 0 without a base. */
uint64_t timebase_unsure_ns(const struct timebase *base);
