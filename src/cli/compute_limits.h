/* SPDX-License-Identifier: Apache-2.0 */
/* The limits of compute time, as options of commands. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/share.h"

/* Answers of getopt_long(); above all characters. */
enum {
	COMPUTE_LIMITS_CORES = 0x100,
	COMPUTE_LIMITS_CAP,
	COMPUTE_LIMITS_WEIGHT,
	COMPUTE_LIMITS_PRIORITY
};

#define COMPUTE_LIMITS_OPTIONS                                               \
	{"cores", required_argument, NULL, COMPUTE_LIMITS_CORES},            \
		{"cap", required_argument, NULL, COMPUTE_LIMITS_CAP},        \
		{"weight", required_argument, NULL, COMPUTE_LIMITS_WEIGHT},  \
	{                                                                    \
		"priority", required_argument, NULL, COMPUTE_LIMITS_PRIORITY \
	}

/* The limits that were asked for; the others stay as they are. */
struct compute_limits {
	bool has_cores, has_cap, has_weight, has_priority;
	struct share_compute compute; /* 0 where "none" was asked for */
	uint8_t priority;
};

static inline bool compute_limits_is_option(int option)
{
	return option >= COMPUTE_LIMITS_CORES && option <= COMPUTE_LIMITS_PRIORITY;
}

static inline bool compute_limits_is_empty(const struct compute_limits *t)
{
	return !t->has_cores && !t->has_cap && !t->has_weight && !t->has_priority;
}

/* Takes one option. 0, or COMMAND_E_USAGE with err set. */
int compute_limits_read(
	int option, const char *text, struct compute_limits *limits, struct err *err) MUST_CHECK;

/*
 * Changes a device's limits. A limit that was hard (the cap is the cores) stays hard when its cores alone
 * are changed, and one of cores alone is hard. -EINVAL with err set where the cap would be below the cores.
 */
int compute_limits_apply(const struct compute_limits *limits, struct share_compute *compute,
	struct err *err) MUST_CHECK;

/* The same for all devices of a share, and for its priority. */
int compute_limits_apply_all(
	const struct compute_limits *limits, struct share *share, struct err *err) MUST_CHECK;
