/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own figure beside the books.
 *
 * The books run ahead of the driver: a charge is there before the memory is, and leaves after it.
 * So NVML's figure is above the books only by what is in none of them. Managed memory is the one
 * thing that is in the books and not in NVML's figure. What this process made and shares is in the
 * figure, and in a shared allocation's books (ipc.h). What it opened is in the figure of its maker, or in that of one
 * opener: in this one's only where nobody else holds it. What it opened of another slice is in the maker's or in its
 * own, so with such memory the unattributed part is known to lie between two bounds, and stays as it is between them;
 * each slice pays for itself, so nobody gains by that. Memory of other interfaces is so, too, where the figure had it when it
 * was imported: it is this process's own then, or as much is charged as unattributed. The
 * unattributed part rises at once, by what the books did not say before, after or during the question, and falls when two
 * comparisons in a row agree that it is less, with the same charges before and after the question, and no call under way
 * that could make it look smaller.
 */
#define LOG_TOPIC LOG_LEDGER
#include "tenant/memory/reconcile.h"

#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "region/ledger.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/table.h"

/* Comparisons that other threads may spoil before the careful side is taken. */
#define LOOKS 4

/*
 * A context that is just being made is not in NVML's list yet. After so many questions in a row the books stand alone, and
 * it is asked once a second: a program can make it fail for a while.
 */
#define MISSES_MAX 5

/* A call that is known to take little is charged for so many times as much at most, where only the device's figure tells. */
#define BOUNDED_TIMES 4

/* So many seconds in a row another thread may be found comparing. */
#define DOUBTS_MAX 10

/* Between two looks that are to tell a free under way from memory that is gone. */
#define SECOND_LOOK_NS 500000

/* Between two urgent questions: a program that is refused again and again asks often. */
#define URGENT_NS 20000000u

struct account {
	struct lock lock; /* held for one comparison, and only ever tried */
	_Atomic uint64_t next_ns, next_urgent_ns, next_retry_ns;
	_Atomic uint64_t unattributed_bytes; /* what is charged as unattributed */
	_Atomic uint64_t found_bytes;	     /* reconcile_found_bytes() */
	_Atomic bool
		is_careful; /* more may be charged than was taken, until a comparison is exact */
	bool was_less;	    /* by the last comparison */
	_Atomic unsigned doubts; /* seconds in which another thread was comparing */
	_Atomic uint64_t next_doubt_ns;
	unsigned misses;   /* questions in a row that NVML had no figure for */
	unsigned failures; /* times that it had none for so long that the books stood alone */
};
static struct account accounts[STATE_ORDINALS];

/* Charged while the books stand alone. key: the life of a context; a: bytes; b: the account's failures then. */
static struct table untold;

static uint64_t held_bytes(const struct device *d)
{
	return ledger_held_bytes(state.region.file, state.slot, d->entry);
}

/* What is in the books and not always in NVML's figure: managed memory, and what is another's. */
static uint64_t hidden_bytes(const struct device *d)
{
	const _Atomic uint64_t *kinds =
		state.region.file->own.slots[state.slot].kind_bytes[d->entry];

	/* relaxed: compared before and after, as part of what is held */
	return atomic_load_explicit(&kinds[CHARGE_MANAGED], memory_order_relaxed) +
	       atomic_load_explicit(&kinds[CHARGE_SHARED], memory_order_relaxed);
}

static void note(enum region_note bits)
{
	/* relaxed: for people to read */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].notes, bits, memory_order_relaxed);
}

/*
 * What NVML shows beyond the books lies between the two, which differ where memory of other slices is open,
 * and where another thread charged meanwhile: what it took and freed again between two equal readings of
 * the books may be in NVML's figure. The books run ahead of the driver, so what the figure has beyond the
 * most that they said is never too much; both are exact where no other call of this process was under way.
 */
struct finding {
	uint64_t least_bytes, most_bytes;
	bool is_exact;
};

static uint64_t above(uint64_t used, uint64_t known)
{
	return used > known ? round_up_u64(used - known, REGION_UNIT_BYTES) : 0;
}

/* NVML's figure; false where it has none, with a note of that for people. */
static bool ask(struct account *t, const struct device *d, uint64_t known, uint64_t *ret_used)
{
	int r;

	if (t->misses >= MISSES_MAX && !clock_is_due(&t->next_retry_ns, RECONCILE_CHECK_NS))
		return false;
	FAULT("reconcile: asking");
	r = own_pid_memory_bytes(d->uuid, known, ret_used);
	FAULT("reconcile: answered");
	if (r == 0) {
		note(REGION_NOTE_NVML);
		own_pid_is_confirmed(d);
		t->misses = 0;
		return true;
	}
	if (++t->misses < MISSES_MAX)
		return false;
	note(REGION_NOTE_NO_NVML);
	if (t->misses > MISSES_MAX)
		return false;
	t->failures++;
	(void)clock_is_due(&t->next_retry_ns, RECONCILE_CHECK_NS);
	log_debug("nvml has no figure for this process, so its accounting stands alone",
		STR("device", d->uuid));
	return false;
}

