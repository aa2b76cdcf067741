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
#include "tenant/driver/patience.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"
#include "tenant/memory/account.h"
#include "tenant/memory/finding.h"
#include "tenant/memory/quiet.h"

/* So many seconds in a row another thread may be found comparing. */
#define DOUBTS_MAX 10

/* Between two urgent questions: a program that is refused again and again asks often. */
#define URGENT_NS 20000000u

/*
 * What is owed is compared while no call is under way, and calls that would begin wait for it so long at most. What all the
 * same was in the way, again and again, takes one part of so many of the time, and may take that of so long at once.
 */
#define OWED_TIMES    16
#define OWED_BURST_NS UINT64_C(640000000)
/* So often what may be in no books is looked for once more beside other calls, until a comparison is exact. */
#define SEEN_NS UINT64_C(20000000)
/* So long a call waits until what others may have taken was looked for. */
#define UNSEEN_WAIT_NS UINT64_C(20000000)
/* To know less than that the process does not begin NVML, for which it would wait. */
#define OWED_WORTH_BYTES UINT64_C(0x2000000)

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

/* Whether a comparison is to be made good that could not be exact, as another call was in the way. */
static bool is_owed(const struct account *t)
{
	return t->owed != t->paid;
}

/* relaxed all: a constant once it is set */
static _Atomic bool is_started;

/*
 * A comparison lasts for milliseconds. One that does not end was left in the middle, by a handler of a signal that does not
 * return: without comparisons there is no quota. Seconds in which the process is stopped count as one, and those in which a checkpoint
 * keeps its calls in the driver as none.
 */
