/* SPDX-License-Identifier: Apache-2.0 */
/* What one call took, of which nothing tells that: by the driver's figure before and after it. */
#include "base/clock.h"
#include "base/fault.h"
#include "region/evict.h"
#include "region/ledger.h"
#include "region/shared.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/account.h"
#include "tenant/memory/quiet.h"
#include "tenant/memory/reconcile.h"
#include "tenant/memory/table.h"
#include "tenant/slice/nvml.h"
#include "tenant/slice/parts.h"

/* A call that is known to take little is charged for so many times as much at most, where only the device's figure tells. */
#define BOUNDED_TIMES 4

/* So much more may be charged for a call for a while than it took. Who waited in vain waits one part in so many of the time. */
#define ALONE_WORTH_BYTES UINT64_C(0x4000000)
#define ALONE_TIMES	  16

/* Charged while the books stand alone. key: the life of a context; a: bytes; b: how often it had come to that. */
static struct table untold;

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
 * Who has died, what descriptors alone kept and are closed, and what pools have given back, is found first, and is a change; marks of descriptors may
 * stand elsewhere, too.
 */
static bool stays(struct device *d)
{
	uint64_t changes = ledger_changes(state.region.file, d->entry);

	charge_reap(d);
	parts_collect(d);
	return changes == ledger_changes(state.region.file, d->entry) &&
	       shared_left_bytes(&state.region, d->entry) == 0 &&
	       evict_stays(&state.region, d->entry);
}

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
	uint64_t owed;

	/*
	 * A process that is just beginning need not wait for NVML: the next comparison will. But for what took more than was
	 * reserved, which may not fit and has to go again; it may have, where others gave back as much, or memory went to the host.
	 */
	account_owe(t);
	owed = t->owed;
	if (!nvml_is_begun() && t->misses.in_a_row == 0 && call->is_quiet &&
		call->free_change_bytes <= reserved && stays(d)) {
		told.more = call->free_change_bytes ? reserved : 0;
		return told;
	}
	for (int i = 0; i < FINDING_LOOKS && (i == 0 || !finding_is_blind(&t->misses)); i++) {
		if (!account_look(t, d, charge, &found))
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
		*is_ours = patience_lock(&t->lock, RECONCILE_WAIT_NS);
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
	bool is_ours = patience_lock(&t->lock, RECONCILE_WAIT_NS), is_measured = is_ours;
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
		account_owe(t);
		return found;
	}
	if (!found.is_told && told.more && call->life)
		note_untold(t, call->life, told.more);
	else if (found.is_told && call->free_change_bytes < 0)
		account_compare(t, device, true);
	lock_leave(&t->lock);
	return found;
}

void reconcile_life_ended(struct device *device, uint64_t life)
{
	struct account *t = &accounts[device->ordinal];
	struct table_entry entry;
	uint64_t charged;

	if (table_take(&untold, life, &entry) != 0 || !patience_lock(&t->lock, RECONCILE_WAIT_NS))
		return;
	/* A comparison since then has corrected it. */
	charged = t->unattributed_bytes;
	if (finding_is_blind(&t->misses) && entry.b == t->misses.blind_times)
		account_correct(t, device, charged, charged > entry.a ? charged - entry.a : 0);
	lock_leave(&t->lock);
}

void measured_reset_after_fork(void)
{
	table_forget(&untold);
}
