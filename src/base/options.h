/* SPDX-License-Identifier: Apache-2.0 */
/* What the environment says to the tenant library: read once, checked whole, never guessed at. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"

#define OPTIONS_DEVICES 16 /* devices that the region's layout has room for */

#define OPTIONS_UNCLEAR 8 /* options that are remembered as not understood */

/* GPU_CORE_UTILIZATION_POLICY */
enum options_policy { OPTIONS_POLICY_DEFAULT, OPTIONS_POLICY_FORCE, OPTIONS_POLICY_DISABLE };

#define OPTIONS_PRIORITY     1
#define OPTIONS_MAX_PRIORITY 9
#define OPTIONS_BURST_NS     UINT64_C(10000000)

struct options {
	uint64_t memory_limit_bytes;			 /* 0: none */
	uint64_t memory_limit_of_bytes[OPTIONS_DEVICES]; /* 0: none of its own */
	bool has_indexed_limit;				 /* one of the above is not 0 */
	unsigned cores_percent;				 /* 0: no limit */
	unsigned cores_of_percent[OPTIONS_DEVICES];	 /* 0: none of its own */
	bool has_indexed_cores;				 /* one of the above is not 0 */
	enum options_policy policy;
	unsigned priority;
	bool has_priority;	/* it was given */
	const char *turns_path; /* NULL: not given */
	uint64_t burst_ns;
	const char *region_path; /* NULL: not given */
	const char *share_path;	 /* NULL: not given */
	bool shows_slice_utilization;
	bool is_oversubscribed; /* memory may be placed beyond the device's */
	bool has_oom_killer;	/* the largest process goes where a quota was lowered */
	bool is_broken;		/* a quota or limit was asked for in words that are none */
	/* Options whose values were not understood, by their names in options.def. */
	const char *unclear[OPTIONS_UNCLEAR];
	unsigned unclear_count;
};

/*
 * Reads the options with lookup (getenv's shape; the strings must live as long as the options) and
 * sets the log levels. What cannot be understood is logged as an error that names the option, its
 * value and what would be right; where that was a quota, is_broken is set, and the caller must
 * refuse memory rather than run without a limit.
 */
void options_read(struct options *ret_options, char *(*lookup)(const char *name));

/*
 * The same for somebody who asks what another process was told: nothing is logged, and all levels
 * are off afterwards.
 */
void options_check(struct options *ret_options, char *(*lookup)(const char *name));
