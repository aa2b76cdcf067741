/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges a program of compute work by what the simulated device served its slice, and what the slice was charged.
 *
 * What is under way at the ends of the window is allowed for. It is the same in a window that is longer; so what a short
 * window shows has to be there in a long one, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/served.h"
#include "tests/hunt/compute.h"

#define WINDOW_NS      (3000 * MS)
#define LONG_WINDOW_NS (15000 * MS)

/* What a slice has saved up, what its processes took in advance, and what the host is ahead. */
#define SAVED_NS      (40 * MS)

#define OVER_POINTS   1 /* of the window */
#define UNDER_POINTS  2
#define KNOWN_POINTS  8
#define UNEVEN_POINTS 15
#define UNEVEN_NS     (2 * MS)
#define TURNS_PERCENT 98       /* of its cores, beside another slice */
#define LONG_WORK_NS  (5 * MS) /* about half a turn */
#define BUSY_PERCENT  97       /* of the time, without the library: it always has work */

/* The longest work that goes in one piece. */
static uint64_t longest_ns(const struct compute_program *p)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < p->count; i++) {
		const struct compute_step *step = &p->steps[i];
		uint64_t ns =
			step->us * UINT64_C(1000) * (step->op == COMPUTE_graph ? step->times : 1);

		if (strchr(compute_kinds[step->op].arguments, 'u') && ns > most)
			most = ns;
	}
	return most;
}

static bool is_harmless(const struct compute_program *p)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (!compute_kinds[p->steps[i].op].is_harmless)
			return false;
	return true;
}

/* Whether a function, or a graph, takes longer at one time than at another. */
static bool is_uneven(const struct compute_program *p)
{
	uint32_t us[COMPUTE_OPS][COMPUTE_GRAPHS] = {{0}};

	for (uint32_t i = 0; i < p->count; i++) {
		const struct compute_step *step = &p->steps[i];
		bool is_graph = step->op == COMPUTE_graph;
		uint32_t *of = &us[step->op][is_graph ? step->graph : 0];
		uint32_t took_us = step->us * (is_graph ? step->times : 1);

		if (step->op == COMPUTE_update)
			return true;
		if (step->op != COMPUTE_launch && step->op != COMPUTE_other && !is_graph)
			continue;
		if (*of && *of != took_us)
			return true;
		*of = took_us;
	}
	return false;
}

static bool always_has_work(const struct compute_program *p)
{
	struct compute_figures f = compute_run(p, false, WINDOW_NS / 3);

	return f.is_told && f.served_ns * 100 > f.window_ns * BUSY_PERCENT;
}

/*
 * Where a function takes 20 ms at one time and half a ms at the next, its turns end too early and too late: the peer has 34 of
 * 40 %. A longer hunt has found no more.
 */
static uint32_t lost_points(const struct compute_program *p)
{
	bool is_known = !is_harmless(p) || (longest_ns(p) >= LONG_WORK_NS && is_uneven(p));

	return is_known && !getenv("HUNT_KNOWN") ? KNOWN_POINTS : UNDER_POINTS;
}

/* Its own: while it owes what ran on it goes on by single pieces, each taken for a long one, and has 17 to 28 of 30 %. */
static uint32_t own_points(const struct compute_program *p)
{
	bool is_known = is_uneven(p) && longest_ns(p) >= UNEVEN_NS;

	return is_known && !getenv("HUNT_KNOWN") ? UNEVEN_POINTS : lost_points(p);
}

/* Of a slice that is granted so much, the least, where it may lose so many points beside another one. */
static uint64_t percent_after(uint32_t percent, uint32_t lost, const struct compute_program *p)
{
	if (!p->peer_percent)
		lost = UNDER_POINTS;
	if (p->peer_percent)
		percent = percent * TURNS_PERCENT / 100;
	return percent > lost ? percent - lost : 0;
}

static const char *find_fault(const struct compute_program *p, const struct compute_figures *f)
{
	uint64_t point_ns = f->window_ns / 100, allowed_ns = SAVED_NS + 2 * longest_ns(p);
	uint64_t over_ns = OVER_POINTS * point_ns + allowed_ns, least_ns;

	if (!f->is_told)
		return NULL;
	if (!f->is_alive)
		return "the program ended";
	if (f->served_ns > p->cap_percent * point_ns + over_ns)
		return "served above the cap";
	if (f->served_ns > f->charged_ns + over_ns)
		return "served more than charged";
	least_ns = percent_after(p->peer_percent, lost_points(p), p) * point_ns;
	if (p->peer_percent && f->peer_served_ns + allowed_ns < least_ns)
		return "the peer lost too much";
	if (!is_harmless(p))
		return NULL;
	if (!p->peer_percent && f->charged_ns > f->served_ns + over_ns)
		return "charged more than served";
	least_ns = percent_after(p->cap_percent, own_points(p), p) * point_ns;
	if (f->served_ns + allowed_ns < least_ns && always_has_work(p))
		return "served below the limit";
	return NULL;
}

static void say(const char *what, const struct compute_program *p, const struct compute_figures *f)
{
	printf("%s: cap %u %%, served %.1f, charged %.1f, peer %.1f of %u %%, %.1f s\n", what,
		p->cap_percent, (double)f->served_ns * 100 / (double)f->window_ns,
		(double)f->charged_ns * 100 / (double)f->window_ns,
		(double)f->peer_served_ns * 100 / (double)f->window_ns, p->peer_percent,
		(double)f->window_ns / 1e9);
	fflush(stdout);
}

const char *compute_judge(const struct compute_program *p, bool is_loud)
{
	struct compute_figures f = compute_run(p, true, WINDOW_NS);
	const char *fault = find_fault(p, &f);

	if (is_loud)
		say(fault ? fault : "right", p, &f);
	if (!fault)
		return NULL;
	f = compute_run(p, true, LONG_WINDOW_NS);
	fault = find_fault(p, &f);
	if (is_loud)
		say(fault ? fault : "right after all", p, &f);
	return fault;
}