/*
 * Looks once; false where nothing can be told now. What is reserved is in the books for what is just being
 * looked for. What came back by itself, as streams went on, is taken out of the books before and after the question:
 * it would hide what was taken.
 */
static bool look_once(struct account *t, struct device *d, const struct charge *reserved,
	struct finding *ret_found)
{
	uint64_t traffic, held, hidden, unseen, shown, foreign, most, used, known = 0;
	uint64_t other = t->unattributed_bytes;
	bool is_mine = reserved && reserved->is_under_way, is_told, is_alone;

	parts_collect(d);
	traffic = charge_traffic();
	held = charge_watch(d);
	hidden = hidden_bytes(d);
	unseen = hidden + other;
	shown = ipc_shown_bytes(d);
	foreign = ipc_foreign_bytes(d);

	if (reserved)
		unseen += (uint64_t)reserved->units * REGION_UNIT_BYTES;
	/* A charge on its way moves one of them before the other. */
	is_told = unseen <= held;
	if (is_told) {
		known = held - unseen + shown;
		is_told = ask(t, d, known, &used);
	}
	is_alone = traffic == charge_traffic() && (uint32_t)traffic == (is_mine ? 1 : 0);
	parts_collect(d);
	most = charge_watched(d);
	if (!is_told || hidden != hidden_bytes(d) || shown != ipc_shown_bytes(d) ||
		foreign != ipc_foreign_bytes(d))
		return false;
	ret_found->least_bytes = above(used, known + foreign + (most > held ? most - held : 0));
	/* While others charge and give back, only the least can be told. */
	ret_found->most_bytes = held == held_bytes(d) ? above(used, known) : UINT64_MAX;
	ret_found->is_exact = is_alone && ret_found->most_bytes != UINT64_MAX;
	return true;
}

/*
 * Looks. What this process opened is shown for it from the instant in which its last other holder lets it go, or dies, and
 * the books follow. So while there is such memory, more is believed when the dead have been looked for, and when it is
 * still there a moment later.
 */
static bool look(struct account *t, struct device *d, const struct charge *reserved,
	struct finding *ret_found)
{
	uint64_t expected = t->unattributed_bytes +
			    (reserved ? (uint64_t)reserved->units * REGION_UNIT_BYTES : 0);
	struct timespec pause = {.tv_nsec = SECOND_LOOK_NS};
	bool is_told = look_once(t, d, reserved, ret_found);

	if (!is_told || ret_found->least_bytes <= expected || !ipc_is_open_elsewhere(d))
		return is_told;
	charge_reap(d);
	for (int i = 0; i < LOOKS && is_told && ret_found->least_bytes > expected; i++) {
		nanosleep(&pause, NULL);
		is_told = look_once(t, d, reserved, ret_found);
	}
	return is_told;
}

/* The unattributed part as it is thought to be, within what it can be. */
static uint64_t within(const struct finding *found, uint64_t other)
{
	if (other < found->least_bytes)
		return found->least_bytes;
	return other > found->most_bytes ? found->most_bytes : other;
}

