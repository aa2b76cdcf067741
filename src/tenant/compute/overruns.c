/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the slice that runs on when its turn is over. */
#define LOG_TOPIC LOG_COMPUTE
#include "tenant/compute/overruns.h"

#include "base/log.h"
#include "policy/overrun.h"
#include "tenant/compute/meters.h"

void overruns_note(struct meter *m, const struct span *span, uint64_t charged_ns, unsigned times,
	uint64_t now_ns)
{
	_Atomic uint64_t *word = &m->books->overrun;
	/* relaxed, both: the word is complete in itself */
	uint64_t ns, seen = atomic_load_explicit(word, memory_order_relaxed);

	if (!m->turns.is_open || !m->turns.peer_count)
		return;
	ns = overrun_ns(
		span->start_ns, span->end_ns, span->expected_ns, m->turns.turn.held_until_ns);
	if (ns > charged_ns)
		ns = charged_ns;
	if (!ns)
		return;
	log_debug("work ran on when its time slice was over", U64("overrun_ns", ns));
	while (!atomic_compare_exchange_weak_explicit(word, &seen,
		overrun_note(seen, ns * times, now_ns), memory_order_relaxed, memory_order_relaxed))
		;
}

uint64_t overruns_barred_until_ns(const struct meter *m, uint64_t now_ns)
{
	uint64_t ns;

	if (!m->turns.is_open || !m->turns.peer_count)
		return 0;
	/* relaxed: as in overruns_note() */
	ns = overrun_wait_ns(
		atomic_load_explicit(&m->books->overrun, memory_order_relaxed), now_ns);
	return ns ? now_ns + ns : 0;
}
