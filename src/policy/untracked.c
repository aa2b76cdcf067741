/* SPDX-License-Identifier: Apache-2.0 */
/* Processes on the device that take no turns. */
#include "policy/untracked.h"

/* Within these the figures agree: what the driver rounds, which is down, and a window's noise. */
#define AGREED_PERMILLE	     950u
#define AGREED_MORE_PERMILLE 1100u
/* Only what is clearly less is believed to be an untracked process's, and what is clearly more, where others are seen, the slice's own. */
#define LESS_PERMILLE 850u
#define MORE_PERMILLE 1250u
/*
 * A sample is of so many looks at whom the device works for (H200, driver 580), which fall anywhere in the slice's rounds: of 90, the
 * looks of a window, a slice that has 30 % is seen by 18 or fewer in one window of 20. So windows that say the same are added
 * up, and the sum is believed when it is so many times its own error from what was charged: by chance once in a day.
 */
#define LOOKS  6u
#define ERRORS 4u
/* So many at most; then all of them count half. */
#define WINDOWS_MAX 16u
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

static uint64_t permille_of(uint64_t part, uint64_t whole)
{
	return whole ? at_most(part * UNTRACKED_ALL_PERMILLE / whole, UNTRACKED_ALL_PERMILLE) : 0;
}

/* Of a look that falls so often; times a million. */
static uint64_t variance(uint64_t permille)
{
	return permille * (UNTRACKED_ALL_PERMILLE - permille);
}

static void halve(struct untracked_evidence *e)
{
	e->passed_ns /= 2;
	e->elapsed_ns /= 2;
	e->own_ns /= 2;
	e->looks /= 2;
	e->windows /= 2;
}

/*
 * Adds a window to those before it that say the same, less or more. One that agrees with what was charged ends what says less, and
 * two in a row what says more.
 */
static void add_window(struct untracked *u, const struct untracked_reading *reading, uint32_t own)
{
	struct untracked_evidence *e = &u->evidence;
	uint64_t elapsed_ns = reading->elapsed_ns - u->elapsed_ns;
	bool is_less = own < AGREED_PERMILLE;
	bool is_more = own > AGREED_MORE_PERMILLE;
	bool agrees = !is_less && !is_more;

	if (!own || (agrees && (e->is_less || e->has_agreed)) || (!agrees && is_less != e->is_less))
		*e = (struct untracked_evidence){.is_less = is_less};
	if (!own || (agrees && !e->windows))
		return;
	if (e->windows == WINDOWS_MAX)
		halve(e);
	e->has_agreed = agrees;
	e->passed_ns += reading->now_ns - u->begun_ns;
	e->elapsed_ns += elapsed_ns;
	e->own_ns += elapsed_ns / UNTRACKED_ALL_PERMILLE * own;
	e->looks += u->samples * LOOKS;
	e->windows++;
}

/* What the windows say together; all, where that may be an accident. */
static uint32_t believed_permille(const struct untracked_evidence *e)
{
	uint64_t charged = permille_of(e->elapsed_ns, e->passed_ns);
	uint64_t own = permille_of(e->own_ns, e->passed_ns);
	uint64_t off = own > charged ? own - charged : charged - own;
	uint64_t most = variance(own) > variance(charged) ? variance(own) : variance(charged);

	if (e->windows < 2 || off * off * e->looks < ERRORS * ERRORS * most)
		return UNTRACKED_ALL_PERMILLE;
	/* elapsed_ns is above 0 here. */
	return (uint32_t)(e->own_ns * UNTRACKED_ALL_PERMILLE / e->elapsed_ns);
}

/* The part that counts now, by the window, which says own, and those before it; 0: it told nothing. */
static uint32_t decide(const struct untracked *u, uint32_t own)
{
	uint32_t believed = believed_permille(&u->evidence), last = u->last_permille;
	uint32_t permille = (uint32_t)at_most(u->permille, UNTRACKED_ALL_PERMILLE);

	/* What was taken for interrupted was the slice's own; of late even more of it, as two windows say. */
	if (own > AGREED_MORE_PERMILLE && believed > UNTRACKED_ALL_PERMILLE) {
		believed = at_least(believed, (uint32_t)at_most(own, last));
		return believed > MORE_PERMILLE ? believed : UNTRACKED_ALL_PERMILLE;
	}
	if (!own || own >= AGREED_PERMILLE)
		return UNTRACKED_ALL_PERMILLE;
	if (own >= permille)
		return own;
	if (believed >= LESS_PERMILLE)
		return permille;
	believed = (uint32_t)at_most(believed, at_least(own, last));
	return at_least(
		at_least(believed, permille - UNTRACKED_STEP_PERMILLE), UNTRACKED_LEAST_PERMILLE);
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
		u->evidence = (struct untracked_evidence){.windows = 0};
		u->last_permille = 0;
		u->last_ns = reading->now_ns;
		return u->permille;
	}
	u->last_ns = reading->now_ns;
	if (is_alone(u, reading)) {
		u->permille = UNTRACKED_ALL_PERMILLE;
		u->last_permille = UNTRACKED_ALL_PERMILLE;
		u->evidence = (struct untracked_evidence){.windows = 0};
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
	add_window(u, reading, own);
	u->permille = decide(u, own);
	u->last_permille = own;
	begin_window(u, reading);
	return u->permille;
}
