/* SPDX-License-Identifier: Apache-2.0 */
/* The charge for a span of a stream's work. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/span.h"

#include "base/fault.h"
#include "base/log.h"
#include "region/busy.h"
#include "tenant/compute/doubts.h"
#include "tenant/compute/meters.h"
#include "tenant/compute/overruns.h"
#include "tenant/compute/queue.h"

/* The overlap is that of so much work of all streams; that of less depends on which of them was charged first. */
#define OVERLAP_NS UINT64_C(64000000)

/* A piece may take so much longer than known by chance, and so much of more is likely to be hidden: not one that the host's pauses made longer. */
#define LONGER_PART 10
#define LONGER_NS   3000
#define HIDDEN_NS   50000

/*
 * Beside an untracked process the driver's time slices, of 2 ms (H200), interrupt every second batch or so. One that
 * takes so much longer than it should is taken for interrupted, and what it should take is the slice's. Many in a row are
 * taken for work that has become longer. What spans several time slices was always interrupted, and its part is known by
 * what others want. Beyond that the driver's figures are the judge (policy/untracked.h).
 */
#define INTERRUPTED_NS 500000u
#define CHANGE_NS \
	50000u /* the first after a pause waits for the device to change over: 0.15 ms (H200) */
#define INTERRUPTED_TIMES 8u
#define SLICES_NS	  6000000u
#define SLICE_US	  2000u /* one of them, and a change to another process (H200) */
#define SLICE_CHANGE_US	  150u

static bool is_interrupted(
	const struct meter *m, const struct span *span, uint64_t ns, uint64_t took_ns)
{
	if (!ns || m->spans.interrupted == INTERRUPTED_TIMES)
		return false;
	if (span->is_first)
		return took_ns > ns + CHANGE_NS;
	return took_ns > ns + INTERRUPTED_NS && took_ns > ns + ns / 4;
}

/* What others have for each 100 of ours in a long span: their time slices, each with a change to it and back. */
static uint32_t others_percent(const struct meter *m)
{
	return m->limits.contended_percent * (SLICE_US + 2 * SLICE_CHANGE_US) / SLICE_US;
}

/* Of the time that the span took, what is the slice's own, in permille. */
static uint32_t own_permille(struct meter *m, const struct span *span, uint64_t took_ns)
{
	uint64_t ns;

	if (!m->limits.contended_percent || !(span->is_measured || span->is_waited_for))
		return 1000;
	ns = estimate_mix_ns(&span->mix);
	if (is_interrupted(m, span, ns, took_ns)) {
		m->spans.interrupted++;
		return (uint32_t)(ns * 1000 / took_ns);
	}
	m->spans.interrupted = 0;
	return took_ns > SLICES_NS ? 100000 / (100 + others_percent(m)) : 1000;
}

/*
 * How much of the time nobody else of the slice has been charged for. Work that began so much later at most was surely under
 * way from then to the end as it is given, and nothing else is known of when it was: where it was not, it would cover what was.
 */
static uint64_t mark(struct meter *m, uint64_t from_ns, uint64_t end_ns, uint64_t unsure_ns)
{
	uint64_t took = end_ns > from_ns ? end_ns - from_ns : 0;

	if (unsure_ns >= took)
		return took;
	return unsure_ns + busy_mark(m->books, from_ns + unsure_ns, end_ns);
}

/* How much of the time counts, and the books of it for people. */
static uint64_t book(struct meter *m, uint64_t from_ns, uint64_t end_ns, uint64_t unsure_ns,
	uint32_t own, uint64_t *ret_elapsed)
{
	uint64_t elapsed = mark(m, from_ns, end_ns, unsure_ns), fresh;

	FAULT("meter: marked");
	*ret_elapsed = elapsed;
	elapsed = elapsed * own / 1000;
	fresh = elapsed * m->limits.counted_permille / 1000;
	m->spans.busy_ns += elapsed;
	/* relaxed: for people to read */
	atomic_fetch_add_explicit(&m->books->elapsed_ns, elapsed, memory_order_relaxed);
	atomic_fetch_add_explicit(&m->books->busy_ns, fresh, memory_order_relaxed);
	return fresh;
}

int64_t span_charge_running(struct meter *m, uint64_t from_ns, uint64_t now_ns, uint64_t unsure_ns)
{
	uint64_t elapsed, fresh = book(m, from_ns, now_ns, unsure_ns, 1000, &elapsed);

	credit_charge_running(m, (int64_t)fresh, from_ns, now_ns);
	return (int64_t)fresh;
}

