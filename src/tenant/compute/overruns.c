/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the slice that runs on when its turn is over. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/overruns.h"

#include "base/bits.h"
#include "base/log.h"
#include "policy/overrun.h"
#include "region/busy.h"
#include "tenant/compute/meters.h"

/* To it and back, while another slice has the turn (H200). */
#define CHANGES_NS UINT64_C(300000)

/* What was given unmetered and runs for longer may not end, and the slice's other processes go on beside it. */
#define BACKLOG_MOST_NS UINT64_C(60000000000)

static uint64_t piece_ns(const struct span *span)
{
	unsigned count = 0;

	for (uint32_t i = 0; i < span->mix.kind_count; i++)
		count += span->mix.kind[i].times;
	return (span->end_ns - span->start_ns) / (count ? count : 1);
}

/* How long work ran on that was or is under way then. */
static uint64_t ran_on_ns(
	struct meter *m, uint64_t start_ns, uint64_t end_ns, uint64_t expected_ns, uint64_t now_ns)
{
	if (!m->turns.is_open || !m->turns.peer_count)
		return 0;
	/* Nobody waits for a turn of which the record says nothing. */
	if (turn_is_hidden(&m->turns.turn, now_ns))
		return overrun_ns(start_ns, end_ns, 0, 0);
	return overrun_ns(start_ns, end_ns, expected_ns, m->turns.turn.held_until_ns);
}

/* Of work that began when what it came behind had ended: each piece of it that was not within the turn, also a short one. */
static uint64_t outside_ns(const struct meter *m, const struct span *span)
{
	uint64_t from_ns = max_u64(span->start_ns, m->turns.turn.held_until_ns);

	return m->turns.is_open && m->turns.peer_count && span->end_ns > from_ns
		       ? span->end_ns - from_ns + CHANGES_NS
		       : 0;
}

void overruns_note(struct meter *m, const struct span *span, uint64_t charged_ns, unsigned times,
	uint64_t now_ns)
{
	uint64_t ns = span->is_behind ? outside_ns(m, span)
				      : ran_on_ns(m, span->start_ns, span->end_ns,
						span->expected_ns, now_ns);

	if (ns > charged_ns && !span->is_behind)
		ns = charged_ns;
	ns *= times;
	if (ns <= span->ran_on_ns)
		return;
	log_debug("work ran on when its time slice was over", U64("overrun_ns", ns));
	busy_note_overrun(m->books, ns - span->ran_on_ns, piece_ns(span), now_ns, now_ns);
}

uint64_t overruns_note_while(struct meter *m, uint64_t start_ns, uint64_t expected_ns,
	unsigned pieces, uint64_t noted_ns, uint64_t now_ns)
{
	uint64_t ns = ran_on_ns(m, start_ns, now_ns, expected_ns, now_ns);

	if (ns <= noted_ns)
		return noted_ns;
	busy_note_overrun(m->books, ns - noted_ns, (now_ns - start_ns) / (pieces ? pieces : 1),
		now_ns, now_ns);
	return ns;
}

void overruns_note_running(struct meter *m, uint64_t ns, uint64_t now_ns)
{
	busy_note_overrun(m->books, ns, UINT64_MAX, now_ns, now_ns);
}

void overruns_note_backlog(struct meter *m, uint64_t from_ns, uint64_t until_ns, uint64_t now_ns)
{
	if (from_ns < until_ns)
		from_ns = until_ns;
	if (m->turns.is_open && m->turns.peer_count && from_ns < now_ns &&
		from_ns < until_ns + BACKLOG_MOST_NS)
		overruns_note_running(m, now_ns - from_ns, now_ns);
}

uint64_t overruns_barred_until_ns(
	const struct meter *m, bool is_unknown, uint64_t now_ns, uint64_t *ret_careful_ns)
{
	uint64_t ns;

	*ret_careful_ns = 0;
	if (!m->turns.is_open || !m->turns.peer_count)
		return 0;
	/* relaxed, both: a word is complete in itself */
	ns = overrun_wait_ns(
		atomic_load_explicit(&m->books->overrun, memory_order_relaxed), now_ns);
	if (ns && !is_unknown)
		*ret_careful_ns = overrun_careful_ns(
			atomic_load_explicit(&m->books->turn.ran_on, memory_order_relaxed), now_ns);
	return ns && !*ret_careful_ns ? now_ns + ns : 0;
}
