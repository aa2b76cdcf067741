/* SPDX-License-Identifier: Apache-2.0 */
/* A device's schedule out of the shared file, and back into it. */
#include "sim/machine/schedule_view.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/machine/utilization.h"

/* More steps than any view's slices between two calls; beyond it the rest of the time is dropped. */
#define STEPS_MAX 1000000

/* Parties of one process have this bit, servers of MPS have it not. */
#define PARTY_OF_ONE (UINT64_C(1) << 63)

void schedule_view_set_member(struct layout_device *device, uint32_t slot, bool is_member)
{
	uint64_t bit = UINT64_C(1) << (slot % 64);

	if (is_member)
		device->members[slot / 64] |= bit;
	else
		device->members[slot / 64] &= ~bit;
}

static uint64_t party_of(const struct layout_slot *from, uint32_t slot, uint64_t slice_ns)
{
	if (slice_ns == 0)
		return PARTY_OF_ONE;
	return from->server ? from->server : PARTY_OF_ONE | slot;
}

static void add(
	const struct machine *machine, int device, uint32_t slot, struct schedule_view *view)
{
	const struct layout_slot *from = &machine->layout->slot[slot];
	const struct layout_schedule *schedule = &from->device[device].schedule;
	uint32_t count = schedule->span_count;
	uint64_t holds = schedule->hold_count;

	view->member[view->count++] = (struct schedule_member){
		.slot = slot,
		.percent = from->percent,
		.party = party_of(from, slot, view->slice_ns),
		.lag_ns = schedule->lag_ns,
		.span = schedule->span,
		.span_count = count <= LAYOUT_SPANS ? count : LAYOUT_SPANS,
		.start_time = from->start_time,
		.hold = schedule->hold,
		.hold_count = (uint32_t)(holds <= LAYOUT_HOLDS ? holds : LAYOUT_HOLDS),
		.is_halted = layout_stage(from) == MACHINE_CHECKPOINTED,
	};
}

static bool has(const struct schedule_view *view, uint32_t slot)
{
	for (uint32_t i = 0; i < view->count; i++)
		if (view->member[i].slot == slot)
			return true;
	return false;
}

/* Whose clock a member waits for is there, too, without work. */
static void add_others(const struct machine *machine, int unit, struct schedule_view *view)
{
	for (uint32_t i = 0; i < view->count; i++)
		for (uint32_t j = 0; j < view->member[i].hold_count; j++) {
			uint32_t slot = view->member[i].hold[j].slot;
			const struct layout_slot *other;

			if (slot >= MACHINE_PROCESSES_MAX || has(view, slot))
				continue;
			other = &machine->layout->slot[slot];
			if (layout_is_used(other) && layout_unit(other, layout_card(unit)) == unit)
				add(machine, layout_card(unit), slot, view);
		}
}

void schedule_view_load(const struct machine *machine, int unit, struct schedule_view *ret_view)
{
	const struct layout_device *of = &machine->layout->device[unit];

	ret_view->at_ns = of->at_ns;
	ret_view->slice_ns = (uint64_t)machine->layout->board.board.time_slice_us * 1000;
	ret_view->slice_end_ns = of->slice_end_ns;
	ret_view->change_ns = (uint64_t)machine->layout->board.board.change_us * 1000;
	ret_view->ready_ns = of->ready_ns;
	ret_view->owner_party = of->owner_party;
	ret_view->owner_slot = of->owner_slot;
	ret_view->count = 0;
	for (uint32_t word = 0; word < MACHINE_PROCESSES_MAX / 64; word++)
		for (uint64_t bits = of->members[word]; bits != 0; bits &= bits - 1) {
			uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);

			/* Of a process that is gone nothing goes on. */
			if (layout_is_used(&machine->layout->slot[slot]))
				add(machine, layout_card(unit), slot, ret_view);
		}
	add_others(machine, unit, ret_view);
}

