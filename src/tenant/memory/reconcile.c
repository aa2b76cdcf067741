/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own figure beside the books.
 *
 * What a comparison finds (finding.h) is the unattributed part, which rises at once, by what the books did not say before,
 * after or during the question, and falls when two comparisons in a row agree that it is less, with the same charges before
 * and after the question, and no call under way that could make it look smaller.
 */
#include "tenant/memory/reconcile.h"

#include <errno.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "region/ledger.h"
#include "tenant/driver/call_end.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"
#include "tenant/memory/finding.h"
#include "tenant/memory/quiet.h"
#include "tenant/memory/table.h"

/* A call that is known to take little is charged for so many times as much at most, where only the device's figure tells. */
#define BOUNDED_TIMES 4

/* So many seconds in a row another thread may be found comparing. */
#define DOUBTS_MAX 10

/* Between two urgent questions: a program that is refused again and again asks often. */
#define URGENT_NS 20000000u

struct account {
	struct lock lock; /* held for one comparison, and only ever tried */
	_Atomic uint64_t next_ns, next_urgent_ns;
	_Atomic uint64_t unattributed_bytes; /* what is charged as unattributed */
	_Atomic uint64_t found_bytes;	     /* reconcile_found_bytes() */
	_Atomic bool
		is_careful; /* more may be charged than was taken, until a comparison is exact */
	_Atomic uint32_t owed, paid;	/* see is_owed() */
	_Atomic uint32_t owed_for_more; /* the last that is owed as something may be in no books */
	_Atomic uint64_t next_owed_ns;	/* later where comparisons were spoiled */
	uint64_t next_alone_ns;		/* until then a measuring that others spoil waits briefly */
	bool was_less;			/* by the last comparison */
	_Atomic unsigned doubts;	/* seconds in which another thread was comparing */
	_Atomic uint64_t next_doubt_ns;
	struct finding_misses misses; /* is_payable() has no lock */
};
static struct account accounts[STATE_ORDINALS];

/*
 * What is owed is compared while no call is under way, and calls that would begin wait for it so long at most. What all the
 * same was in the way, again and again, takes one part of so many of the time, and may take that of so long at once.
 */
#define OWED_TIMES    16
#define OWED_BURST_NS UINT64_C(640000000)
/* To know less than that the process does not begin NVML, for which it would wait. */
#define OWED_WORTH_BYTES UINT64_C(0x2000000)

/* So much more may be charged for a call for a while than it took. Who waited in vain waits one part in so many of the time. */
#define ALONE_WORTH_BYTES UINT64_C(0x4000000)
#define ALONE_TIMES	  16

/* Charged while the books stand alone. key: the life of a context; a: bytes; b: how often it had come to that. */
static struct table untold;

uint64_t reconcile_spare_bytes(const struct device *d)
{
	uint64_t traffic = charge_traffic(), held = charge_held_bytes(d), used;
	uint64_t hidden = finding_hidden_bytes(d);

	/*
	 * The call that asks is the one under way. What this process shares or opened is in the figure at
	 * most, and not counted here, so where there is such memory the answer is too small.
	 */
	if ((uint32_t)traffic != 1 || hidden > held ||
		own_pid_memory_bytes(d->uuid, held - hidden, &used) < 0 ||
		traffic != charge_traffic())
		return 0;
	return held > used + hidden ? held - hidden - used : 0;
}

/* Looks; under the account's lock. */
static bool look(struct account *t, struct device *d, const struct charge *reserved,
	struct finding *ret_found)
{
	return finding_look(&t->misses, d, &t->unattributed_bytes, reserved, ret_found);
}

/*
 * Makes the unattributed part what it was found to be, where so much was charged; under the account's lock. What is in doubt since
 * comes on top.
 */
static void correct(struct account *t, struct device *d, uint64_t charged, uint64_t other)
{
	FAULT("reconcile: looked");
	if (other > charged) {
		/* Before it can make the slice be above its quota. */
		atomic_fetch_add(&t->found_bytes, other - charged);
		charge_anyway(d, other - charged, CHARGE_UNATTRIBUTED);
	} else if (other < charged) {
		charge_give_back(d, charged - other, CHARGE_UNATTRIBUTED);
	}
	FAULT("reconcile: charged");
	atomic_fetch_add(&t->unattributed_bytes, other - charged);
	t->was_less = false;
	if (other > charged + REGION_UNIT_BYTES || charged > other + REGION_UNIT_BYTES)
		/* relaxed: a count for people */
		atomic_fetch_add_explicit(&state.region.file->own.devices[d->entry].drift_count, 1,
			memory_order_relaxed);
}

