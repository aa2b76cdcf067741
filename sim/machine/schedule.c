/* SPDX-License-Identifier: Apache-2.0 */
/* Turns in the shared file: brought forward by whoever looks, up to the moment of the look. */
#include "sim/machine/schedule.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "sim/machine/attach.h"
#include "sim/machine/utilization.h"

/* How long to wait for a lock whose holder is stopped, and to do without it after that. */
#define LOCK_WAIT_NS	UINT64_C(100000000)
#define LOCK_WITHOUT_NS UINT64_C(1000000000)
/* How often it is looked for processes that died with work; the one slow thing here. */
#define LOOK_FOR_DEAD_NS UINT64_C(50000000)
/* How far ahead others are taken to stay: one may die, and then it goes faster than foreseen. */
#define FORESEE_NS UINT64_C(10000000)
/* More steps than any view's slices between two looks; beyond it the rest of the time is dropped. */
#define STEPS_MAX 1000000

/* Parties of one process have this bit, servers of MPS have it not. */
#define PARTY_OF_ONE (UINT64_C(1) << 63)

static struct layout_schedule *turn_of(const struct machine *machine, uint32_t slot, int device)
{
	return &machine->layout->slot[slot].device[device].turn;
}

/*
 * A stopped process that has the lock holds others up for a moment, once a second: they go on as if
 * each were alone. One that dies leaves nothing that is not right enough: clocks of processes stand
 * or go a little wrong by less than one step.
 */
static bool take(struct machine *machine, int device, uint64_t now_ns)
{
	pthread_mutex_t *mutex = &machine->layout->device[device].lock.mutex;
	struct timespec until;
	int r = pthread_mutex_trylock(mutex);

	/* Relaxed: only how long to try. */
	if (r == EBUSY &&
		__atomic_load_n(&machine->without_lock_until_ns, __ATOMIC_RELAXED) <= now_ns) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)LOCK_WAIT_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		r = pthread_mutex_timedlock(mutex, &until);
		if (r == ETIMEDOUT)
			__atomic_store_n(&machine->without_lock_until_ns,
				machine_now_ns() + LOCK_WITHOUT_NS, __ATOMIC_RELAXED);
	}
	if (r == EOWNERDEAD)
		r = pthread_mutex_consistent(mutex);
	return r == 0;
}

static void let_go(struct machine *machine, int device)
{
	pthread_mutex_unlock(&machine->layout->device[device].lock.mutex);
}

static void set_member(struct layout_device *of, uint32_t slot, bool is_member)
{
	uint64_t bit = UINT64_C(1) << (slot % 64);

	if (is_member)
		of->members[slot / 64] |= bit;
	else
		of->members[slot / 64] &= ~bit;
}

/* Relaxed, both: whoever changes them has the machine's lock; a look comes before that or after. */
static bool is_there(const struct layout_slot *slot)
{
	return __atomic_load_n(&slot->state, __ATOMIC_RELAXED) == LAYOUT_SLOT_USED;
}

static bool is_halted(const struct layout_slot *slot)
{
	return __atomic_load_n(&slot->stage, __ATOMIC_RELAXED) == MACHINE_CHECKPOINTED;
}

static void view_add(
	const struct machine *machine, int device, uint32_t slot, struct schedule_view *view)
{
	const struct layout_slot *from = &machine->layout->slot[slot];
	const struct layout_schedule *turn = &from->device[device].turn;
	struct schedule_member *member = &view->member[view->count++];

	member->slot = slot;
	member->percent = from->percent;
	member->party = from->server != 0 ? from->server : PARTY_OF_ONE | slot;
	if (view->slice_ns == 0)
		member->party = PARTY_OF_ONE;
	member->lag_ns = turn->lag_ns;
	member->span = turn->span;
	member->span_count = turn->span_count <= LAYOUT_SPANS ? turn->span_count : LAYOUT_SPANS;
	member->is_halted = is_halted(from);
}

