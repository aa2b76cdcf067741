/* SPDX-License-Identifier: Apache-2.0 */
/* The driver as bench/compute_load.c uses it. Whatever fails ends the process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bench/load_kernel.h"
#include "bench/load_report.h"
#include "gpu/abi/cuda.h"

#define LOAD_STREAMS 4
#define LOAD_TRIES   20 /* of what is measured before the load begins */

extern CUstream load_stream[LOAD_STREAMS];
extern CUfunction load_nothing; /* a kernel that does nothing */

void load_need(CUresult r, const char *what);

/* A context, streams, the kernels; and a graph where the shape asks for it. */
void load_prepare(void);

/* Busy for duration_ns, or loops turns where that is not 0. */
void load_launch(CUstream stream, uint64_t duration_ns, uint64_t loops, unsigned blocks);

/* One call as the shape has it. Returns the count of kernels. */
unsigned load_launch_shape(CUstream stream);

/* How many kernels have noted when they ran; 0 on the simulated node. */
uint32_t load_count_records(void);

struct load_record load_read_record(uint32_t index);

/*
 * What is to be added to the device's time for ours: of the try that the fewest ns lie around. Returns
 * false where no code runs. The kernels do nothing, so whoever limits the process need not slow them.
 */
bool load_compare_clocks(int64_t *ret_offset_ns);

/* Takes the device's own word for when kernels ran. Returns how many it has forgotten. */
uint32_t load_read_spans(int64_t offset_ns, struct load_spans *spans);