/* Whether a comparison is to be made good that could not be exact, as another call was in the way. */
static bool is_owed(const struct account *t)
{
	return t->owed != t->paid;
}

/* The account is as it is charged until a comparison knows better. Returns its number. */
static uint32_t owe(struct account *t)
{
	uint32_t number;

	t->is_careful = true;
	number = atomic_fetch_add(&t->owed, 1) + 1;
	/* pairs with reconcile_pay(), which looks once more when it has said that nothing is */
	atomic_store(&call_end_is_awaited, true);
	return number;
}

/*
 * What lay alone in a chunk, and was charged as unattributed, is found to be less when a block has come to lie beside it, whose charge
 * is for both from then on. So chunks that are there during a look that is believed do not go back with their last block.
 */
static void begin_less(struct device *d, bool *is_begun)
{
	if (!*is_begun)
		charge_unnamed_begins(d);
	*is_begun = true;
}

/* Looks; what is less is believed when it is exact, and so twice. Whether it was exact. */
static bool compare_looks(struct account *t, struct device *d, bool is_urgent, bool *is_less_begun)
{
	struct finding found;

	if (t->was_less)
		begin_less(d, is_less_begun);
	if (!look(t, d, NULL, &found))
		return false;
	for (int i = 0; found.most_bytes < found.charged_bytes; i++) {
		if (found.is_exact && t->was_less)
			break;
		t->was_less |= found.is_exact;
		if (!is_urgent || i == FINDING_LOOKS)
			return false;
		finding_pause();
		begin_less(d, is_less_begun);
		if (!look(t, d, NULL, &found))
			return false;
	}
	correct(t, d, found.charged_bytes, finding_within(&found, found.charged_bytes));
	if (found.is_exact && found.least_bytes == found.most_bytes)
		t->is_careful = false;
	return found.is_exact;
}

/* The same, under the account's lock. */
static bool compare_once(struct account *t, struct device *d, bool is_urgent)
{
	bool is_less_begun = false, is_exact = compare_looks(t, d, is_urgent, &is_less_begun);

	if (is_less_begun)
		charge_unnamed_ends(d);
	return is_exact;
}

/* What comes to be owed meanwhile is owed afterwards. */
static void compare(struct account *t, struct device *d, bool is_urgent)
{
	uint32_t owed = t->owed;

	if (compare_once(t, d, is_urgent))
		t->paid = owed;
}

/* relaxed all: a constant once it is set */
static _Atomic bool is_started;

/*
 * A comparison lasts for milliseconds. One that does not end was left in the middle, by a handler of a signal that does not
 * return: without comparisons there is no quota. Seconds in which the process is stopped count as one.
 */
static void doubt(struct account *t)
{
	if (clock_is_due(&t->next_doubt_ns, RECONCILE_CHECK_NS) &&
		atomic_fetch_add(&t->doubts, 1) + 1 == DOUBTS_MAX)
		state_on_failure("reconcile", "a comparison was left in the middle");
}

void reconcile_compare(struct device *device, enum parts_when why)
{
	bool is_urgent = why != PARTS_TICK;
	struct account *t = &accounts[device->ordinal];
	_Atomic uint64_t *next = is_urgent ? &t->next_urgent_ns : &t->next_ns;
	uint64_t now = clock_coarse_ns();

	/* relaxed: the clock decides how often, nothing else does */
	if (!atomic_load_explicit(&is_started, memory_order_relaxed) ||
		now < atomic_load_explicit(next, memory_order_relaxed) ||
		charge_held_bytes(device) == 0 || (why == PARTS_VIEW && !t->is_careful))
		return;
	if (!lock_try(&t->lock)) {
		doubt(t);
		return;
	}
	t->doubts = 0;
	atomic_store_explicit(&t->next_urgent_ns, now + URGENT_NS, memory_order_relaxed);
	atomic_store_explicit(&t->next_ns, now + RECONCILE_CHECK_NS, memory_order_relaxed);
	FAULT("reconcile: locked");
	compare(t, device, is_urgent);
	lock_leave(&t->lock);
}

/* Whether a comparison can tell now. */
static bool is_payable(const struct account *t)
{
	return is_owed(t) && !finding_is_blind(&t->misses) &&
	       (nvml_is_begun() || t->unattributed_bytes >= OWED_WORTH_BYTES ||
		       (int32_t)(t->owed_for_more - t->paid) > 0);
}

