/* SPDX-License-Identifier: Apache-2.0 */
/* The schedules of the devices in the shared file: each call brings one forward up to now. */
#include "sim/machine/schedule.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "sim/machine/reap.h"
#include "sim/machine/schedule_view.h"
#include "sim/machine/utilization.h"

/* How long to wait for a lock whose holder is stopped, and to do without it after that. */
#define LOCK_WAIT_NS	UINT64_C(100000000)
#define LOCK_WITHOUT_NS UINT64_C(1000000000)
/* How often to look for processes that died with work; the one slow thing here. */
#define REAP_NS UINT64_C(50000000)
/* How far ahead others are taken to stay: one may die, and then it goes faster than foreseen. */
#define FORESEE_NS UINT64_C(10000000)

static struct layout_schedule *own(const struct machine *machine, int device)
{
	return &state_file_own_slot(machine)->device[device].schedule;
}

static const struct layout_schedule *schedule_of(
	const struct machine *machine, uint32_t slot, int device)
{
	return &machine->layout->slot[slot].device[device].schedule;
}

static int own_unit(const struct machine *machine, int device)
{
	return layout_unit(state_file_own_slot(machine), device);
}

static int wait_for_lock(pthread_mutex_t *mutex)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += (long)LOCK_WAIT_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_mutex_timedlock(mutex, &until);
}

/*
 * The lock of the device, or NULL. A stopped process that has the lock holds others up for a moment,
 * once a second: they go on as if each were alone. One that dies leaves nothing that is not right
 * enough: clocks of processes stand or go a little wrong by less than one step.
 */
static pthread_mutex_t *take(struct machine *machine, int unit, uint64_t now_ns)
{
	pthread_mutex_t *mutex = &machine->layout->device[unit].lock.mutex;
	int r = pthread_mutex_trylock(mutex);

	/* Relaxed, both: only how long to try. */
	if (r == EBUSY && atomic_load_explicit(&machine->without_lock_until_ns,
				  memory_order_relaxed) <= now_ns) {
		r = wait_for_lock(mutex);
		if (r == ETIMEDOUT)
			atomic_store_explicit(&machine->without_lock_until_ns,
				machine_now_ns() + LOCK_WITHOUT_NS, memory_order_relaxed);
	}
	return lock_is_taken(mutex, r) ? mutex : NULL;
}

/*
 * Brings the schedule forward and returns the time that it is at. Without the lock that is now. Says
 * whether other processes than this have work.
 */
static uint64_t advance(struct machine *machine, int unit, const pthread_mutex_t *lock,
	uint64_t now_ns, bool *ret_are_others)
{
	*ret_are_others = lock && schedule_view_advance(machine, unit, now_ns);
	return lock ? machine->layout->device[unit].at_ns : now_ns;
}

/* Not under the device's lock, for it takes the machine's. */
static void reap_at_times(struct machine *machine, int unit, uint64_t now_ns)
{
	struct layout_device *of = &machine->layout->device[unit];

	/* Relaxed, both: two that look at the same time do no harm. */
	if (now_ns - atomic_load_explicit(&of->reaped_ns, memory_order_relaxed) < REAP_NS)
		return;
	atomic_store_explicit(&of->reaped_ns, now_ns, memory_order_relaxed);
	/* A process that is stopped with that lock holds up nobody's waiting. */
	LOCK_SCOPE_AS(lock, lock_try(&machine->layout->lock.mutex));
	if (lock)
		reap_dead(machine);
}

static uint64_t read_clock(
	struct machine *machine, int device, uint64_t now_ns, bool *ret_are_others)
{
	LOCK_SCOPE_AS(lock, take(machine, own_unit(machine, device), now_ns));

	return advance(machine, own_unit(machine, device), lock, now_ns, ret_are_others) -
	       own(machine, device)->lag_ns;
}

