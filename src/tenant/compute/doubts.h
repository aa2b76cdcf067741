/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which work of streams is doubted.
 *
 * The last work before a pause is charged as estimated, as nothing tells when it ended, unless the program waited for it. So that
 * estimates can be relied upon, of the work after such a pause some pieces, which nobody can foresee, are measured each by itself, in all
 * streams: the next long one may be given to another. And in all processes of the slice: the next one may be given by another,
 * which has just begun (policy/doubt.h). Lock-free, but for the process's own generator.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/doubt.h"
#include "region/layout.h"

/* One piece of work took so much longer than estimated that a program which hides that would gain by it. */
void doubts_note_hidden(struct region_compute *books, uint64_t hidden_ns, uint64_t now_ns);

/* Whether that was found, so that each piece that is doubted is measured. */
bool doubts_are_all(const struct region_compute *books, uint64_t now_ns);

/* A stream's pause since then, before which work was charged as estimated. From the slice's first one on it is suspected for as long as doubted. */
void doubts_note_pause(struct region_compute *books, uint64_t since_ns, uint64_t now_ns);

/*
 * Whether a piece of work that is doubted is measured. *random is the process's own, so that no other one reads or changes it; 0: none yet, as
 * in a child of fork(). Under one lock.
 */
bool doubts_draw(uint64_t *random);

/*
 * Work comes after a pause since then; 0: it is the stream's first. Its work is doubted until *ret_until_ns at least; 0: it is not. Whether each
 * piece of it is measured meanwhile.
 */
bool doubts_end_pause(struct region_compute *books, bool is_estimated, uint64_t since_ns,
	uint64_t now_ns, uint64_t *ret_until_ns);
