/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment of a tenant says: its quotas, where no share file does, and its slice's files.
 *
 * The tenant library goes by it, and `vgpu doctor` reads it of another process.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/option_table.h"

#define OPTIONS_DEVICES OPTION_MEMBERS /* devices that the region's layout has room for */

#define OPTIONS_UNCLEAR 8 /* options that are remembered as not understood */

/* GPU_CORE_UTILIZATION_POLICY */
enum options_policy { OPTIONS_POLICY_DEFAULT, OPTIONS_POLICY_FORCE, OPTIONS_POLICY_DISABLE };

#define OPTIONS_PRIORITY     1
#define OPTIONS_MAX_PRIORITY 9
#define OPTIONS_BURST_MS     1000 /* the longest: a share says less */
#define OPTIONS_NOT_GIVEN    UINT32_MAX

/* A field for each row of options.def, and what follows from them. */
struct options {
	uint64_t memory_limit_bytes;			 /* 0: none */
	uint64_t memory_limit_of_bytes[OPTIONS_DEVICES]; /* 0: none of its own */
	unsigned cores_percent;				 /* 0: no limit */
	unsigned cores_of_percent[OPTIONS_DEVICES];	 /* 0: none of its own */
	unsigned policy;				 /* of enum options_policy */
	unsigned priority;
	const char *turns_path; /* NULL: not given; so are the other paths */
	unsigned burst_ms;
	const char *region_path;
	const char *share_path;
	unsigned shows_slice_utilization; /* 0: of the device; 1: of the slice */
	bool is_oversubscribed;		  /* memory may be placed beyond the device's */
	bool has_oom_killer;		  /* the largest process goes where a quota was lowered */
	unsigned log_number;		  /* OPTIONS_NOT_GIVEN, or a level */
	const char *log_levels;

	bool has_indexed_limit, has_indexed_cores; /* one device has a limit of its own */
	bool has_priority;			   /* it was given */
	bool is_broken; /* a quota or limit was asked for in words that are none */
	/* Options whose values were not understood, by their names in options.def. */
	const char *unclear[OPTIONS_UNCLEAR];
	unsigned unclear_count;
};

/*
 * Reads the options; the values must live as long as they. Where a quota or limit is not understood,
 * is_broken is set, and memory is to be refused rather than to be had without a limit.
 */
void options_read(struct options *ret_options, const struct option_source *source);

/* The table, which begins with the rows of log levels. */
#define OPTIONS_LOG_ROWS 2
extern const struct option_row options_table[];
extern const size_t options_table_count;
