/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule of a device: which process it works for, and what time it is for that process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/machine.h"

/*
 * A process has a clock for each device. It goes with CLOCK_BOOTTIME while the device works for the
 * process or the process has no work there. It stands still while the process waits for its time slice,
 * and goes slower where the clients of an MPS server want more than there is. Work is given and its
 * end is told in the time of this clock. A process alone has the clock CLOCK_BOOTTIME.
 */

/* The calling process's clock now. */
uint64_t schedule_now(struct machine *machine, int device);

/*
 * schedule_begin() tells the clock and stops it until schedule_end(), which gives the device work from
 * start_ns to end_ns; none where end_ns <= start_ns. Nothing must be waited for in between.
 */
uint64_t schedule_begin(struct machine *machine, int device);
void schedule_end(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns);

/* A moment: when the clock of a process shows that. */
struct schedule_point {
	uint64_t start_time; /* of the process, with its slot */
	uint64_t clock_ns;
	uint32_t slot;
	int device;
};

/* Whether that was, or the process is gone. */
bool schedule_is_past(struct machine *machine, const struct schedule_point *point);

/* As schedule_expect(). */
uint64_t schedule_expect_point(
	struct machine *machine, const struct schedule_point *point, bool *ret_is_end);

/* Whether the point is of the calling process, or of another one that works on the same device: with what it has of it. */
bool schedule_is_own(const struct machine *machine, const struct schedule_point *point);
bool schedule_is_beside(
	const struct machine *machine, int device, const struct schedule_point *point);

/*
 * Between schedule_begin() and schedule_end(): the calling process's clock is to stand still at at_ns until that moment of
 * another process that works on the same device. False: it waits for too much already.
 */
bool schedule_hold(struct machine *machine, int device, uint64_t at_ns,
	const struct schedule_point *point) __attribute__((warn_unused_result));

/* No work goes on after clock_ns: it was thrown away. */
void schedule_cut(struct machine *machine, int device, uint64_t clock_ns);

/* When the clock showed clock_ns; false: it does not yet. Of long ago it is an estimate. */
bool schedule_find_time(
	struct machine *machine, int device, uint64_t clock_ns, uint64_t *ret_time_ns);

/*
 * When to ask whether the clock shows clock_ns, as CLOCK_BOOTTIME; 0: it does. With *ret_is_end it
 * is when it will, if nothing new comes; else a time before.
 */
uint64_t schedule_expect(struct machine *machine, int device, uint64_t clock_ns, bool *ret_is_end);

/* Brings the schedule up to now, before something changes that it depends on, or reads it. */
void schedule_catch_up(struct machine *machine, int device, uint64_t now_ns);

/* All of them, before a process is forgotten: what was served until now is counted. Under the machine's lock. */
void schedule_catch_up_all(struct machine *machine);

/* The slot begins anew: no work, and its clocks are CLOCK_BOOTTIME. Under the machine's lock. */
void schedule_reset_slot(struct machine *machine, uint32_t slot);
