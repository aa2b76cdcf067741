/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices and slices used in the last hour, and how fast their counters run.
 *
 * A series is known by its key for as long as it is seen. There are at most SERIES_MOST of them with SERIES_POINTS points each: of
 * more, those that come later have none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bits.h"

#define SERIES_MOST	512
#define SERIES_POINTS	120
#define SERIES_POINT_NS 30000000000ull
#define SERIES_COUNTERS 4
#define SERIES_UNKNOWN	(-1)

struct series_point {
	uint32_t memory_mib;
	uint16_t busy_permille;
};

struct series {
	struct series *next;
	char *key;
	unsigned id; /* no other has it, or had it before */
	bool is_seen, has_rates;
	uint64_t counters[SERIES_COUNTERS], read_ns;
	double rates[SERIES_COUNTERS]; /* per nanosecond, since the reading before */
	uint64_t refusal_count;	       /* the caller's */
	uint32_t memory_mib;	       /* of the next point */
	uint64_t busy_weight_ns, busy_ns, set_ns;
	struct series_point points[SERIES_POINTS];
	unsigned first, count;
};

struct series_list {
	struct series *first;
	unsigned count, next_id;
	uint64_t point_ns; /* of the last point; 0: there is none yet */
};

/* Those that are not seen until series_end() are forgotten there. */
void series_begin(struct series_list *list);
void series_end(struct series_list *list, uint64_t now_ns);

/* Finds it, or makes it; ret_is_new may be NULL. NULL: there are too many, or no memory. */
struct series *series_see(struct series_list *list, const char *key, bool *ret_is_new);

/* Its counters as they are now. The rates change where the reading before is at least half a second old. */
void series_count(struct series *series, uint64_t now_ns, const uint64_t *counters);

/* What it uses now. A point has the mean of busy since the point before; SERIES_UNKNOWN: it is not told. */
void series_set(struct series *series, uint64_t now_ns, uint64_t memory_bytes, int busy_permille);

/* All points, as an object of JSON. */
void series_write(const struct series_list *list, FILE *out);

/* Fit for a zeroed one. */
void series_clear(struct series_list *list);
