/* SPDX-License-Identifier: Apache-2.0 */
/* The unattributed part of each device, and how it is found. */
#include "tenant/memory/account.h"

#include "base/fault.h"
#include "tenant/driver/call_end.h"

struct account accounts[STATE_ORDINALS];

bool account_look(struct account *t, struct device *d, const struct charge *reserved,
	struct finding *ret_found)
{
	return finding_look(&t->misses, d, &t->unattributed_bytes, reserved, ret_found);
}

void account_correct(struct account *t, struct device *d, uint64_t charged, uint64_t other)
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

uint64_t account_owe(struct account *t)
{
	uint64_t number;

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

/* What a comparison could tell. */
enum told {
	TOLD_NOTHING,
	TOLD_MORE, /* all that the figure has beyond the books is charged; calls under way may hide some */
	TOLD_EXACTLY,
};

/* Looks; what is less is believed when it is exact, and so twice. */
static enum told compare_looks(
	struct account *t, struct device *d, bool is_urgent, bool *is_less_begun)
{
	struct finding found;

	if (t->was_less)
		begin_less(d, is_less_begun);
	if (!account_look(t, d, NULL, &found))
		return TOLD_NOTHING;
	for (int i = 0; found.most_bytes < found.charged_bytes; i++) {
		if (found.is_exact && t->was_less)
			break;
		t->was_less |= found.is_exact;
		if (!is_urgent || i == FINDING_LOOKS)
			return TOLD_MORE;
		finding_pause();
		begin_less(d, is_less_begun);
		if (!account_look(t, d, NULL, &found))
			return TOLD_MORE;
	}
	account_correct(t, d, found.charged_bytes, finding_within(&found, found.charged_bytes));
	if (found.is_exact && found.least_bytes == found.most_bytes)
		t->is_careful = false;
	return found.is_exact ? TOLD_EXACTLY : TOLD_MORE;
}

/* The same, under the account's lock. */
static enum told compare_once(struct account *t, struct device *d, bool is_urgent)
{
	bool is_less_begun = false;
	enum told told = compare_looks(t, d, is_urgent, &is_less_begun);

	if (is_less_begun)
		charge_unnamed_ends(d);
	return told;
}

void account_compare(struct account *t, struct device *d, bool is_urgent)
{
	uint64_t owed = t->owed;
	enum told told = compare_once(t, d, is_urgent);

	if (told == TOLD_EXACTLY)
		t->paid = owed;
	if (told != TOLD_NOTHING)
		t->seen = owed;
}
