/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML shows for this process beyond its books.
 *
 * The books run ahead of the driver: a charge is there before the memory is, and leaves after it.
 * So NVML's figure is above the books only by what is in none of them. Managed memory is the one
 * thing that is in the books and not in NVML's figure. What this process made and shares is in the
 * figure, and in a shared allocation's books (ipc.h). What it opened is in the figure of its maker, or in that of one
 * opener: in this one's only where nobody else holds it. What it opened of another slice is in the maker's or in its
 * own, so with such memory the unattributed part is known to lie between two bounds, and stays as it is between them;
 * each slice pays for itself, so nobody gains by that. Memory of other interfaces is so, too, where the figure had it when it
 * was imported: it is this process's own then, or as much is charged as unattributed.
 */
#define LOG_TOPIC LOG_LEDGER
#include "tenant/memory/finding.h"

#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/ipc.h"
#include "tenant/slice/own_pid.h"
#include "tenant/slice/parts.h"

/*
 * A context that is just being made is not in NVML's list yet. After so many questions in a row the books stand alone, and
 * it is asked once a second: a program can make it fail for a while.
 */
#define MISSES_MAX 5
#define RETRY_NS   UINT64_C(1000000000)

/* Between two looks that are to tell a free under way from memory that is gone. */
#define PAUSE_NS 500000

uint64_t finding_hidden_bytes(const struct device *d)
{
	const _Atomic uint64_t *kinds =
		state.region.file->own.slots[state.slot].kind_bytes[d->entry];

	/* relaxed: compared before and after, as part of what is held */
	return atomic_load_explicit(&kinds[CHARGE_MANAGED], memory_order_relaxed) +
	       atomic_load_explicit(&kinds[CHARGE_SHARED], memory_order_relaxed);
}

void finding_pause(void)
{
	nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
}

bool finding_is_blind(const struct finding_misses *misses)
{
	return misses->in_a_row >= MISSES_MAX;
}

static void note(enum region_note bits)
{
	/* relaxed: for people to read */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].notes, bits, memory_order_relaxed);
}

static uint64_t above(uint64_t used, uint64_t known)
{
	return used > known ? round_up_u64(used - known, REGION_UNIT_BYTES) : 0;
}

/* NVML's figure; false where it has none, with a note of that for people. */
static bool ask(
	struct finding_misses *m, const struct device *d, uint64_t known, uint64_t *ret_used)
{
	int r;

	if (finding_is_blind(m) && !clock_is_due(&m->next_retry_ns, RETRY_NS))
		return false;
	FAULT("reconcile: asking");
	r = own_pid_memory_bytes(d->uuid, known, ret_used);
	FAULT("reconcile: answered");
	if (r == 0) {
		note(REGION_NOTE_NVML);
		own_pid_is_confirmed(d);
		m->in_a_row = 0;
		return true;
	}
	if (++m->in_a_row < MISSES_MAX)
		return false;
	note(REGION_NOTE_NO_NVML);
	if (m->in_a_row > MISSES_MAX)
		return false;
	m->blind_times++;
	(void)clock_is_due(&m->next_retry_ns, RETRY_NS);
	log_debug("nvml has no figure for this process, so its accounting stands alone",
		STR("device", d->uuid));
	return false;
}

/* Room for frames may be booked before it is there (local.c). */
static uint64_t local_bytes(const struct device *d)
{
	/* relaxed: read again afterwards, beside the traffic */
	return atomic_load_explicit(
		&state.region.file->own.slots[state.slot].kind_bytes[d->entry][CHARGE_LOCAL],
		memory_order_relaxed);
}

/*
 * Looks once; false where nothing can be told now. What is reserved is in the books for what is just being
 * looked for. What came back by itself, as streams went on, is taken out of the books before and after the question:
 * it would hide what was taken.
 */
static bool look_once(struct finding_misses *m, struct device *d,
	const _Atomic uint64_t *unattributed_bytes, const struct charge *reserved,
	struct finding *ret_found)
{
	uint64_t traffic, held, hidden, unseen, shown, foreign, most, used, known = 0, away, local;
	uint64_t other;
	bool is_mine = reserved && reserved->is_under_way, is_told, is_still, is_alone;

	parts_collect(d);
	other = *unattributed_bytes;
	traffic = charge_traffic();
	held = charge_watch(d);
	hidden = finding_hidden_bytes(d);
	local = local_bytes(d);
	unseen = hidden + other;
	shown = ipc_shown_bytes(d);
	foreign = ipc_foreign_bytes(d);

	if (reserved)
		unseen += (uint64_t)reserved->units * REGION_UNIT_BYTES;
	/* A charge on its way moves one of them before the other. */
	is_told = unseen <= held;
	if (is_told) {
		known = held - unseen + shown;
		is_told = ask(m, d, known, &used);
	}
	away = charge_unsettled_bytes() + local -
	       (is_mine ? (uint64_t)reserved->unsettled * REGION_UNIT_BYTES : 0);
	is_still = traffic == charge_traffic() && local == local_bytes(d);
	is_alone = traffic == charge_traffic() && (uint32_t)traffic == (is_mine ? 1 : 0);
	parts_collect(d);
	most = charge_watched(d);
	if (!is_told || hidden != finding_hidden_bytes(d) || shown != ipc_shown_bytes(d) ||
		foreign != ipc_foreign_bytes(d))
		return false;
	ret_found->least_bytes = above(used, known + foreign + (most > held ? most - held : 0));
	/* While others charge and give back, only the least can be told. */
	ret_found->most_bytes = held == charge_held_bytes(d) && other == *unattributed_bytes
					? above(used, known)
					: UINT64_MAX;
	ret_found->charged_bytes = other;
	ret_found->beyond_bytes = (int64_t)(used - known);
	ret_found->traffic = traffic;
	ret_found->worst_bytes = is_still && ret_found->most_bytes != UINT64_MAX
					 ? above(used, known > away ? known - away : 0)
					 : UINT64_MAX;
	ret_found->is_exact = is_alone && ret_found->most_bytes != UINT64_MAX;
	return true;
}

bool finding_look(struct finding_misses *m, struct device *d,
	const _Atomic uint64_t *unattributed_bytes, const struct charge *reserved,
	struct finding *ret_found)
{
	uint64_t expected = *unattributed_bytes +
			    (reserved ? (uint64_t)reserved->units * REGION_UNIT_BYTES : 0);
	bool is_told = look_once(m, d, unattributed_bytes, reserved, ret_found);

	if (!is_told || ret_found->least_bytes <= expected || !ipc_is_open_elsewhere(d))
		return is_told;
	charge_reap(d);
	for (int i = 0; i < FINDING_LOOKS && is_told && ret_found->least_bytes > expected; i++) {
		finding_pause();
		is_told = look_once(m, d, unattributed_bytes, reserved, ret_found);
	}
	return is_told;
}

uint64_t finding_within(const struct finding *found, uint64_t other)
{
	if (other < found->least_bytes)
		return found->least_bytes;
	return other > found->most_bytes ? found->most_bytes : other;
}