/* Whether the calls of this process are at rest, as seen after whatever this thread did before. */
static bool is_at_rest(void)
{
	/* Of two calls that end at once each sees the other's end, or is seen by it. */
	atomic_thread_fence(memory_order_seq_cst);
	return (uint32_t)charge_traffic() == 0;
}

/*
 * Compares until no call came in the way that did not wait for it; once in any case, as this thread may lack its processor for
 * longer than calls wait. Returns the traffic that it saw before that.
 */
static uint64_t compare_alone(struct account *t, struct device *d, uint64_t until_ns)
{
	uint64_t traffic = charge_traffic();

	for (unsigned i = 0; is_payable(t) && (i == 0 || clock_now_ns() < until_ns); i++) {
		traffic = charge_traffic();
		/* Who has the lock is in a call. */
		if ((uint32_t)traffic != 0 || !lock_try(&t->lock)) {
			lock_rest(i);
			continue;
		}
		FAULT("reconcile: owed");
		compare(t, d, true);
		lock_leave(&t->lock);
		if (traffic == charge_traffic())
			break;
	}
	return traffic;
}

/* Whether it is to be tried again: another call has ended since, and may have left it to this thread. */
static bool pay(struct account *t, struct device *d)
{
	uint64_t begin_ns = clock_now_ns(), until_ns = begin_ns + QUIET_NS, traffic, end_ns;

	if (t->next_owed_ns > begin_ns || !quiet_begin(begin_ns))
		return false;
	traffic = compare_alone(t, d, until_ns);
	if (t->next_owed_ns + OWED_BURST_NS < begin_ns)
		t->next_owed_ns = begin_ns - OWED_BURST_NS;
	/* Nobody has waited for longer, however long this thread lacked its processor. */
	end_ns = clock_now_ns();
	if (is_owed(t))
		t->next_owed_ns +=
			OWED_TIMES * ((end_ns < until_ns ? end_ns : until_ns) - begin_ns);
	quiet_end();
	/* Pairs with is_at_rest(): who has ended sees that nobody pays, or is seen. */
	atomic_thread_fence(memory_order_seq_cst);
	return traffic != charge_traffic();
}

/* Whether anything is owed still. */
static bool pay_all(void)
{
	bool is_any_owed = false;

	for (int i = 0; i < STATE_ORDINALS; i++) {
		struct account *t = &accounts[i];

		/* A call that ended meanwhile found the lock held, and has left it to us. */
		while (is_payable(t) && is_at_rest() && pay(t, state_device(i)))
			;
		is_any_owed |= is_payable(t);
	}
	return is_any_owed;
}

void reconcile_pay(void)
{
	int saved_errno = errno;

	/* The last call to end does it. */
	if (is_at_rest() && !pay_all()) {
		/* pairs with owe() */
		atomic_store(&call_end_is_awaited, false);
		if (pay_all())
			atomic_store(&call_end_is_awaited, true);
	}
	errno = saved_errno;
}

/*
 * What a call took by the device's free memory, which others change as well. Where the slice itself did, what the call took
 * may be hidden: it is not taken for less than was reserved, nor for something given back.
 */
static int64_t lost_bytes(int64_t reserved, const struct reconcile_call *call)
{
	int64_t bytes = round_out_i64(call->free_change_bytes, REGION_UNIT_BYTES);
	int64_t least = call->is_quiet ? 0 : reserved;

	if (call->is_end && bytes > 0)
		return 0;
	if (call->is_bounded && bytes > BOUNDED_TIMES * reserved)
		return reserved;
	return (reserved || !call->is_quiet) && bytes < least ? least : bytes;
}

/* What was charged to the context while the books stand alone; under the account's lock. */
static void note_untold(const struct account *t, uint64_t life, int64_t more)
{
	TABLE_SCOPE place = table_enter(&untold, life, true);

	if (!place.entry)
		return;
	if (place.entry->b != t->misses.blind_times)
		place.entry->a = 0;
	place.entry->b = t->misses.blind_times;
	if (more < -(int64_t)place.entry->a)
		more = -(int64_t)place.entry->a;
	place.entry->a += (uint64_t)more;
}

/* What a call took. */
struct told {
	int64_t more;		/* by so much the unattributed part has grown */
	bool is_certain;	/* else that is the careful side of it */
	bool is_open;		/* not even that: more may be hidden by what else is under way */
	uint64_t worst_bytes;	/* the unattributed part then; UINT64_MAX: not known */
	uint64_t charged_bytes; /* as unattributed, as of the look that tells this */
};

