/* SPDX-License-Identifier: Apache-2.0 */
/* The terms of compute time, as options of commands. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/err.h"
#include "policy/share.h"

/* What getopt_long() answers; above all characters. */
enum { TERMS_CORES = 0x100, TERMS_CAP, TERMS_WEIGHT, TERMS_PRIORITY };

#define TERMS_OPTIONS                                               \
	{"cores", required_argument, NULL, TERMS_CORES},            \
		{"cap", required_argument, NULL, TERMS_CAP},        \
		{"weight", required_argument, NULL, TERMS_WEIGHT},  \
	{                                                           \
		"priority", required_argument, NULL, TERMS_PRIORITY \
	}

/* What was asked for; what was not stays as it is. */
struct terms {
	bool has_cores, has_cap, has_weight, has_priority;
	struct share_compute compute; /* 0 where "none" was asked for */
	uint8_t priority;
};

static inline bool terms_is_option(int option)
{
	return option >= TERMS_CORES && option <= TERMS_PRIORITY;
}

static inline bool terms_is_empty(const struct terms *t)
{
	return !t->has_cores && !t->has_cap && !t->has_weight && !t->has_priority;
}

/* Takes one option. 0, or COMMAND_E_USAGE with err set. */
int terms_read(int option, const char *text, struct terms *terms, struct err *err) MUST_CHECK;

/*
 * Changes a device's terms. A limit that was hard (the cap is the cores) stays hard when its cores alone
 * are changed, and one of cores alone is hard. -EINVAL with err set where the cap would be below the cores.
 */
int terms_apply(
	const struct terms *terms, struct share_compute *compute, struct err *err) MUST_CHECK;

/* The same for all devices of a share, and for its priority. */
int terms_apply_all(const struct terms *terms, struct share *share, struct err *err) MUST_CHECK;