uint64_t schedule_now(struct machine *machine, int device)
{
	uint64_t clock, now = machine_now_ns();
	bool are_others;

	if (machine->slot < 0)
		return now;
	clock = read_clock(machine, device, now, &are_others);
	if (are_others)
		reap_at_times(machine, own_unit(machine, device), now);
	return clock;
}

uint64_t schedule_begin(struct machine *machine, int device)
{
	uint64_t now = machine_now_ns();
	pthread_mutex_t *lock;
	bool are_others;

	if (machine->slot < 0)
		return now;
	lock = take(machine, own_unit(machine, device), now);
	machine->schedule_lock[device] = lock;
	return advance(machine, own_unit(machine, device), lock, now, &are_others) -
	       own(machine, device)->lag_ns;
}

/* A piece of work more, joined with those that it touches. */
static void add_span(struct layout_schedule *schedule, uint64_t start_ns, uint64_t end_ns)
{
	struct layout_span *span = schedule->span;
	uint32_t i = 0, last, count = schedule->span_count;

	while (i < count && span[i].end_ns < start_ns)
		i++;
	if (i == count || end_ns < span[i].start_ns) {
		if (count < LAYOUT_SPANS) {
			memmove(&span[i + 1], &span[i], (count - i) * sizeof(span[0]));
			span[i] = (struct layout_span){start_ns, end_ns};
			schedule->span_count++;
			return;
		}
		/* No room: the pause in between is taken for work. */
		if (i == count)
			i--;
	}
	if (start_ns < span[i].start_ns)
		span[i].start_ns = start_ns;
	if (end_ns > span[i].end_ns)
		span[i].end_ns = end_ns;
	for (last = i; last + 1 < count && span[last + 1].start_ns <= span[i].end_ns;)
		last++;
	if (span[last].end_ns > span[i].end_ns)
		span[i].end_ns = span[last].end_ns;
	memmove(&span[i + 1], &span[last + 1], (count - last - 1) * sizeof(span[0]));
	schedule->span_count -= last - i;
}

void schedule_end(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns)
{
	if (machine->slot < 0)
		return;
	LOCK_SCOPE_AS(lock, machine->schedule_lock[device]);
	if (!lock || end_ns <= start_ns)
		return;
	add_span(own(machine, device), start_ns, end_ns);
	schedule_view_set_member(
		&machine->layout->device[own_unit(machine, device)], (uint32_t)machine->slot, true);
}

void schedule_cut(struct machine *machine, int device, uint64_t clock_ns)
{
	uint64_t now = machine_now_ns();
	struct layout_schedule *schedule;
	uint32_t kept = 0;

	if (machine->slot < 0)
		return;
	LOCK_SCOPE_AS(lock, take(machine, own_unit(machine, device), now));
	if (!lock)
		return;
	schedule_view_advance(machine, own_unit(machine, device), now);
	schedule = own(machine, device);
	while (kept < schedule->span_count && schedule->span[kept].start_ns < clock_ns) {
		if (schedule->span[kept].end_ns > clock_ns)
			schedule->span[kept].end_ns = clock_ns;
		kept++;
	}
	schedule->span_count = kept;
	kept = 0;
	while (kept < schedule->hold_count && schedule->hold[kept].at_ns < clock_ns)
		kept++;
	schedule->hold_count = kept;
}

bool schedule_hold(
	struct machine *machine, int device, uint64_t at_ns, const struct schedule_point *point)
{
	struct layout_schedule *schedule = own(machine, device);

	/* Without the lock all go on as if each were alone. */
	if (!machine->schedule_lock[device])
		return true;
	if (schedule->hold_count >= LAYOUT_HOLDS)
		return false;
	schedule->hold[schedule->hold_count++] = (struct layout_hold){.at_ns = at_ns,
		.until_ns = point->clock_ns,
		.start_time = point->start_time,
		.slot = point->slot};
	schedule_view_set_member(
		&machine->layout->device[own_unit(machine, device)], (uint32_t)machine->slot, true);
	return true;
}