static void doubt(struct account *t)
{
	if (clock_is_due(&t->next_doubt_ns, RECONCILE_CHECK_NS) && !patience_is_stopped() &&
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
	account_compare(t, device, is_urgent);
	lock_leave(&t->lock);
}

/* Whether something may be in no books. */
static bool is_owed_for_more(const struct account *t)
{
	return t->owed_for_more > t->paid;
}

/* Whether nobody has looked since it came to be owed. */
static bool is_unseen(const struct account *t)
{
	return t->owed_for_more > t->seen;
}

/* Whether a comparison can tell now. */
static bool is_payable(const struct account *t)
{
	return is_owed(t) && !finding_is_blind(&t->misses) &&
	       (nvml_is_begun() || t->unattributed_bytes >= OWED_WORTH_BYTES ||
		       is_owed_for_more(t));
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
		account_compare(t, d, true);
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

/*
 * What may be in no books is not left to the last call to end, as another may be under way at any moment. Beside others a
 * comparison tells all that the figure has beyond the books, but for as much as they have reserved and not got yet. So it is made
 * at once, and again until one is exact, for which calls that begin wait as they do for the last one.
 */
static void see(struct account *t, struct device *d)
{
	if (!is_unseen(t)) {
		if (!clock_is_due(&t->next_seen_ns, SEEN_NS))
			return;
		pay(t, d);
		if (!is_owed_for_more(t))
			return;
		/* What others had reserved and hid something has come by now. Who looks meanwhile looks once more. */
		t->seen = t->owed_for_more - 1;
	}
	/* Who has the lock may have looked before. */
	for (unsigned i = 0; i < FINDING_LOOKS && is_unseen(t) && is_owed_for_more(t); i++) {
		if (!lock_enter_within(&t->lock, QUIET_NS)) {
			doubt(t);
			return;
		}
		t->doubts = 0;
		FAULT("reconcile: seeing");
		if (is_unseen(t))
			account_compare(t, d, false);
		lock_leave(&t->lock);
		if (is_unseen(t))
			finding_pause();
	}
}

static void see_all(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		if (is_owed_for_more(&accounts[i]) && !finding_is_blind(&accounts[i].misses))
			see(&accounts[i], state_device(i));
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
	see_all();
	errno = saved_errno;
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
	if (account_look(t, device, NULL, &found) && found.least_bytes > found.charged_bytes)
		account_correct(t, device, found.charged_bytes, found.least_bytes);
	lock_leave(&t->lock);
}

struct reconcile_figure reconcile_ask(const struct device *device)
{
	struct reconcile_figure figure = {.traffic = charge_traffic()};

	figure.is_told = own_pid_memory_bytes(
				 device->uuid, charge_held_bytes(device), &figure.used_bytes) == 0;
	return figure;
}

bool reconcile_has_risen(
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
	bool is_shown = reconcile_has_risen(device, before, bytes);

	if (is_shown || !patience_lock(&t->lock, RECONCILE_WAIT_NS))
		return is_shown;
	for (int i = 0; i < FINDING_LOOKS && !is_shown; i++) {
		if (i)
			finding_pause();
		if (!account_look(t, device, charge, &found))
			continue;
		/* What is charged as unattributed may be all that the figure has beside. */
		is_shown = found.least_bytes >= bytes + found.charged_bytes;
		if (found.is_exact)
			break;
	}
	lock_leave(&t->lock);
	return is_shown;
}

bool reconcile_has_figure(const struct device *device)
{
	return !finding_is_blind(&accounts[device->ordinal].misses);
}

/*
 * Without the lock, which this thread may have: what a look collects comes here, too. A look that this comes into is not exact, and what
 * is corrected by it leaves this as it is.
 */
bool reconcile_leave_to_figure(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	struct account *t = &accounts[device->ordinal];
	CHARGE_SCOPE();

	if (!reconcile_has_figure(device))
		return false;
	ledger_note(state.region.file, state.slot, device->entry, kind, -(int64_t)bytes);
	ledger_note(
		state.region.file, state.slot, device->entry, CHARGE_UNATTRIBUTED, (int64_t)bytes);
	atomic_fetch_add(&t->unattributed_bytes, bytes);
	FAULT("reconcile: in doubt");
	account_owe(t);
	return true;
}

void reconcile_doubt(struct device *device, uint64_t bytes, enum charge_kind kind)
{
	/* Without a figure there was no comparison, and there will be none. */
	if (!reconcile_leave_to_figure(device, bytes, kind))
		charge_give_back(device, bytes, kind);
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
	if (account_look(t, device, &(struct charge){.is_under_way = true}, &found))
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
	account_owe(&accounts[device->ordinal]);
}

void reconcile_look_for_less(const struct device *device)
{
	struct account *t = &accounts[device->ordinal];

	if (t->unattributed_bytes)
		account_owe(t);
}

bool reconcile_look_for_more(const struct device *device)
{
	struct account *t = &accounts[device->ordinal];
	uint64_t until_ns = 0, number, last;

	/* Who owes that is looking, or waits for who does; when that does not end, nobody can look for more. */
	for (unsigned i = 0; is_unseen(t) && !finding_is_blind(&t->misses); i++) {
		if (!until_ns)
			until_ns = clock_now_ns() + UNSEEN_WAIT_NS;
		if (clock_now_ns() >= until_ns)
			return false;
		lock_rest(i);
	}
	number = account_owe(t);
	last = t->owed_for_more;
	/* Of two threads the later one's number stays. */
	while (number > last && !atomic_compare_exchange_weak(&t->owed_for_more, &last, number))
		;
	/* once more, for who has looked before that */
	atomic_store(&call_end_is_awaited, true);
	return true;
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

void reconcile_forget(struct device *device, bool is_last)
{
	struct account *t = &accounts[device->ordinal];
	struct finding found;
	uint64_t used;

	/* A comparison under way will see for itself. */
	if (is_last ? !patience_lock(&t->lock, RECONCILE_WAIT_NS) : !lock_try(&t->lock))
		return;
	charge_unnamed_begins(device); /* as in begin_less() */
	if (is_last &&
		(finding_is_blind(&t->misses) || own_pid_memory_bytes(device->uuid, 0, &used) < 0))
		account_correct(t, device, t->unattributed_bytes, 0);
	else if (account_look(t, device, &(struct charge){.is_under_way = true}, &found) &&
		 found.is_exact)
		account_correct(t, device, found.charged_bytes,
			finding_within(&found, found.charged_bytes));
	/* else the next comparison, which comes before any refusal */
	charge_unnamed_ends(device);
	lock_leave(&t->lock);
}

void reconcile_reset_after_fork(void)
{
	for (int i = 0; i < STATE_ORDINALS; i++)
		accounts[i] = (struct account){.was_less = false};
	measured_reset_after_fork();
}
