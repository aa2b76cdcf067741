/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: which process a device works for, and what time it is for that process. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/machine.h"

struct layout_span;

/*
 * A process has a clock for each device. It goes with CLOCK_MONOTONIC while the device works for the
 * process or the process has no work there, stands still while the process has to wait for its turn,
 * and goes slower where the clients of an MPS server want more than there is. Work is given and its
 * end is told in the time of this clock. A process alone has the clock CLOCK_MONOTONIC.
 */

/* The calling process's clock now. */
uint64_t schedule_now(struct machine *machine, int device);

/*
 * schedule_begin() tells the clock and stops it until schedule_end(), which gives the device work from
 * start_ns to end_ns; none where end_ns <= start_ns. Nothing must be waited for in between.
 */
uint64_t schedule_begin(struct machine *machine, int device);
void schedule_end(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns);

/* No work goes on after clock_ns: it was thrown away. */
void schedule_cut(struct machine *machine, int device, uint64_t clock_ns);

/* When the clock showed clock_ns; false: it does not yet. Of long ago it is an estimate. */
bool schedule_find_time(
	struct machine *machine, int device, uint64_t clock_ns, uint64_t *ret_time_ns);

/*
 * When to look whether the clock shows clock_ns, as CLOCK_MONOTONIC; 0: it does. With *ret_is_end it
 * is when it will, if nothing new comes; else a time before.
 */
uint64_t schedule_expect(struct machine *machine, int device, uint64_t clock_ns, bool *ret_is_end);

/* Brings the devices' turns up to now, for who changes what they depend on, or reads them. */
void schedule_catch_up(struct machine *machine, int device, uint64_t now_ns);

/* The slot begins anew: no work, and its clocks are CLOCK_MONOTONIC. Under the machine's lock. */
void schedule_reset_slot(struct machine *machine, uint32_t slot);

/*
 * schedule_step.c: who is served next, without a clock, a lock, or memory of its own.
 */
enum schedule_standing {
	SCHEDULE_IDLE,	  /* no work now: the clock goes */
	SCHEDULE_SERVED,  /* the clock goes, slower under load */
	SCHEDULE_WAITING, /* the clock stands still */
};

struct schedule_member {
	uint32_t slot;
	uint32_t percent;
	uint64_t party; /* those of one party are served together */
	uint64_t lag_ns;
	const struct layout_span *span; /* what is left of its work */
	uint32_t span_count;
	uint32_t load; /* 100 and less: full speed; 200: half of it */
	bool is_halted;
	enum schedule_standing standing;
};

struct schedule_view {
	uint64_t at_ns;
	uint64_t slice_ns; /* 0: none, everybody is of one party */
	uint64_t slice_end_ns;
	uint64_t owner_party;
	uint32_t owner_slot;
	uint32_t count;
	struct schedule_member member[MACHINE_SLOTS_MAX]; /* by slot */
};

/* Says who is served from at_ns on, and returns until when, at most limit_ns. */
uint64_t schedule_plan(struct schedule_view *view, uint64_t limit_ns);
/* Lets time pass until then, as was planned. */
void schedule_pass(struct schedule_view *view, uint64_t until_ns);
/* The time that a member's clock needs to show clock_ns, at its speed of now; UINT64_MAX: never. */
uint64_t schedule_time_to(const struct schedule_member *member, uint64_t at_ns, uint64_t clock_ns);
