/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on the device that take no turns. */
#include "policy/untracked.h"

/* From here on the figures agree: what the driver rounds, and a window's noise. */
#define AGREED_PERMILLE 950u
/* Only what is clearly less is believed to be an untracked process's. */
#define LESS_PERMILLE 850u
/* And more is believed to be charged to nobody, where others are seen: twice the error of a window of sixths. */
#define MORE_PERMILLE 1250u
/* Less of others of late is none. */
#define OTHERS_PERCENT 8u
/* A slice that hardly works is no measure: the driver's percents are whole. */
#define LEAST_WORK_PERMILLE 30u
/*
 * So many readings in a row that show nobody else are no accident of the samples, of which one in eight gives all to
 * one of two; and between two figures so much is rounding.
 */
#define ALONE_LOOKS   5u
#define SLACK_PERCENT 3u

static void begin_window(struct untracked *u, const struct untracked_reading *reading)
{
	u->begun_ns = reading->now_ns;
	u->elapsed_ns = reading->elapsed_ns;
	u->slice_percent_ns = 0;
	u->device_percent_ns = 0;
	u->samples = 0;
	u->seen = 0;
	u->has_turns = false;
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
	return value > most ? most : value;
}

uint32_t untracked_contended_percent(const struct untracked *u)
{
	if (u->others_recent < OTHERS_PERCENT)
		return 0;
	if (u->slice_recent + u->others_recent >= 100)
		return 100;
	return u->others_recent * 100 / (100 - u->slice_recent);
}

/* The slice's own part of the window's elapsed time; 0: that cannot be told. */
static uint32_t own_permille(const struct untracked *u, const struct untracked_reading *reading)
{
	uint64_t passed_ns = reading->now_ns - u->begun_ns;
	uint64_t elapsed_ns = reading->elapsed_ns - u->elapsed_ns;
	uint64_t slice_ns = u->slice_percent_ns / 100, device_ns = u->device_percent_ns / 100;
	uint64_t others_ns = device_ns > slice_ns ? device_ns - slice_ns : 0, own_ns;

	if (!u->seen || elapsed_ns < passed_ns / 1000 * LEAST_WORK_PERMILLE)
		return 0;
	if (u->has_turns)
		return UNTRACKED_ALL_PERMILLE;
	own_ns = elapsed_ns > others_ns ? elapsed_ns - others_ns : 0;
	if (own_ns < slice_ns)
		own_ns = slice_ns;
	/* elapsed_ns is above 0 here. */
	return (uint32_t)at_most(own_ns * UNTRACKED_ALL_PERMILLE / elapsed_ns,
		untracked_contended_percent(u) ? UNTRACKED_MOST_PERMILLE : UNTRACKED_ALL_PERMILLE);
}

static uint32_t at_least(uint32_t value, uint32_t least)
{
	return value < least ? least : value;
}

/* The part that counts now, by the window and the one before it; 0 for either: it told nothing. */
static uint32_t decide(uint32_t permille, uint32_t before, uint32_t own)
{
	/* Twice in a row, too: what was taken for interrupted was the slice's own. */
	if (own > MORE_PERMILLE && before > MORE_PERMILLE)
		return own < before ? own : before;
	if (!own || own >= AGREED_PERMILLE)
		return UNTRACKED_ALL_PERMILLE;
	if (own >= permille)
		return own;
	if (permille == UNTRACKED_ALL_PERMILLE && (own >= LESS_PERMILLE || before >= LESS_PERMILLE))
		return permille;
	/* Twice in a row, and then their mean. */
	if (!before || before >= permille)
		return permille;
	return at_least(at_least((own + before) / 2, permille - UNTRACKED_STEP_PERMILLE),
		UNTRACKED_LEAST_PERMILLE);
}

/* Whether nobody else was seen for some readings; a process that has gone is not to be waited for. */
static bool is_alone(struct untracked *u, const struct untracked_reading *reading)
{
	bool is_seen = reading->samples &&
		       reading->device_percent > reading->slice_percent + SLACK_PERCENT;

	u->alone = is_seen || !reading->samples ? 0 : u->alone + 1;
	return u->permille < UNTRACKED_ALL_PERMILLE && u->alone >= ALONE_LOOKS;
}

uint32_t untracked_note(struct untracked *u, const struct untracked_reading *reading)
{
	uint64_t passed_ns = reading->now_ns - u->last_ns;
	uint32_t own;

	if (!u->permille)
		u->permille = UNTRACKED_ALL_PERMILLE;
	u->others_recent = (u->others_recent + 3 * reading->others_percent) / 4;
	u->slice_recent = (u->slice_recent + 3 * reading->slice_percent) / 4;
	if (!u->last_ns || reading->now_ns < u->last_ns || passed_ns > UNTRACKED_GAP_NS ||
		reading->elapsed_ns < u->elapsed_ns) {
		begin_window(u, reading);
		u->last_permille = 0;
		u->last_ns = reading->now_ns;
		return u->permille;
	}
	u->last_ns = reading->now_ns;
	if (is_alone(u, reading)) {
		u->permille = UNTRACKED_ALL_PERMILLE;
		u->last_permille = UNTRACKED_ALL_PERMILLE;
		begin_window(u, reading);
		return u->permille;
	}
	u->slice_percent_ns += reading->slice_percent * passed_ns;
	u->device_percent_ns += reading->device_percent * passed_ns;
	u->samples += at_least(reading->samples, 1);
	u->seen += reading->samples;
	u->has_turns |= reading->has_turns;
	if (reading->now_ns - u->begun_ns < UNTRACKED_WINDOW_NS || u->samples < UNTRACKED_SAMPLES)
		return u->permille;
	own = own_permille(u, reading);
	u->permille = decide(u->permille, u->last_permille, own);
	u->last_permille = own;
	begin_window(u, reading);
	return u->permille;
}