/* Under the lock, at at_ns: when the clock had come to clock_ns, which it has. */
static uint64_t find_time(
	const struct machine *machine, int device, uint64_t clock_ns, uint64_t at_ns)
{
	const struct layout_schedule *schedule = own(machine, device);
	const struct layout_knot *knots = machine->layout->knot[machine->slot][device];
	struct layout_knot after = {at_ns - schedule->lag_ns, at_ns};
	uint64_t count = schedule->knot_count;

	for (uint64_t i = 0; i < count && i < LAYOUT_KNOTS; i++) {
		struct layout_knot before = knots[(count - 1 - i) % LAYOUT_KNOTS];
		uint64_t clock = after.clock_ns - before.clock_ns;
		uint64_t time = after.time_ns - before.time_ns;

		if (clock_ns > before.clock_ns) {
			if (clock == time)
				return before.time_ns + (clock_ns - before.clock_ns);
			return before.time_ns + (uint64_t)((double)(clock_ns - before.clock_ns) *
							   (double)time / (double)clock);
		}
		after = before;
	}
	/* Before the first knot, or so long ago that the knots of then are overwritten. */
	return after.time_ns - (after.clock_ns - clock_ns);
}

bool schedule_find_time(
	struct machine *machine, int device, uint64_t clock_ns, uint64_t *ret_time_ns)
{
	uint64_t lag, now = machine_now_ns();
	bool are_others;

	if (machine->slot < 0) {
		if (clock_ns <= now)
			*ret_time_ns = clock_ns;
		return clock_ns <= now;
	}
	LOCK_SCOPE_AS(lock, take(machine, own_unit(machine, device), now));
	now = advance(machine, own_unit(machine, device), lock, now, &are_others);
	lag = own(machine, device)->lag_ns;
	if (clock_ns > now - lag)
		return false;
	*ret_time_ns = lock ? find_time(machine, device, clock_ns, now) : clock_ns + lag;
	return true;
}

/* Under the lock, with others: how it goes on if nobody comes and nobody dies. */
static uint64_t foresee(const struct machine *machine, const struct schedule_point *point, int unit,
	bool *ret_is_end)
{
	const struct schedule_member *mine = NULL;
	/* 18 KiB: too much for a program's stack */
	_cleanup_free_ struct schedule_view *view = malloc(sizeof(*view));
	uint64_t limit;

	*ret_is_end = false;
	if (!view)
		return machine_now_ns();
	schedule_view_load(machine, unit, view);
	limit = view->at_ns + FORESEE_NS;
	for (uint32_t i = 0; i < view->count; i++)
		if (view->member[i].slot == point->slot)
			mine = &view->member[i];
	*ret_is_end = true;
	if (!mine)
		return point->clock_ns + schedule_of(machine, point->slot, point->device)->lag_ns;
	while (view->at_ns < limit) {
		uint64_t until = schedule_plan(view, limit);
		uint64_t more = schedule_time_to(mine, view->at_ns, point->clock_ns);

		if (more <= until - view->at_ns)
			return view->at_ns + more;
		schedule_pass(view, until);
	}
	*ret_is_end = false;
	return limit;
}

static int unit_of(const struct machine *machine, const struct schedule_point *point)
{
	return layout_unit(&machine->layout->slot[point->slot], point->device);
}

static bool is_gone(const struct machine *machine, const struct schedule_point *point)
{
	const struct layout_slot *slot = &machine->layout->slot[point->slot];

	return !layout_is_used(slot) || slot->start_time != point->start_time;
}

