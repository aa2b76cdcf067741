/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the slice that runs on when its turn is over (policy/overrun.h). With the meter's lock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct meter;
struct span;

/* Work of which so much is charged is seen to have ended: the slice owes what ran on beside others', so many times. */
void overruns_note(struct meter *meter, const struct span *span, uint64_t charged_ns,
	unsigned times, uint64_t now_ns);

/*
 * The same of work that is under way, of so many pieces, which began then and was expected to take so long. noted_ns: so much of it was noted before. Returns
 * how much is now.
 */
uint64_t overruns_note_while(struct meter *meter, uint64_t start_ns, uint64_t expected_ns,
	unsigned pieces, uint64_t noted_ns, uint64_t now_ns);

/* Work of the slice runs on, and nobody knows when it ends. */
void overruns_note_running(struct meter *meter, uint64_t ns, uint64_t now_ns);

/* What was given unmetered runs on, from then on, and others have waited for it until until_ns. */
void overruns_note_backlog(
	struct meter *meter, uint64_t from_ns, uint64_t until_ns, uint64_t now_ns);

/*
 * Until when the slice has no turn for such a piece, as its work ran on when others had theirs; 0: it may have one. Where it owes that
 * and may go on, *ret_careful_ns is what each piece is to be announced as; else 0.
 */
uint64_t overruns_barred_until_ns(
	const struct meter *meter, bool is_unknown, uint64_t now_ns, uint64_t *ret_careful_ns);
