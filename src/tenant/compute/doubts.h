/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pauses of streams are doubted.
 *
 * The last work before a pause is charged as estimated, as nothing tells when it ended, unless the program waited for it. So that
 * estimates can be relied upon, each piece of work after some pauses, which nobody can foresee, is measured by itself, in all
 * streams: the next long one may be given to another. And in all processes of the slice: the next one may be given by another,
 * which has just begun (policy/doubt.h). Lock-free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/doubt.h"
#include "region/layout.h"

/* One piece of work took so much longer than estimated that a program which hides that would gain by it. */
void doubts_note_hidden(struct region_compute *books, uint64_t hidden_ns, uint64_t now_ns);

/* Whether that was found, so that all pauses are doubted. */
bool doubts_are_all(const struct region_compute *books, uint64_t now_ns);

/* Whether a pause was drawn, so that each piece is measured now, and nothing was found so far. */
bool doubts_are_drawn(const struct region_compute *books, uint64_t now_ns);

/* A stream's pause since then, before which work was charged as estimated: whether the lot falls on it. */
bool doubts_draw(struct region_compute *books, uint64_t since_ns, uint64_t now_ns);

/*
 * Work comes after a pause since then; 0: it is the stream's first. Whether each piece of it is measured; else the first one is.
 * In both cases until *ret_until_ns at least.
 */
bool doubts_end_pause(struct region_compute *books, bool is_estimated, uint64_t since_ns,
	uint64_t now_ns, uint64_t *ret_until_ns);