/* What a step was for one member: its speed, and its work. */
static void note_step(struct machine *machine, int device, const struct schedule_member *member,
	uint64_t from_ns, uint64_t until_ns)
{
	struct layout_slot_device *of = &machine->layout->slot[member->slot].device[device];
	struct layout_schedule *schedule = &of->schedule;
	uint32_t load = member->standing == SCHEDULE_WAITING ? 0 : member->load;

	if (load != schedule->load) {
		machine->layout->knot[member->slot][device][schedule->knot_count % LAYOUT_KNOTS] =
			(struct layout_knot){from_ns - member->lag_ns, from_ns};
		schedule->knot_count++;
		schedule->load = load;
	}
	if (member->standing == SCHEDULE_SERVED)
		utilization_credit(&of->utilization, from_ns, until_ns,
			(until_ns - from_ns) * 100 / member->load);
}

/* Holds that are behind the clock are over. */
static void drop_holds(const struct schedule_view *view, const struct schedule_member *member,
	struct layout_schedule *schedule)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < member->hold_count; i++)
		if (schedule->hold[i].at_ns >= view->at_ns - member->lag_ns ||
			!schedule_is_met(view, &schedule->hold[i]))
			schedule->hold[kept++] = schedule->hold[i];
	schedule->hold_count = kept;
}

/* Members that are no more in the view have no work, or are gone. */
static void store(struct machine *machine, int unit, const struct schedule_view *view)
{
	struct layout_device *of = &machine->layout->device[unit];
	uint64_t members[MACHINE_PROCESSES_MAX / 64] = {0};

	for (uint32_t i = 0; i < view->count; i++) {
		const struct schedule_member *member = &view->member[i];
		struct layout_schedule *schedule =
			&machine->layout->slot[member->slot].device[layout_card(unit)].schedule;

		schedule->lag_ns = member->lag_ns;
		if (member->span != schedule->span)
			memmove(schedule->span, member->span,
				member->span_count * sizeof(schedule->span[0]));
		schedule->span_count = member->span_count;
		if (member->hold_count > 0)
			drop_holds(view, member, schedule);
		if (member->span_count > 0 || schedule->hold_count > 0)
			members[member->slot / 64] |= UINT64_C(1) << (member->slot % 64);
	}
	memcpy(of->members, members, sizeof(members));
	of->slice_end_ns = view->slice_end_ns;
	of->ready_ns = view->ready_ns;
	of->owner_party = view->owner_party;
	of->owner_slot = view->owner_slot;
	of->at_ns = view->at_ns;
}

/* Plans one step of at most limit_ns, notes it, and lets its time pass. */
static void step(struct machine *machine, int unit, uint64_t limit_ns, struct schedule_view *view)
{
	uint64_t from = view->at_ns, until = schedule_plan(view, limit_ns);
	bool is_served = false;

	for (uint32_t i = 0; i < view->count; i++) {
		is_served = is_served || view->member[i].standing == SCHEDULE_SERVED;
		note_step(machine, layout_card(unit), &view->member[i], from, until);
	}
	if (is_served)
		utilization_credit(
			&machine->layout->device[unit].utilization, from, until, until - from);
	schedule_pass(view, until);
}

bool schedule_view_advance(struct machine *machine, int unit, uint64_t now_ns)
{
	/* 18 KiB: too much for a program's stack */
	_cleanup_free_ struct schedule_view *view = malloc(sizeof(*view));

	if (!view)
		return true; /* as with others: it is looked at again */
	schedule_view_load(machine, unit, view);
	if (now_ns < view->at_ns)
		now_ns = view->at_ns;
	for (int steps = 0; view->count > 0 && view->at_ns < now_ns && steps < STEPS_MAX; steps++)
		step(machine, unit, now_ns, view);
	view->at_ns = now_ns;
	store(machine, unit, view);
	return view->count > 1 ||
	       (view->count == 1 && view->member[0].slot != (uint32_t)machine->slot);
}