static void view_load(const struct machine *machine, int device, struct schedule_view *view)
{
	struct layout_device *of = &machine->layout->device[device];

	view->at_ns = of->at_ns;
	view->slice_ns = (uint64_t)machine_board(machine)->time_slice_us * 1000;
	view->slice_end_ns = of->slice_end_ns;
	view->owner_party = of->owner_party;
	view->owner_slot = of->owner_slot;
	view->count = 0;
	for (uint32_t word = 0; word < MACHINE_SLOTS_MAX / 64; word++) {
		for (uint64_t bits = of->members[word]; bits != 0; bits &= bits - 1) {
			uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);

			/* Of a process that is gone nothing goes on. */
			if (is_there(&machine->layout->slot[slot]))
				view_add(machine, device, slot, view);
			else
				set_member(of, slot, false);
		}
	}
}

/* What a step was for one member: its speed, and its work. */
static void note_step(struct machine *machine, int device, const struct schedule_member *member,
	uint64_t from_ns, uint64_t until_ns)
{
	struct layout_schedule *turn = turn_of(machine, member->slot, device);
	uint32_t load = member->standing == SCHEDULE_WAITING ? 0 : member->load;

	if (load != turn->load) {
		machine->layout->knot[member->slot][device][turn->knot_count % LAYOUT_KNOTS] =
			(struct layout_knot){from_ns - member->lag_ns, from_ns};
		turn->knot_count++;
		turn->load = load;
	}
	if (member->standing == SCHEDULE_SERVED)
		utilization_credit(&machine->layout->slot[member->slot].device[device].busy,
			from_ns, until_ns, (until_ns - from_ns) * 100 / member->load);
}

static void view_store(struct machine *machine, int device, const struct schedule_view *view)
{
	struct layout_device *of = &machine->layout->device[device];

	for (uint32_t i = 0; i < view->count; i++) {
		const struct schedule_member *member = &view->member[i];
		struct layout_schedule *turn = turn_of(machine, member->slot, device);

		turn->lag_ns = member->lag_ns;
		if (member->span != turn->span)
			memmove(turn->span, member->span,
				member->span_count * sizeof(turn->span[0]));
		turn->span_count = member->span_count;
		if (member->span_count == 0)
			set_member(of, member->slot, false);
	}
	of->slice_end_ns = view->slice_end_ns;
	of->owner_party = view->owner_party;
	of->owner_slot = view->owner_slot;
	of->at_ns = view->at_ns;
}

/* Under the lock. Returns whether other processes than this have work. */
static bool advance(struct machine *machine, int device, uint64_t now_ns)
{
	struct layout_device *of = &machine->layout->device[device];
	struct schedule_view view;

	if (now_ns <= of->at_ns)
		now_ns = of->at_ns;
	view_load(machine, device, &view);
	for (int step = 0; view.count > 0 && view.at_ns < now_ns && step < STEPS_MAX; step++) {
		uint64_t from = view.at_ns, until = schedule_plan(&view, now_ns);
		bool is_served = false;

		for (uint32_t i = 0; i < view.count; i++) {
			is_served = is_served || view.member[i].standing == SCHEDULE_SERVED;
			note_step(machine, device, &view.member[i], from, until);
		}
		if (is_served)
			utilization_credit(&of->busy, from, until, until - from);
		schedule_pass(&view, until);
	}
	view.at_ns = now_ns;
	view_store(machine, device, &view);
	return view.count > 1 ||
	       (view.count == 1 && view.member[0].slot != (uint32_t)machine->slot);
}

/* Not under the lock, for it takes the machine's. */
static void look_for_dead(struct machine *machine, int device, uint64_t now_ns)
{
	struct layout_device *of = &machine->layout->device[device];

	/* Relaxed: two that look at the same time do no harm. */
	if (now_ns - __atomic_load_n(&of->looked_ns, __ATOMIC_RELAXED) < LOOK_FOR_DEAD_NS)
		return;
	__atomic_store_n(&of->looked_ns, now_ns, __ATOMIC_RELAXED);
	/* Who is stopped with that lock holds up nobody's waiting. */
	if (!attach_try_lock(machine))
		return;
	attach_reap(machine);
	attach_unlock(machine);
}

