/* SPDX-License-Identifier: Apache-2.0 */
/* Which process a device serves next: no clock, no lock, no memory of its own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine/layout.h"

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
	uint64_t start_time; /* of the process */
	const struct layout_hold *hold;
	uint32_t hold_count;
	uint32_t load; /* 100 and less: full speed; 200: half of it */
	bool is_halted;
	bool is_held; /* by one of its holds, so it wants nothing */
	enum schedule_standing standing;
};

struct schedule_view {
	uint64_t at_ns;
	uint64_t slice_ns; /* 0: none, everybody is of one party */
	uint64_t slice_end_ns;
	uint64_t change_ns; /* what a change of the owner takes */
	uint64_t ready_ns;  /* the last one is over then */
	uint64_t owner_party;
	uint32_t owner_slot;
	uint32_t count;
	struct schedule_member member[MACHINE_PROCESSES_MAX]; /* by slot */
};

/* Whether the other process's clock shows what the hold waits for, or that one is gone. */
bool schedule_is_met(const struct schedule_view *view, const struct layout_hold *hold);

/* Says which members are served from at_ns on, and returns until when, at most limit_ns. */
uint64_t schedule_plan(struct schedule_view *view, uint64_t limit_ns);
/* Lets time pass until then, as was planned. */
void schedule_pass(struct schedule_view *view, uint64_t until_ns);
/* The time that a member's clock needs to show clock_ns, at its speed of now; UINT64_MAX: never. */
uint64_t schedule_time_to(const struct schedule_member *member, uint64_t at_ns, uint64_t clock_ns);
