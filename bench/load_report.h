/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/compute_load.c saw: when kernels ran, how long calls took; and the line that says it. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Kernels that ran in this time of CLOCK_MONOTONIC, without a gap or one kernel of several. */
struct load_span {
	uint64_t start_ns, end_ns;
	unsigned kernels;
};

struct load_spans {
	struct load_span *span;
	size_t count, room;
};

struct load_times {
	uint64_t *ns;
	size_t count, room;
};

void load_spans_add(struct load_spans *spans, uint64_t start_ns, uint64_t end_ns, unsigned kernels);
void load_times_add(struct load_times *times, uint64_t ns);

/* , "NAME_us": {"count", "p50", "p99", "max"}; sorts the times. */
void load_times_print(FILE *to, const char *name, struct load_times *times);

/*
 * Of [start_ns, end_ns), cut into bins of bin_ns: how many kernels ran (in millionths) and for
 * how long any ran; and when any ran, begins and ends by turns. Sorts the spans.
 */
void load_spans_print(
	FILE *to, struct load_spans *spans, uint64_t start_ns, uint64_t end_ns, uint64_t bin_ns);