/*
 * By how much the unattributed part has grown, as far as can be told; under the account's lock. Where other threads are
 * in the way, or memory of other processes, the whole reservation counts as taken as far as that can be,
 * until a comparison knows better.
 */
static struct told growth(struct account *t, struct device *d, const struct charge *charge,
	const struct reconcile_call *call)
{
	int64_t reserved = (int64_t)charge->units * REGION_UNIT_BYTES, more = 0;
	struct told told = {.worst_bytes = UINT64_MAX, .charged_bytes = t->unattributed_bytes};
	struct finding found;
	uint32_t owed;

	/*
	 * A process that is just beginning need not wait for NVML: the next comparison will. But for what took more than was
	 * reserved, which may not fit and has to go again; it may have, where others gave back as much.
	 */
	owe(t);
	owed = t->owed;
	if (!nvml_is_begun() && t->misses.in_a_row == 0 && call->is_quiet &&
		call->free_change_bytes <= reserved) {
		told.more = call->free_change_bytes ? reserved : 0;
		return told;
	}
	for (int i = 0; i < FINDING_LOOKS && (i == 0 || !finding_is_blind(&t->misses)); i++) {
		if (!look(t, d, charge, &found))
			continue;
		told.charged_bytes = found.charged_bytes;
		if (found.is_exact) {
			more = (int64_t)(finding_within(
						 &found, found.charged_bytes + (uint64_t)reserved) -
					 found.charged_bytes);
			if (more >= 0)
				t->paid = owed;
			t->is_careful = more < 0 || found.least_bytes != found.most_bytes;
			told.more = more > 0 ? more : 0;
			told.is_certain = found.least_bytes == found.most_bytes;
			return told;
		}
		more = (int64_t)(found.least_bytes - found.charged_bytes);
		told.worst_bytes = found.worst_bytes;
	}
	told.is_certain = finding_is_blind(&t->misses);
	if (told.is_certain) {
		told.more = lost_bytes(reserved, call);
		return told;
	}
	told.is_open = told.worst_bytes > told.charged_bytes + (uint64_t)reserved;
	told.more = more > reserved ? more : reserved;
	return told;
}

/* Whether the worst is little more than what is charged in any case, and fits: it is not waited for something better. */
static bool is_worst_good_enough(
	const struct device *d, const struct charge *charge, const struct told *told)
{
	uint64_t least = told->charged_bytes + (uint64_t)told->more;
	uint64_t reserved = (uint64_t)charge->units * REGION_UNIT_BYTES;

	if (told->worst_bytes == UINT64_MAX || told->worst_bytes > least + ALONE_WORTH_BYTES)
		return false;
	/* relaxed: a limit of a moment ago is a limit */
	return ledger_used_units(state.region.file, d->entry) +
		       ledger_units(told->worst_bytes - told->charged_bytes - reserved) <=
	       atomic_load_explicit(&d->limit_units, memory_order_relaxed);
}

/*
 * The same for a call of which nobody knows what it takes. Under the account's lock, which is left while it waits; false where
 * another thread has it for too long then, or nothing tells the most that the call can have taken.
 */
static bool measure(struct account *t, struct device *d, const struct charge *charge,
	const struct reconcile_call *call, bool *is_ours, struct told *ret_told)
{
	uint64_t begin_ns = clock_now_ns();
	uint64_t until_ns =
		begin_ns + (begin_ns < t->next_alone_ns ? QUIET_NS : RECONCILE_ALONE_NS);
	bool is_over = false;

	*ret_told = growth(t, d, charge, call);
	quiet_measure_begin();
	while (*is_ours && ret_told->is_open && !is_over &&
		!is_worst_good_enough(d, charge, ret_told)) {
		lock_leave(&t->lock);
		quiet_wait_for_calls(until_ns);
		*is_ours = lock_enter_within(&t->lock, RECONCILE_WAIT_NS);
		is_over = clock_now_ns() >= until_ns;
		if (!*is_ours)
			break;
		if (is_over)
			t->next_alone_ns = until_ns + ALONE_TIMES * RECONCILE_ALONE_NS;
		is_over |= quiet_is_reached();
		*ret_told = growth(t, d, charge, call);
		/* Of what came meanwhile it is not known whether it has come. */
		is_over &= ret_told->worst_bytes != UINT64_MAX || clock_now_ns() >= until_ns;
	}
	quiet_measure_end();
	if (!ret_told->is_open)
		return *is_ours;
	if (ret_told->worst_bytes == UINT64_MAX)
		return false;
	ret_told->more = (int64_t)(ret_told->worst_bytes - ret_told->charged_bytes);
	return *is_ours;
}

