/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours that take no turns. */
#include "policy/foreign.h"

/* From here on the figures agree: what the driver rounds, and a window's noise. */
#define AGREED_PERMILLE 950u
/* Only what is clearly less is believed to be a neighbour's. */
#define LESS_PERMILLE 850u
/* A slice that hardly works is no measure: the driver's percents are whole. */
#define LEAST_WORK_PERMILLE 30u
/*
 * So many looks in a row that show nobody else are no accident of the samples, of which one in eight gives all to
 * one of two; and between two figures so much is rounding.
 */
#define ALONE_LOOKS   5u
#define SLACK_PERCENT 3u

static void begin_window(struct foreign *f, const struct foreign_look *look)
{
	f->begun_ns = look->now_ns;
	f->elapsed_ns = look->elapsed_ns;
	f->slice_percent_ns = 0;
	f->device_percent_ns = 0;
	f->samples = 0;
	f->seen = 0;
	f->has_turns = false;
}

/* What of the window's elapsed time was the slice's own; 0: that cannot be told. */
static uint32_t own_permille(const struct foreign *f, const struct foreign_look *look)
{
	uint64_t passed_ns = look->now_ns - f->begun_ns;
	uint64_t elapsed_ns = look->elapsed_ns - f->elapsed_ns;
	uint64_t slice_ns = f->slice_percent_ns / 100, device_ns = f->device_percent_ns / 100;
	uint64_t others_ns = device_ns > slice_ns ? device_ns - slice_ns : 0, own_ns;

	if (!f->seen || elapsed_ns < passed_ns / 1000 * LEAST_WORK_PERMILLE)
		return 0;
	if (f->has_turns)
		return FOREIGN_ALL_PERMILLE;
	own_ns = elapsed_ns > others_ns ? elapsed_ns - others_ns : 0;
	if (own_ns < slice_ns)
		own_ns = slice_ns;
	if (own_ns >= elapsed_ns)
		return FOREIGN_ALL_PERMILLE;
	/* elapsed_ns is above 0 here. */
	return (uint32_t)(own_ns * FOREIGN_ALL_PERMILLE / elapsed_ns);
}

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value < least ? least : value;
}

/* What counts now by the window and the one before it; 0 for either: it told nothing. */
static uint32_t decide(uint32_t permille, uint32_t before, uint32_t own)
{
	if (!own || own >= AGREED_PERMILLE)
		return FOREIGN_ALL_PERMILLE;
	if (own >= permille)
		return own;
	if (permille == FOREIGN_ALL_PERMILLE && (own >= LESS_PERMILLE || before >= LESS_PERMILLE))
		return permille;
	/* Twice in a row, and then their mean. */
	if (!before || before >= permille)
		return permille;
	return at_least(at_least((own + before) / 2, permille - FOREIGN_STEP_PERMILLE),
		FOREIGN_LEAST_PERMILLE);
}

/* Whether nobody else was seen for some looks; a neighbour that has gone is not to be waited for. */
static bool is_alone(struct foreign *f, const struct foreign_look *look)
{
	bool is_seen = look->samples && look->device_percent > look->slice_percent + SLACK_PERCENT;

	f->alone = is_seen || !look->samples ? 0 : f->alone + 1;
	return f->permille < FOREIGN_ALL_PERMILLE && f->alone >= ALONE_LOOKS;
}

uint32_t foreign_note(struct foreign *f, const struct foreign_look *look)
{
	uint64_t passed_ns = look->now_ns - f->last_ns;
	uint32_t own;

	if (!f->permille)
		f->permille = FOREIGN_ALL_PERMILLE;
	if (!f->last_ns || look->now_ns < f->last_ns || passed_ns > FOREIGN_GAP_NS ||
		look->elapsed_ns < f->elapsed_ns) {
		begin_window(f, look);
		f->last_permille = 0;
		f->last_ns = look->now_ns;
		return f->permille;
	}
	f->last_ns = look->now_ns;
	if (is_alone(f, look)) {
		f->permille = FOREIGN_ALL_PERMILLE;
		f->last_permille = FOREIGN_ALL_PERMILLE;
		begin_window(f, look);
		return f->permille;
	}
	f->slice_percent_ns += look->slice_percent * passed_ns;
	f->device_percent_ns += look->device_percent * passed_ns;
	f->samples += at_least(look->samples, 1);
	f->seen += look->samples;
	f->has_turns |= look->has_turns;
	if (look->now_ns - f->begun_ns < FOREIGN_WINDOW_NS || f->samples < FOREIGN_SAMPLES)
		return f->permille;
	own = own_permille(f, look);
	f->permille = decide(f->permille, f->last_permille, own);
	f->last_permille = own;
	begin_window(f, look);
	return f->permille;
}