uint64_t schedule_now(struct machine *machine, int device)
{
	uint64_t clock, now = machine_now_ns();
	bool are_others;

	if (machine->slot < 0)
		return now;
	if (!take(machine, device, now))
		return now - turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
	are_others = advance(machine, device, now);
	clock = machine->layout->device[device].at_ns -
		turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
	let_go(machine, device);
	if (are_others)
		look_for_dead(machine, device, now);
	return clock;
}

uint64_t schedule_begin(struct machine *machine, int device)
{
	uint64_t now = machine_now_ns();

	if (machine->slot < 0)
		return now;
	machine->has_turn_lock[device] = take(machine, device, now);
	if (machine->has_turn_lock[device]) {
		advance(machine, device, now);
		now = machine->layout->device[device].at_ns;
	}
	return now - turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
}

/* A piece of work more, joined with those that it touches. */
static void add_span(struct layout_schedule *turn, uint64_t start_ns, uint64_t end_ns)
{
	struct layout_span *span = turn->span;
	uint32_t i = 0, last;

	while (i < turn->span_count && span[i].end_ns < start_ns)
		i++;
	if (i == turn->span_count || end_ns < span[i].start_ns) {
		if (turn->span_count < LAYOUT_SPANS) {
			memmove(&span[i + 1], &span[i], (turn->span_count - i) * sizeof(span[0]));
			span[i] = (struct layout_span){start_ns, end_ns};
			turn->span_count++;
			return;
		}
		/* No room: the pause in between is taken for work. */
		if (i == turn->span_count)
			i--;
	}
	if (start_ns < span[i].start_ns)
		span[i].start_ns = start_ns;
	if (end_ns > span[i].end_ns)
		span[i].end_ns = end_ns;
	for (last = i; last + 1 < turn->span_count && span[last + 1].start_ns <= span[i].end_ns;)
		last++;
	if (last == i)
		return;
	if (span[last].end_ns > span[i].end_ns)
		span[i].end_ns = span[last].end_ns;
	memmove(&span[i + 1], &span[last + 1], (turn->span_count - last - 1) * sizeof(span[0]));
	turn->span_count -= last - i;
}

void schedule_end(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns)
{
	if (machine->slot < 0 || !machine->has_turn_lock[device])
		return;
	if (end_ns > start_ns) {
		add_span(turn_of(machine, (uint32_t)machine->slot, device), start_ns, end_ns);
		set_member(&machine->layout->device[device], (uint32_t)machine->slot, true);
	}
	let_go(machine, device);
}

void schedule_cut(struct machine *machine, int device, uint64_t clock_ns)
{
	uint64_t now = machine_now_ns();
	struct layout_schedule *turn;
	uint32_t kept = 0;

	if (machine->slot < 0 || !take(machine, device, now))
		return;
	advance(machine, device, now);
	turn = turn_of(machine, (uint32_t)machine->slot, device);
	while (kept < turn->span_count && turn->span[kept].start_ns < clock_ns) {
		if (turn->span[kept].end_ns > clock_ns)
			turn->span[kept].end_ns = clock_ns;
		kept++;
	}
	turn->span_count = kept;
	let_go(machine, device);
}

/* Under the lock, at at_ns: when the clock had come to clock_ns, which it has. */
static uint64_t find_time(
	const struct machine *machine, int device, uint64_t clock_ns, uint64_t at_ns)
{
	const struct layout_schedule *turn = turn_of(machine, (uint32_t)machine->slot, device);
	const struct layout_knot *knots = machine->layout->knot[machine->slot][device];
	struct layout_knot after = {at_ns - turn->lag_ns, at_ns};
	uint64_t count = turn->knot_count;

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
	uint64_t clock, now = machine_now_ns();

	if (machine->slot < 0) {
		if (clock_ns <= now)
			*ret_time_ns = clock_ns;
		return clock_ns <= now;
	}
	if (!take(machine, device, now)) {
		clock = now - turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
		if (clock_ns <= clock)
			*ret_time_ns = clock_ns + (now - clock);
		return clock_ns <= clock;
	}
	advance(machine, device, now);
	now = machine->layout->device[device].at_ns;
	clock = now - turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
	if (clock_ns <= clock)
		*ret_time_ns = find_time(machine, device, clock_ns, now);
	let_go(machine, device);
	return clock_ns <= clock;
}

