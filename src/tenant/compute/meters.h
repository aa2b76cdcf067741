/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meters: one for each device of this process, and all that its parts keep: which work is let through (meter.h),
 * the turns (turns.h), work that nobody knows (unknowns.h), the streams (streams.h), what is charged (span.h), the
 * credit (credit.h) and the limits (limits.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "tenant/compute/credit.h"
#include "tenant/compute/limits.h"
#include "tenant/compute/span.h"
#include "tenant/compute/streams.h"
#include "tenant/compute/turns.h"
#include "tenant/compute/unknowns.h"
#include "tenant/slice/state.h"

/*
 * A batch ends when it should take so long on the device. An event costs the stream 2.2 us (H200), so
 * metering takes 0.2 % of what is metered.
 */
#define METER_BATCH_NS 1000000u

/* Counted by meter.c. */
struct meter_counts {
	uint64_t launches; /* not booked yet */
	uint64_t batches;  /* begun since the process began */
};

/* Each part is written by the file of its name. The fields that every launch reads stand first. */
struct meter {
	struct lock lock;
	_Atomic bool is_ready;
	struct meter_counts counts;
	struct credit credit;
	struct spans spans;
	uint64_t random;   /* of doubts.c */
	uint64_t since_ns; /* as said in the region */
	uint32_t waits;	   /* of threads for the device, under way */
	struct unknowns unknowns;
	struct limits limits;
	struct device *device;
	struct region_compute *books;
	struct turns turns;
	struct streams streams;
};

/* The device's meter, made ready on first use. */
struct meter *meter_of(struct device *device);

/*
 * Whether there is a region to meter by. A child of fork() has nothing yet to look at. Where our own machinery has
 * failed, memory is refused, and time goes on to be metered.
 */
bool meters_have_region(void);

/*
 * Says in the region since when work of this process is under way that is not charged yet, and until when it should
 * keep the device busy; 0: it does not.
 */
void meter_say_busy_since(struct meter *meter, uint64_t since_ns);
void meter_count_wait(struct meter *meter, bool is_begin);
void meter_say_busy_until(struct meter *meter, uint64_t until_ns);

/* The meters, in the order of the region's devices; those that are not ready have is_ready false. */
extern struct meter meters[REGION_DEVICES];

/* Each meter that is ready. */
#define EACH_METER(m)                                                    \
	for (struct meter *m = meters; m < meters + REGION_DEVICES; m++) \
		if (atomic_load(&m->is_ready))