/*
 * Of a piece that was drawn: how much is likely to be hidden, 0: nothing. All of
 * them are held against what was known before, so nothing is learned of them.
 */
static uint64_t sample(struct meter *m, uint64_t known_ns, uint64_t took_ns)
{
	uint64_t longer_ns = m->spans.longer_ns + took_ns,
		 honest_ns = known_ns + known_ns / LONGER_PART + LONGER_NS;

	longer_ns = longer_ns > honest_ns ? longer_ns - honest_ns : 0;
	m->spans.longer_ns = longer_ns > HIDDEN_NS ? 0 : longer_ns;
	return longer_ns > HIDDEN_NS ? longer_ns : 0;
}

/* By how much the work took longer than it was known to, where that is likely to be hidden otherwise. */
static uint64_t find_hidden(struct meter *m, const struct span *span, uint64_t took_ns)
{
	bool is_rough = span->is_first && m->turns.peer_count;
	uint64_t known_ns = estimate_mix_ns(&span->mix);

	if (!span->is_measured || m->spans.interrupted)
		return 0;
	/* What is expected to take a batch has an event behind it, and is found out at once: it takes longer beside others' work. */
	if (!m->turns.peer_count && span->is_drawn && span->expected_ns < METER_BATCH_NS &&
		known_ns)
		return sample(m, known_ns, took_ns);
	/* With others about, the first work also waits for the device to change over: 0.15 ms (H200). */
	return estimate_learn(&span->mix, took_ns, is_rough) &&
			       span->expected_ns < METER_BATCH_NS && took_ns > span->expected_ns
		       ? took_ns - span->expected_ns
		       : 0;
}

/*
 * How often what ran on counts. What is found out by chance stands for as much that is not; beside others' work any takes somewhat longer. Where each
 * piece is measured it stands for itself: it may have been no work at all, but the processor that was away within a launch.
 */
static unsigned times_of(const struct meter *m, const struct span *span, uint64_t hidden_ns,
	uint64_t took_ns, uint64_t now_ns)
{
	return span->is_drawn && hidden_ns && took_ns > 2 * span->expected_ns &&
			       !doubts_are_all(m->books, now_ns)
		       ? DOUBTED
		       : 1;
}

static void note_overlap(struct spans *s, uint64_t took_ns, uint64_t fresh_ns)
{
	s->took_ns += took_ns;
	s->fresh_ns += fresh_ns;
	while (s->took_ns > OVERLAP_NS) {
		s->took_ns /= 2;
		s->fresh_ns /= 2;
	}
	if (s->took_ns)
		s->overlap_permille = (uint32_t)(s->fresh_ns * 1000 / s->took_ns);
}

uint64_t span_charge(struct meter *m, const struct span *span, uint64_t now_ns)
{
	uint64_t from = span->start_ns > span->paid_ns ? span->start_ns : span->paid_ns;
	uint64_t took = span->end_ns - span->start_ns, elapsed, fresh;
	uint32_t own = own_permille(m, span, took);
	uint64_t hidden_ns;

	credit_hide(m);
	fresh = book(m, from, span->end_ns, span->is_placed ? span->unsure_ns : UINT64_MAX, own,
		&elapsed);
	if (!span->paid_ns)
		note_overlap(&m->spans, took, elapsed);
	if (span->queued_ns)
		queue_correct(m, (int64_t)(elapsed - span->queued_ns), now_ns);
	hidden_ns = find_hidden(m, span, took);
	log_debug("work was counted", U64("start_ns", span->start_ns), U64("took_ns", took),
		U64("charged_ns", fresh), U64("reserved_ns", (uint64_t)span->reserved_ns),
		U64("measured", span->is_measured));
	credit_charge(m, span->reserved_ns, (int64_t)fresh, from, now_ns);
	credit_end_running(m, span->running_ns, now_ns);
	overruns_note(m, span, elapsed + (uint64_t)span->running_ns,
		times_of(m, span, hidden_ns, took, now_ns), now_ns);
	/* relaxed: for people to read */
	atomic_fetch_add_explicit(
		&m->books->lent_ns, credit_lent_ns(m, fresh), memory_order_relaxed);
	FAULT("meter: partly charged");
	return hidden_ns;
}