struct growth reconcile_guarded(
	struct device *device, struct charge *charge, const struct reconcile_call *call)
{
	struct account *t = &accounts[device->ordinal];
	bool is_ours = lock_enter_within(&t->lock, RECONCILE_WAIT_NS), is_measured = is_ours;
	int64_t reserved = (int64_t)charge->units * REGION_UNIT_BYTES;
	struct told told = {.more = reserved};
	struct growth found;

	if (is_ours && call->is_open_ended)
		is_measured = measure(t, device, charge, call, &is_ours, &told);
	else if (is_ours)
		told = growth(t, device, charge, call);
	/* Without the lock the whole reservation stays, and the next comparison finds what is too much. */
	if (!is_ours)
		told = (struct told){.more = reserved};
	if (told.more < -(int64_t)t->unattributed_bytes)
		told.more = -(int64_t)t->unattributed_bytes;
	atomic_fetch_add(&t->unattributed_bytes, (uint64_t)told.more);
	if (told.more > reserved)
		atomic_fetch_add(&t->found_bytes, (uint64_t)(told.more - reserved));
	FAULT("reconcile: counted");
	charge_commit(charge, told.more);
	if (is_ours)
		t->doubts = 0;
	found = (struct growth){.charged_bytes = told.more,
		.is_measured = is_measured,
		.is_told = is_ours && !finding_is_blind(&t->misses),
		.is_certain = told.is_certain};
	if (!is_ours) {
		owe(t);
		return found;
	}
	if (!found.is_told && told.more && call->life)
		note_untold(t, call->life, told.more);
	else if (found.is_told && call->free_change_bytes < 0)
		compare(t, device, true);
	lock_leave(&t->lock);
	return found;
}

uint64_t reconcile_found_bytes(const struct device *device)
{
	return atomic_load(&accounts[device->ordinal].found_bytes);
}

void reconcile_before(struct device *device)
{
	struct account *t = &accounts[device->ordinal];
	struct finding found;

	/* Who has the lock finds it, and a process that is just beginning has little to be found. */
	if (!nvml_is_begun() || charge_held_bytes(device) == 0 || !lock_try(&t->lock))
		return;
	if (look(t, device, NULL, &found) && found.least_bytes > found.charged_bytes)
		correct(t, device, found.charged_bytes, found.least_bytes);
	lock_leave(&t->lock);
}

struct reconcile_figure reconcile_ask(const struct device *device)
{
	struct reconcile_figure figure = {.traffic = charge_traffic()};

	figure.is_told = own_pid_memory_bytes(
				 device->uuid, charge_held_bytes(device), &figure.used_bytes) == 0;
	return figure;
}

/* By that call alone: none was under way before, and none has begun. */
static bool has_risen(
	const struct device *device, const struct reconcile_figure *before, uint64_t bytes)
{
	struct reconcile_figure now = reconcile_ask(device);

	return before->is_told && now.is_told && (uint32_t)before->traffic == 1 &&
	       before->traffic == charge_traffic() && now.used_bytes >= before->used_bytes + bytes;
}

bool reconcile_is_shown(
	struct device *device, const struct charge *charge, const struct reconcile_figure *before)
{
	struct account *t = &accounts[device->ordinal];
	uint64_t bytes = (uint64_t)charge->units * REGION_UNIT_BYTES;
	struct finding found;
	bool is_shown = has_risen(device, before, bytes);

	if (is_shown || !lock_enter_within(&t->lock, RECONCILE_WAIT_NS))
		return is_shown;
	for (int i = 0; i < FINDING_LOOKS && !is_shown; i++) {
		if (i)
			finding_pause();
		if (!look(t, device, charge, &found))
			continue;
		/* What is charged as unattributed may be all that the figure has beside. */
		is_shown = found.least_bytes >= bytes + found.charged_bytes;
		if (found.is_exact)
			break;
	}
	lock_leave(&t->lock);
	return is_shown;
}

/*
 * Without the lock, which this thread may have: what a look collects comes here, too. A look that this comes into is not exact, and what
 * is corrected by it leaves this as it is.
 */
