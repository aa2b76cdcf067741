/* SPDX-License-Identifier: Apache-2.0 */
/* The work that a meter's streams have under way. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/work.h"

#include "base/fault.h"
#include "base/log.h"
#include "policy/throttle.h"
#include "region/busy.h"
#include "tenant/compute/credit.h"
#include "tenant/compute/meters.h"

/* So many pauses are doubted (stream_state.c) once that has shown work to be hidden. */
#define DOUBTED_WHEN_SHOWN 64

#define OVERLAP_SHARE	   4 /* an error moves the overlap by a quarter of it */

static void charge(struct stream_state *s, const struct stream_span *span, uint64_t now_ns)
{
	struct meter *m = s->meter;
	uint64_t took = span->end_ns - span->start_ns;
	uint64_t elapsed = busy_mark(m->books, span->start_ns, span->end_ns);
	uint64_t fresh = elapsed * m->limits.counted_permille / 1000;
	bool is_lent;

	FAULT("meter: marked");
	if (took) {
		int64_t error = (int64_t)(elapsed * 1000 / took) - m->work.overlap_permille;

		m->work.overlap_permille =
			(uint32_t)(m->work.overlap_permille + error / OVERLAP_SHARE);
	}
	/* With others about, the first work also waits for the device to change over: 0.15 ms (H200). */
	if (span->is_measured &&
		estimate_learn(&span->mix, took, span->is_first && m->turns.peer_count))
		s->doubted_pauses = DOUBTED_WHEN_SHOWN;
	log_debug("work was charged", U64("start_ns", span->start_ns), U64("took_ns", took),
		U64("charged_ns", fresh), U64("reserved_ns", (uint64_t)span->reserved_ns),
		U64("measured", span->is_measured));
	credit_charge(m, span->reserved_ns, (int64_t)fresh, now_ns);
	is_lent = credit_is_borrowing(m, now_ns);
	m->work.charged_ns += fresh;
	/* relaxed: for people to read */
	atomic_fetch_add_explicit(&m->books->elapsed_ns, elapsed, memory_order_relaxed);
	atomic_fetch_add_explicit(&m->books->busy_ns, fresh, memory_order_relaxed);
	if (is_lent)
		atomic_fetch_add_explicit(&m->books->lent_ns, fresh, memory_order_relaxed);
	FAULT("meter: partly charged");
}

void work_collect(struct meter *m, uint64_t now_ns)
{
	struct stream_span span;

	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		while (s->pending && stream_state_collect(s, now_ns, &span))
			charge(s, &span, now_ns);
	}
}

void work_break(struct stream_state *s, uint64_t now_ns)
{
	struct stream_span span;

	if (stream_state_break(s, now_ns, &span))
		charge(s, &span, now_ns);
}

void work_note_pause(struct stream_state *s, uint64_t now_ns)
{
	struct stream_span span;

	if (stream_state_note_pause(s, now_ns, &span))
		charge(s, &span, now_ns);
}

uint64_t work_unknown_since_ns(const struct stream_state *s)
{
	for (unsigned i = 0; i < s->pending; i++) {
		const struct batch *b = &s->batches[(s->first + i) % STREAM_BATCHES];

		if (b->is_unknown)
			return b->start_ns;
	}
	return 0;
}

uint64_t work_end_ns(const struct meter *m)
{
	uint64_t latest = 0;

	for (unsigned i = 0; i < m->streams.high; i++) {
		const struct stream_state *s = &m->streams.at[i];

		if (s->is_used && (s->pending || s->is_open) && s->drained_ns > latest)
			latest = s->drained_ns;
	}
	return latest;
}

/* Streams of other threads, and those that have no handle of their own, cannot be given an event from here. */
static bool is_reachable(const struct stream_state *s)
{
	return !s->thread && s->stream && s->stream != CU_STREAM_LEGACY;
}

/* An open batch has no event that would tell of its end, so only time does, where none can be recorded. */
bool work_is_idle(const struct meter *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		const struct stream_state *s = &m->streams.at[i];

		if (s->pending)
			return false;
		if (s->is_open && (is_reachable(s) || now_ns < s->drained_ns + THROTTLE_LATE_NS))
			return false;
	}
	return true;
}

void work_end_batches(struct meter *m)
{
	for (unsigned i = 0; i < m->streams.high; i++) {
		struct stream_state *s = &m->streams.at[i];

		if (s->is_open && is_reachable(s))
			stream_state_close(s);
	}
}

void work_say_busy_until(struct meter *m, uint64_t until_ns)
{
	/* relaxed: for others to wait a little longer or not */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].busy_until_ns[m->device->entry], until_ns,
		memory_order_relaxed);
}
