/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the slice that runs on when its turn is over. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/overruns.h"

#include "base/log.h"
#include "policy/overrun.h"
#include "region/busy.h"
#include "tenant/compute/meters.h"

void overruns_note(struct meter *m, const struct span *span, uint64_t charged_ns, unsigned times,
	uint64_t now_ns)
{
	uint64_t ns;

	if (!m->turns.is_open || !m->turns.peer_count)
		return;
	ns = overrun_ns(
		span->start_ns, span->end_ns, span->expected_ns, m->turns.turn.held_until_ns);
	if (ns > charged_ns)
		ns = charged_ns;
	if (!ns)
		return;
	log_debug("work ran on when its time slice was over", U64("overrun_ns", ns));
	busy_note_overrun(m->books, ns * times, now_ns, now_ns);
}

void overruns_note_running(struct meter *m, uint64_t ns, uint64_t now_ns)
{
	busy_note_overrun(m->books, ns, now_ns, now_ns);
}

uint64_t overruns_barred_until_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t ns;

	if (!m->turns.is_open || !m->turns.peer_count)
		return 0;
	/* relaxed: the word is complete in itself */
	ns = overrun_wait_ns(
		atomic_load_explicit(&m->books->overrun, memory_order_relaxed), now_ns);
	return ns ? now_ns + ns : 0;
}