void reconcile_doubt(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	struct account *t = &accounts[device->ordinal];
	CHARGE_SCOPE();

	/* Without a figure there was no comparison, and there will be none. */
	if (finding_is_blind(&t->misses)) {
		charge_give_back(device, bytes, kind);
		return;
	}
	ledger_note(state.region.file, state.slot, device->entry, kind, -(int64_t)bytes);
	ledger_note(
		state.region.file, state.slot, device->entry, CHARGE_UNATTRIBUTED, (int64_t)bytes);
	atomic_fetch_add(&t->unattributed_bytes, bytes);
	FAULT("reconcile: in doubt");
	owe(t);
}

struct reconcile_chunk reconcile_chunk_ends(struct device *device)
{
	struct account *t = &accounts[device->ordinal];
	struct reconcile_chunk chunk = {.is_told = false};
	struct finding found;

	/* The call that asks is the one under way. */
	if ((uint32_t)charge_traffic() != 1 || !nvml_is_begun() || finding_is_blind(&t->misses) ||
		!lock_try(&t->lock))
		return chunk;
	if (look(t, device, &(struct charge){.is_under_way = true}, &found))
		chunk = (struct reconcile_chunk){.beyond_bytes = found.beyond_bytes,
			.traffic = found.traffic,
			.is_told = found.is_exact};
	lock_leave(&t->lock);
	return chunk;
}

bool reconcile_chunk_is_gone(
	struct device *device, const struct reconcile_chunk *before, uint64_t bytes)
{
	struct reconcile_chunk now = {.is_told = false};

	if (before->is_told)
		now = reconcile_chunk_ends(device);
	return now.is_told && now.traffic == before->traffic &&
	       now.beyond_bytes + (int64_t)bytes <= before->beyond_bytes;
}

void reconcile_look_again(const struct device *device)
{
	owe(&accounts[device->ordinal]);
}

void reconcile_look_for_less(const struct device *device)
{
	struct account *t = &accounts[device->ordinal];

	if (t->unattributed_bytes)
		owe(t);
}

void reconcile_look_for_more(const struct device *device)
{
	struct account *t = &accounts[device->ordinal];
	uint32_t number = owe(t);

	t->owed_for_more = number;
	/* once more, for who has looked before that */
	atomic_store(&call_end_is_awaited, true);
}

void reconcile_start(struct device *device)
{
	uint64_t nothing = 0;

	/* The first comparison is due when there may be something to compare. relaxed: as in reconcile_compare() */
	atomic_compare_exchange_strong_explicit(&accounts[device->ordinal].next_ns, &nothing,
		clock_coarse_ns() + RECONCILE_CHECK_NS, memory_order_relaxed, memory_order_relaxed);
	/* relaxed: the first comparison may come a moment later */
	atomic_store_explicit(&is_started, true, memory_order_relaxed);
}

void reconcile_life_ended(struct device *device, uint64_t life)
{
	struct account *t = &accounts[device->ordinal];
	struct table_entry entry;
	uint64_t charged;

	if (table_take(&untold, life, &entry) != 0 ||
		!lock_enter_within(&t->lock, RECONCILE_WAIT_NS))
		return;
	/* A comparison since then has corrected it. */
	charged = t->unattributed_bytes;
	if (finding_is_blind(&t->misses) && entry.b == t->misses.blind_times)
		correct(t, device, charged, charged > entry.a ? charged - entry.a : 0);
	lock_leave(&t->lock);
}

void reconcile_forget(struct device *device, bool is_last)
{
	struct account *t = &accounts[device->ordinal];
	struct finding found;
	uint64_t used;

	/* A comparison under way will see for itself. */
	if (is_last ? !lock_enter_within(&t->lock, RECONCILE_WAIT_NS) : !lock_try(&t->lock))
		return;
	charge_unnamed_begins(device); /* as in begin_less() */
	if (is_last &&
		(finding_is_blind(&t->misses) || own_pid_memory_bytes(device->uuid, 0, &used) < 0))
		correct(t, device, t->unattributed_bytes, 0);
	else if (look(t, device, &(struct charge){.is_under_way = true}, &found) && found.is_exact)
		correct(t, device, found.charged_bytes,
			finding_within(&found, found.charged_bytes));
	/* else the next comparison, which comes before any refusal */
	charge_unnamed_ends(device);
	lock_leave(&t->lock);
}

void reconcile_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		accounts[i] = (struct account){.was_less = false};
	table_forget(&untold);
}
