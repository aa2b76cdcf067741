/* SPDX-License-Identifier: Apache-2.0 */
/* Slices with compute limits, and how long the simulated device served them, by its own count. */
#pragma once

#include "tests/tenant/tenant.h"

#define METER_SETTLE_US 300000 /* until contexts are made and the first debts are paid */
#define METER_WINDOW_US 1500000
#define METER_POLL_US	50000 /* how often the library looks at its limits, where it works */

/* Cards whose memory is so slow that a megabyte takes a millisecond. */
#define METER_SLOW_BOARD "base = h200x2\nmemory_bus_bits = 8\nclock_memory_mhz = 500\n"

/* A board file of the node's own in place of its machine; before anything is started. */
void meter_use_board(struct node *node, const char *text);

/*
 * A slice of that memory quota whose share has these limits for each device ("cores 30 cap 50"; NULL: no line)
 * and these lines of its own before them ("turns PATH\nsuspended\n", or "").
 */
struct slice *meter_slice(
	struct node *node, const char *name, const char *lines, const char *limits);
void meter_change(struct slice *slice, const char *lines, const char *limits);

/* A tenant with a primary context on the device that has begun to work ("compute ..."). */
struct tenant *meter_start(
	struct slice *slice, const char *door, int device, const char *setting, const char *work);

/* How long the device has worked for the slice's processes, as they are now. */
uint64_t meter_busy_ns(const struct slice *slice, int device);

/* The share in tenths of a percent that the slice gets in the time from now on. */
unsigned meter_permille(const struct slice *slice, int device, unsigned window_us);

/* How often the simulated driver's function was called. */
uint64_t meter_calls(const struct node *node, const char *symbol);

/* What the slice's region says of compute time on its first device: a copy, until the next call. */
struct region_compute;
const struct region_compute *meter_books(const struct slice *slice);

/* The slice's region file, mapped; the node's end unmaps nothing. */
struct region_file;
struct region_file *meter_region(const struct slice *slice);
