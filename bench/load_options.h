/* SPDX-License-Identifier: Apache-2.0 */
/* What bench/compute_load.c is told. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum load_shape {
	LOAD_STREAM,
	LOAD_STREAMS4,
	LOAD_GRAPH,
	LOAD_COOP,
	LOAD_SYNC,
	LOAD_PERIODIC,
	LOAD_TRAIN,
	LOAD_CALIBRATE,
	LOAD_COST
};

struct load_options {
	enum load_shape shape;
	uint64_t duration_us, blocks, graph, burst, period_us, ahead_us, bin_us, host_us, pause_us,
		each, jitter, copy_kib;
	double rate, seconds;
	const char *wait;
};

extern struct load_options load_option;

const char *load_shape_name(void);

/* Reads NAME=VALUE. Returns false for what is no option. */
bool load_option_read(const char *text);