uint64_t reconcile_spare_bytes(const struct device *d)
{
	uint64_t traffic = charge_traffic(), held = held_bytes(d), used;
	uint64_t hidden = hidden_bytes(d);

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

/* Makes the unattributed part what it was found to be; under the account's lock. */
static void correct(struct account *t, struct device *d, uint64_t other)
{
	uint64_t charged = t->unattributed_bytes;

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

/* Looks; what is less is believed when it is exact, and so twice. Under the account's lock. */
static void compare(struct account *t, struct device *d, bool is_urgent)
{
	struct timespec pause = {.tv_nsec = SECOND_LOOK_NS};
	struct finding found;

	if (!look(t, d, NULL, &found))
		return;
	for (int i = 0; found.most_bytes < t->unattributed_bytes; i++) {
		if (found.is_exact && t->was_less)
			break;
		t->was_less |= found.is_exact;
		if (!is_urgent || i == LOOKS)
			return;
		nanosleep(&pause, NULL);
		if (!look(t, d, NULL, &found))
			return;
	}
	correct(t, d, within(&found, t->unattributed_bytes));
	if (found.is_exact && found.least_bytes == found.most_bytes)
		t->is_careful = false;
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
		now < atomic_load_explicit(next, memory_order_relaxed) || held_bytes(device) == 0 ||
		(why == PARTS_VIEW && !t->is_careful))
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

/*
 * What a call took by the device's free memory, which others change as well. Where the slice itself did, what the call took
 * may be hidden: it is not taken for less than was reserved, nor for something given back.
 */
static int64_t lost_bytes(int64_t reserved, const struct reconcile_call *call)
{
	int64_t bytes = round_out_i64(call->free_change_bytes, REGION_UNIT_BYTES);
	int64_t least = call->is_quiet ? 0 : reserved;

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
	if (place.entry->b != t->failures)
		place.entry->a = 0;
	place.entry->b = t->failures;
	if (more < -(int64_t)place.entry->a)
		more = -(int64_t)place.entry->a;
	place.entry->a += (uint64_t)more;
}

/*
 * By how much the unattributed part has grown, as far as can be told; under the account's lock. Where other threads are
 * in the way, or memory of other processes, the whole reservation counts as taken as far as that can be,
 * until a comparison knows better.
 */
static int64_t growth(struct account *t, struct device *d, const struct charge *charge,
	const struct reconcile_call *call, bool *ret_is_certain)
{
	int64_t reserved = (int64_t)charge->units * REGION_UNIT_BYTES, more = 0;
	struct finding found;

	/*
	 * A process that is just beginning need not wait for NVML: the next comparison will. But for what took more than was
	 * reserved, which may not fit and has to go again; it may have, where others gave back as much.
	 */
	t->is_careful = true;
	*ret_is_certain = false;
	if (!nvml_is_begun() && t->misses == 0 && call->is_quiet &&
		call->free_change_bytes <= reserved)
		return call->free_change_bytes ? reserved : 0;

	for (int i = 0; i < LOOKS && (i == 0 || t->misses < MISSES_MAX); i++) {
		if (!look(t, d, charge, &found))
			continue;
		if (found.is_exact) {
			more = (int64_t)(within(&found,
						 t->unattributed_bytes + (uint64_t)reserved) -
					 t->unattributed_bytes);
			t->is_careful = more < 0 || found.least_bytes != found.most_bytes;
			*ret_is_certain = found.least_bytes == found.most_bytes;
			return more > 0 ? more : 0;
		}
		more = (int64_t)(found.least_bytes - t->unattributed_bytes);
	}
	*ret_is_certain = t->misses >= MISSES_MAX;
	if (*ret_is_certain)
		return lost_bytes(reserved, call);
	return more > reserved ? more : reserved;
}

struct growth reconcile_guarded(
	struct device *device, struct charge *charge, const struct reconcile_call *call)
{
	struct account *t = &accounts[device->ordinal];
	bool is_ours = lock_enter_within(&t->lock, RECONCILE_WAIT_NS), is_certain = false;
	int64_t more, reserved = (int64_t)charge->units * REGION_UNIT_BYTES;
	struct growth found;

	/* Without the lock the whole reservation stays, and the next comparison finds what is too much. */
	more = is_ours ? growth(t, device, charge, call, &is_certain) : reserved;
	if (more < -(int64_t)t->unattributed_bytes)
		more = -(int64_t)t->unattributed_bytes;
	atomic_fetch_add(&t->unattributed_bytes, (uint64_t)more);
	if (more > reserved)
		atomic_fetch_add(&t->found_bytes, (uint64_t)(more - reserved));
	FAULT("reconcile: counted");
	charge_commit(charge, more);
	if (is_ours)
		t->doubts = 0;
	found = (struct growth){.charged_bytes = more,
		.is_measured = is_ours,
		.is_told = is_ours && t->misses < MISSES_MAX,
		.is_certain = is_certain};
	if (!is_ours)
		return found;
	if (!found.is_told && more && call->life)
		note_untold(t, call->life, more);
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
	if (!nvml_is_begun() || held_bytes(device) == 0 || !lock_try(&t->lock))
		return;
	if (look(t, device, NULL, &found) && found.least_bytes > t->unattributed_bytes)
		correct(t, device, found.least_bytes);
	lock_leave(&t->lock);
}

struct reconcile_figure reconcile_ask(const struct device *device)
{
	struct reconcile_figure figure = {.traffic = charge_traffic()};

	figure.is_told =
		own_pid_memory_bytes(device->uuid, held_bytes(device), &figure.used_bytes) == 0;
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
	struct timespec pause = {.tv_nsec = SECOND_LOOK_NS};
	struct finding found;
	bool is_shown = has_risen(device, before, bytes);

	if (is_shown || !lock_enter_within(&t->lock, RECONCILE_WAIT_NS))
		return is_shown;
	for (int i = 0; i < LOOKS && !is_shown; i++) {
		if (i)
			nanosleep(&pause, NULL);
		if (!look(t, device, charge, &found))
			continue;
		/* What is charged as unattributed may be all that the figure has beside. */
		is_shown = found.least_bytes >= bytes + t->unattributed_bytes;
		if (found.is_exact)
			break;
	}
	lock_leave(&t->lock);
	return is_shown;
}

void reconcile_look_again(const struct device *device)
{
	accounts[device->ordinal].is_careful = true;
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

	if (table_take(&untold, life, &entry) != 0 ||
		!lock_enter_within(&t->lock, RECONCILE_WAIT_NS))
		return;
	/* A comparison since then has corrected it. */
	if (t->misses >= MISSES_MAX && entry.b == t->failures)
		correct(t, device,
			t->unattributed_bytes > entry.a ? t->unattributed_bytes - entry.a : 0);
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
	if (is_last &&
		(t->misses >= MISSES_MAX || own_pid_memory_bytes(device->uuid, 0, &used) < 0))
		correct(t, device, 0);
	else if (look(t, device, &(struct charge){.is_under_way = true}, &found) && found.is_exact)
		correct(t, device, within(&found, t->unattributed_bytes));
	/* else the next comparison, which comes before any refusal */
	lock_leave(&t->lock);
}

void reconcile_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		accounts[i] = (struct account){.was_less = false};
	table_forget(&untold);
}
