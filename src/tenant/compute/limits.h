/* SPDX-License-Identifier: Apache-2.0 */
/* A meter's limits: what is looked at, now and then, by whoever comes along. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tenant/slice/quota.h"

struct device;

/* Of a meter; written by limits.c alone. */
struct limits {
	bool is_read;	   /* else nothing is known, and nothing may pass */
	bool is_limited;   /* there is a cap */
	bool is_suspended; /* nothing new may reach the device, by the share or by a signal */
	bool is_blocked;   /* the monitor lets others go first */
	bool is_asked;	   /* and was asked whether it lives */
	bool is_watched; /* it has switched limits off for now, and looks at how busy the slice is */
	uint32_t
		contended_percent; /* processes that take no turns use of what they may; 0: there are none */
	uint32_t counted_permille;   /* of elapsed time: what is not others' (untracked.h) */
	bool is_unmetered;	     /* work passes without a batch, as far as this device says */
	bool is_backlogged;	     /* it did until now, and what it left is to be found */
	uint64_t unmetered_until_ns; /* until then it did; 0: it never has */
	struct quota_limits granted;
	uint64_t blocked_since_ns; /* 0: not */
	uint64_t seen_batches;	   /* of the meter's, when HAMi's monitor was last told */
	uint64_t shown_ns; /* of what was charged, when the region's utilization was last set */
	uint64_t shown_at_ns;
};

/* clang-format off */
#define LIMITS_NULL {.counted_permille = 1000}
/* clang-format on */

/*
 * A context of the device is about to come: reads its limits where that was never done, and lets work be metered by them. Not with
 * a meter's lock.
 */
void limits_begin(struct device *device);

/* For a child of fork(). */
void limits_reset_after_fork(void);

/* Looks whether anything has changed, if it is time to. Not with a meter's lock. */
void limits_poll(void);
