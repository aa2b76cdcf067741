/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pauses of streams are doubted.
 *
 * The last work before a pause is charged as estimated, as nothing tells when it ended, unless the program waited for it. So that
 * estimates can be relied upon, each piece of work after some pauses, which nobody can foresee, is measured by itself, in all
 * streams: the next long one may be given to another. With the meter's lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of each so many pauses before which work was charged as estimated, one is followed by work of which each piece is measured. */
#define DOUBTED 8

/* Of a meter; all zero is a first one; written by doubts.c alone. */
struct doubts {
	uint32_t pauses;   /* so many, of any stream, are followed by single pieces of work */
	uint32_t times;	   /* work was found to be hidden so often, when there were none */
	uint64_t until_ns; /* and all that come until then */
	uint32_t drawn;	   /* pauses of the present DOUBTED, and which of these is doubted */
	uint32_t lot;
};

/* One piece of work took so much longer than estimated that a program which hides that would gain by it. */
void doubts_note_hidden(struct doubts *doubts);

/* A stream's pause since then, before which work was charged as estimated: whether the lot falls on it. */
bool doubts_draw(struct doubts *doubts, uint64_t since_ns, uint64_t now_ns);

/*
 * Work comes after a pause since then; 0: it is the stream's first. Whether each piece of it is measured; else the first one is.
 * In both cases until *ret_until_ns at least.
 */
bool doubts_end_pause(struct doubts *doubts, bool is_estimated, uint64_t since_ns, uint64_t now_ns,
	uint64_t *ret_until_ns);