static uint64_t expect(struct machine *machine, const struct schedule_point *point, uint64_t now_ns,
	bool *ret_are_others, bool *ret_is_end)
{
	int unit = unit_of(machine, point);
	uint64_t lag;
	LOCK_SCOPE_AS(lock, take(machine, unit, now_ns));

	now_ns = advance(machine, unit, lock, now_ns, ret_are_others);
	lag = schedule_of(machine, point->slot, point->device)->lag_ns;
	if (is_gone(machine, point) || point->clock_ns <= now_ns - lag)
		return 0;
	if (*ret_are_others ||
		layout_stage(&machine->layout->slot[point->slot]) == MACHINE_CHECKPOINTED)
		return foresee(machine, point, unit, ret_is_end);
	return point->clock_ns + lag;
}

uint64_t schedule_expect_point(
	struct machine *machine, const struct schedule_point *point, bool *ret_is_end)
{
	uint64_t expected, now = machine_now_ns();
	bool are_others;

	*ret_is_end = true;
	expected = expect(machine, point, now, &are_others, ret_is_end);
	if (are_others)
		reap_at_times(machine, unit_of(machine, point), now);
	return expected;
}

uint64_t schedule_expect(struct machine *machine, int device, uint64_t clock_ns, bool *ret_is_end)
{
	uint64_t now = machine_now_ns();

	*ret_is_end = true;
	if (machine->slot < 0)
		return clock_ns > now ? clock_ns : 0;
	return schedule_expect_point(machine,
		&(struct schedule_point){state_file_own_slot(machine)->start_time, clock_ns,
			(uint32_t)machine->slot, device},
		ret_is_end);
}

bool schedule_is_past(struct machine *machine, const struct schedule_point *point)
{
	bool is_end;

	return schedule_expect_point(machine, point, &is_end) == 0;
}

bool schedule_is_own(const struct machine *machine, const struct schedule_point *point)
{
	return machine->slot >= 0 && point->slot == (uint32_t)machine->slot &&
	       !is_gone(machine, point);
}

bool schedule_is_beside(
	const struct machine *machine, int device, const struct schedule_point *point)
{
	return machine->slot >= 0 && point->device == device &&
	       unit_of(machine, point) == own_unit(machine, device);
}

static void catch_up(struct machine *machine, int unit, uint64_t now_ns)
{
	bool are_others;
	LOCK_SCOPE_AS(lock, take(machine, unit, now_ns));

	advance(machine, unit, lock, now_ns, &are_others);
}

void schedule_catch_up(struct machine *machine, int device, uint64_t now_ns)
{
	for (int unit = 0; unit < LAYOUT_UNITS; unit++)
		if (layout_card(unit) == device && layout_has_unit(machine->layout, unit))
			catch_up(machine, unit, now_ns);
}

void schedule_catch_up_all(struct machine *machine)
{
	for (int device = 0; device < machine_board(machine)->device_count; device++)
		schedule_catch_up(machine, device, machine_now_ns());
}

void schedule_reset_slot(struct machine *machine, uint32_t slot)
{
	for (int device = 0; device < machine_board(machine)->device_count; device++) {
		int unit = layout_unit(&machine->layout->slot[slot], device);
		struct layout_slot_device *of = &machine->layout->slot[slot].device[device];
		LOCK_SCOPE_AS(lock, take(machine, unit, machine_now_ns()));

		schedule_view_set_member(&machine->layout->device[unit], slot, false);
		memset(&of->utilization, 0, sizeof(of->utilization));
		memset(&of->schedule, 0, sizeof(of->schedule));
		of->schedule.load = 100;
	}
}

void machine_add_work(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t clock, now = machine_now_ns(), done = end_ns < now ? end_ns : now;
	struct layout_slot *mine = state_file_own_slot(machine);

	if (!mine)
		return;
	clock = schedule_begin(machine, device);
	/* Work told of afterwards is part of the history from where it began. */
	if (start_ns < done) {
		utilization_credit(
			&mine->device[device].utilization, start_ns, done, done - start_ns);
		utilization_credit(&machine->layout->device[own_unit(machine, device)].utilization,
			start_ns, done, done - start_ns);
		start_ns = done;
	}
	schedule_end(machine, device, clock + (start_ns - now), clock + (end_ns - now));
}
