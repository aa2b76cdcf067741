/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule, step by step: which process is served, and until when nothing changes. */
#include "sim/machine/schedule_step.h"

/* The whole of a device. */
#define ALL_PERCENT 100

static uint64_t clock_of(const struct schedule_member *member, uint64_t at_ns)
{
	return at_ns - member->lag_ns;
}

/* Whether a member wants the device at that time. */
static void update_standing(struct schedule_member *member, uint64_t at_ns)
{
	uint64_t clock = clock_of(member, at_ns);

	while (member->span_count > 0 && member->span->end_ns <= clock) {
		member->span++;
		member->span_count--;
	}
	member->load = ALL_PERCENT;
	if (member->span_count == 0)
		member->standing = SCHEDULE_IDLE;
	else if (member->is_halted)
		member->standing = SCHEDULE_WAITING;
	else
		member->standing =
			member->span->start_ns > clock ? SCHEDULE_IDLE : SCHEDULE_WAITING;
}

static bool wants(const struct schedule_member *member)
{
	return member->standing == SCHEDULE_WAITING && !member->is_halted;
}

/* A party stands in line where the first of its members does. */
static bool is_first(const struct schedule_view *view, uint32_t index)
{
	for (uint32_t i = 0; i < index; i++) {
		if (wants(&view->member[i]) && view->member[i].party == view->member[index].party)
			return false;
	}
	return true;
}

/* The party that comes after the owner; NULL: none but the owner wants anything. */
static const struct schedule_member *find_next(const struct schedule_view *view)
{
	const struct schedule_member *lowest = NULL;

	for (uint32_t i = 0; i < view->count; i++) {
		const struct schedule_member *member = &view->member[i];

		if (!wants(member) || member->party == view->owner_party || !is_first(view, i))
			continue;
		if (member->slot > view->owner_slot)
			return member;
		if (!lowest)
			lowest = member;
	}
	return lowest;
}

static bool is_owner_there(const struct schedule_view *view)
{
	for (uint32_t i = 0; i < view->count; i++) {
		if (wants(&view->member[i]) && view->member[i].party == view->owner_party)
			return true;
	}
	return false;
}

/* Chooses the owner; returns whether others wait for the end of its slice. */
static bool choose(struct schedule_view *view)
{
	const struct schedule_member *next = find_next(view);

	if (!next)
		return false;
	if (is_owner_there(view) && view->at_ns < view->slice_end_ns)
		return true;
	view->owner_party = next->party;
	view->owner_slot = next->slot;
	view->ready_ns = view->at_ns + view->change_ns;
	view->slice_end_ns = view->ready_ns + view->slice_ns;
	return find_next(view);
}

static void serve(struct schedule_view *view)
{
	uint32_t percent = 0;

	/* Everybody who wants the device waits for it. */
	if (view->at_ns < view->ready_ns)
		return;
	for (uint32_t i = 0; i < view->count; i++) {
		if (wants(&view->member[i]) && view->member[i].party == view->owner_party)
			percent += view->member[i].percent;
	}
	for (uint32_t i = 0; i < view->count; i++) {
		struct schedule_member *member = &view->member[i];

		if (!wants(member) || member->party != view->owner_party)
			continue;
		member->standing = SCHEDULE_SERVED;
		member->load = percent > ALL_PERCENT ? percent : ALL_PERCENT;
	}
}

uint64_t schedule_time_to(const struct schedule_member *member, uint64_t at_ns, uint64_t clock_ns)
{
	uint64_t clock = clock_of(member, at_ns);

	if (clock_ns <= clock)
		return 0;
	if (member->standing == SCHEDULE_WAITING)
		return UINT64_MAX;
	if (member->load == ALL_PERCENT)
		return clock_ns - clock;
	/* A far end need only be far. */
	if (clock_ns - clock > UINT64_MAX / member->load)
		return clock_ns - clock;
	return ((clock_ns - clock) * member->load + ALL_PERCENT - 1) / ALL_PERCENT;
}

uint64_t schedule_plan(struct schedule_view *view, uint64_t limit_ns)
{
	uint64_t until = limit_ns;
	bool are_others;

	for (uint32_t i = 0; i < view->count; i++)
		update_standing(&view->member[i], view->at_ns);
	are_others = choose(view);
	serve(view);
	if (are_others && view->slice_end_ns < until)
		until = view->slice_end_ns;
	if (view->at_ns < view->ready_ns && view->ready_ns < until)
		until = view->ready_ns;
	for (uint32_t i = 0; i < view->count; i++) {
		const struct schedule_member *member = &view->member[i];
		uint64_t more;

		if (member->span_count == 0)
			continue;
		more = schedule_time_to(member, view->at_ns,
			member->standing == SCHEDULE_IDLE ? member->span->start_ns
							  : member->span->end_ns);
		if (more < until - view->at_ns)
			until = view->at_ns + more;
	}
	return until;
}

void schedule_pass(struct schedule_view *view, uint64_t until_ns)
{
	uint64_t passed = until_ns - view->at_ns;

	for (uint32_t i = 0; i < view->count; i++) {
		struct schedule_member *member = &view->member[i];

		if (member->standing == SCHEDULE_WAITING)
			member->lag_ns += passed;
		else if (member->load > ALL_PERCENT)
			member->lag_ns += passed - passed * ALL_PERCENT / member->load;
	}
	view->at_ns = until_ns;
}