/* Under the lock, with others: how it goes on if nobody comes and nobody dies. */
static uint64_t foresee(
	const struct machine *machine, int device, uint64_t clock_ns, bool *ret_is_end)
{
	const struct schedule_member *mine = NULL;
	struct schedule_view view;
	uint64_t limit;

	view_load(machine, device, &view);
	limit = view.at_ns + FORESEE_NS;
	for (uint32_t i = 0; i < view.count; i++) {
		if (view.member[i].slot == (uint32_t)machine->slot)
			mine = &view.member[i];
	}
	if (mine == NULL) {
		*ret_is_end = true;
		return clock_ns + turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
	}
	while (view.at_ns < limit) {
		uint64_t until = schedule_plan(&view, limit);
		uint64_t more = schedule_time_to(mine, view.at_ns, clock_ns);

		if (more <= until - view.at_ns) {
			*ret_is_end = true;
			return view.at_ns + more;
		}
		schedule_pass(&view, until);
	}
	*ret_is_end = false;
	return limit;
}

uint64_t schedule_expect(struct machine *machine, int device, uint64_t clock_ns, bool *ret_is_end)
{
	uint64_t lag, expected, now = machine_now_ns();
	bool are_others = false, has_lock;

	*ret_is_end = true;
	if (machine->slot < 0)
		return clock_ns > now ? clock_ns : 0;
	has_lock = take(machine, device, now);
	if (has_lock) {
		are_others = advance(machine, device, now);
		now = machine->layout->device[device].at_ns;
	}
	lag = turn_of(machine, (uint32_t)machine->slot, device)->lag_ns;
	if (clock_ns <= now - lag)
		expected = 0;
	else if (are_others || is_halted(&machine->layout->slot[machine->slot]))
		expected = foresee(machine, device, clock_ns, ret_is_end);
	else
		expected = clock_ns + lag;
	if (has_lock)
		let_go(machine, device);
	if (are_others)
		look_for_dead(machine, device, now);
	return expected;
}

void schedule_catch_up(struct machine *machine, int device, uint64_t now_ns)
{
	if (!take(machine, device, now_ns))
		return;
	advance(machine, device, now_ns);
	let_go(machine, device);
}

void schedule_reset_slot(struct machine *machine, uint32_t slot)
{
	for (int device = 0; device < machine_board(machine)->device_count; device++) {
		struct layout_slot_device *mine = &machine->layout->slot[slot].device[device];
		bool has_lock = take(machine, device, machine_now_ns());

		set_member(&machine->layout->device[device], slot, false);
		memset(&mine->busy, 0, sizeof(mine->busy));
		memset(&mine->turn, 0, sizeof(mine->turn));
		mine->turn.load = 100;
		if (has_lock)
			let_go(machine, device);
	}
}

void machine_add_busy(struct machine *machine, int device, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t clock, now = machine_now_ns(), done = end_ns < now ? end_ns : now;

	if (machine->slot < 0)
		return;
	clock = schedule_begin(machine, device);
	/* Work told of afterwards is part of the history from where it began. */
	if (start_ns < done) {
		struct layout *layout = machine->layout;

		utilization_credit(&layout->slot[machine->slot].device[device].busy, start_ns, done,
			done - start_ns);
		utilization_credit(&layout->device[device].busy, start_ns, done, done - start_ns);
		start_ns = done;
	}
	schedule_end(machine, device, clock + (start_ns - now), clock + (end_ns - now));
}
