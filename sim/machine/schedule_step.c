/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule, step by step: which process is served, and until when nothing changes. */
#include "sim/machine/schedule_step.h"

/* The whole of a device. */
#define ALL_PERCENT 100

static uint64_t clock_of(const struct schedule_member *member, uint64_t at_ns)
{
	return at_ns - member->lag_ns;
}

static const struct schedule_member *find(
	const struct schedule_view *view, const struct layout_hold *hold)
{
	for (uint32_t i = 0; i < view->count; i++)
		if (view->member[i].slot == hold->slot &&
			view->member[i].start_time == hold->start_time)
			return &view->member[i];
	return NULL;
}

bool schedule_is_met(const struct schedule_view *view, const struct layout_hold *hold)
{
	const struct schedule_member *other = find(view, hold);

	return !other || clock_of(other, view->at_ns) >= hold->until_ns;
}

/* What a member waits for, or NULL. */
static const struct layout_hold *find_hold(
	const struct schedule_view *view, const struct schedule_member *member)
{
	uint64_t clock = clock_of(member, view->at_ns);

	for (uint32_t i = 0; i < member->hold_count; i++)
		if (member->hold[i].at_ns <= clock && !schedule_is_met(view, &member->hold[i]))
			return &member->hold[i];
	return NULL;
}

/*
 * Whether a member is held. A process waits as a whole for what one of its streams waits for, so processes may come to wait
 * for each other that would not on a card: then none does.
 */
static bool is_held(const struct schedule_view *view, const struct schedule_member *member)
{
	const struct schedule_member *at = member;
	const struct layout_hold *hold;

	for (uint32_t i = 0; i < view->count; i++) {
		hold = find_hold(view, at);
		if (!hold)
			return i > 0;
		at = find(view, hold);
		if (at == member)
			return false;
	}
	return true;
}

/* Whether a member wants the device at that time. */
static void update_standing(const struct schedule_view *view, struct schedule_member *member)
{
	uint64_t clock = clock_of(member, view->at_ns);

	while (member->span_count > 0 && member->span->end_ns <= clock) {
		member->span++;
		member->span_count--;
	}
	member->load = ALL_PERCENT;
	member->is_held = is_held(view, member);
	if (member->is_held)
		member->standing = SCHEDULE_WAITING;
	else if (member->span_count == 0)
		member->standing = SCHEDULE_IDLE;
	else if (member->is_halted)
		member->standing = SCHEDULE_WAITING;
	else
		member->standing =
			member->span->start_ns > clock ? SCHEDULE_IDLE : SCHEDULE_WAITING;
}

static bool wants(const struct schedule_member *member)
{
	return member->standing == SCHEDULE_WAITING && !member->is_halted && !member->is_held;
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

/* The time until a hold of a member changes anything. */
static uint64_t time_to_hold(const struct schedule_view *view, const struct schedule_member *member,
	const struct layout_hold *hold)
{
	if (schedule_is_met(view, hold))
		return UINT64_MAX;
	if (hold->at_ns > clock_of(member, view->at_ns))
		return schedule_time_to(member, view->at_ns, hold->at_ns);
	return schedule_time_to(find(view, hold), view->at_ns, hold->until_ns);
}

static void come_earlier(const struct schedule_view *view, uint64_t more_ns, uint64_t *until_ns)
{
	if (more_ns < *until_ns - view->at_ns)
		*until_ns = view->at_ns + more_ns;
}

uint64_t schedule_plan(struct schedule_view *view, uint64_t limit_ns)
{
	uint64_t until = limit_ns;
	bool are_others;

	for (uint32_t i = 0; i < view->count; i++)
		update_standing(view, &view->member[i]);
	are_others = choose(view);
	serve(view);
	if (are_others && view->slice_end_ns < until)
		until = view->slice_end_ns;
	if (view->at_ns < view->ready_ns && view->ready_ns < until)
		until = view->ready_ns;
	for (uint32_t i = 0; i < view->count; i++) {
		const struct schedule_member *member = &view->member[i];

		for (uint32_t j = 0; j < member->hold_count; j++)
			come_earlier(view, time_to_hold(view, member, &member->hold[j]), &until);
		if (member->span_count > 0)
			come_earlier(view,
				schedule_time_to(member, view->at_ns,
					member->standing == SCHEDULE_IDLE ? member->span->start_ns
									  : member->span->end_ns),
				&until);
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
