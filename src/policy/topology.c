/* SPDX-License-Identifier: Apache-2.0 */
/* How near the devices of a node are to each other, and which of them belong together. */
#include "policy/topology.h"

#include <errno.h>

/* The scheduler's and the device plugin's alone: no thread of a tenant comes here. */
#pragma GCC diagnostic ignored "-Wframe-larger-than="

#define LINK_SCORE 100u
#define WAY_SCORE  10u

/* The links by which two devices reach each other; switches pass on what both have. */
static unsigned links_between(const struct topology *t, unsigned from, unsigned to)
{
	unsigned own = t->switch_links[from], other = t->switch_links[to];

	if (t->pair[from][to].links)
		return t->pair[from][to].links;
	return own < other ? own : other;
}

bool topology_is_lopsided(const struct topology *topology, unsigned a, unsigned b)
{
	return !topology->pair[a][b].links != !topology->pair[b][a].links ||
	       !topology->pair[a][b].way != !topology->pair[b][a].way;
}

unsigned topology_score(const struct topology *topology, unsigned from, unsigned to)
{
	if (from == to || topology_is_lopsided(topology, from, to))
		return 0;
	return WAY_SCORE * topology->pair[from][to].way +
	       LINK_SCORE * links_between(topology, from, to);
}

/* A set is the places in the wish, a bit for each. */
_Static_assert(TOPOLOGY_MAX <= 64, "a set is one word");

#define STEPS_MAX (1u << (TOPOLOGY_EXACT + 1)) /* as many as all sets of so many devices take */

struct search {
	unsigned count, must, wanted;
	unsigned score[TOPOLOGY_MAX][TOPOLOGY_MAX]; /* of both ways, by places */
	unsigned most;				    /* of these */
	unsigned steps_left;
	uint64_t best;
	unsigned best_sum;
	bool is_first; /* of those that are as good as the best, this is the first */
};

static void set_score(struct search *s, unsigned i, unsigned j, unsigned score)
{
	s->score[i][j] = s->score[j][i] = score;
	if (score > s->most)
		s->most = score;
}

static bool has(uint64_t set, unsigned place)
{
	return set >> place & 1;
}

static uint64_t first_places(unsigned count)
{
	return count < 64 ? (UINT64_C(1) << count) - 1 : ~UINT64_C(0);
}

/* What the device at a place adds to the set. */
static unsigned gain(const struct search *s, uint64_t set, unsigned place)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < s->count; i++)
		if (has(set, i))
			sum += s->score[i][place];
	return sum;
}

/* One alone: the others shall lose least by it. */
static void choose_one(struct search *s)
{
	unsigned least = UINT32_MAX;

	for (unsigned i = 0; i < s->count; i++) {
		unsigned sum = gain(s, first_places(s->count), i);

		if (sum >= least)
			continue;
		least = sum;
		s->best = UINT64_C(1) << i;
	}
}

/* What each device would add, once this one is in the set. */
static void add_gains(const struct search *s, unsigned place, unsigned from, const unsigned *gains,
	unsigned *ret_gains)
{
	for (unsigned i = from; i < s->count; i++)
		ret_gains[i] = gains[i] + s->score[place][i];
}

/* The device that is nearest to those in the set. */
static unsigned nearest(const struct search *s, uint64_t set, const unsigned *gains)
{
	unsigned best = s->count;

	for (unsigned i = 0; i < s->count; i++)
		if (!has(set, i) && (best == s->count || gains[i] > gains[best]))
			best = i;
	return best;
}

/* A set to begin with: what is nearest to those that are in, until there are enough. */
static void grow(struct search *s, uint64_t begin)
{
	unsigned gains[TOPOLOGY_MAX] = {0}, sum = 0;
	uint64_t set = 0;

	for (unsigned count = 0; count < s->wanted; count++) {
		uint64_t left = begin & ~set;
		unsigned place = left ? (unsigned)__builtin_ctzll(left) : nearest(s, set, gains);

		sum += gains[place];
		set |= UINT64_C(1) << place;
		add_gains(s, place, 0, gains, gains);
	}
	if (s->best && sum <= s->best_sum)
		return;
	s->best = set;
	s->best_sum = sum;
}

static void note(struct search *s, uint64_t set, unsigned sum)
{
	if (sum < s->best_sum || (sum == s->best_sum && s->is_first))
		return;
	s->best = set;
	s->best_sum = sum;
	s->is_first = true;
}

/* Whether so many more, of the places from this one on, can make the set better than the best. */
static bool has_hope(
	const struct search *s, const unsigned *gains, unsigned sum, unsigned place, unsigned more)
{
	unsigned most_gain = 0;

	for (unsigned i = place; i < s->count; i++)
		most_gain = gains[i] > most_gain ? gains[i] : most_gain;
	sum += more * most_gain + more * (more - 1) / 2 * s->most;
	return sum > s->best_sum || (sum == s->best_sum && !s->is_first);
}

/* All sets that begin with this one and have so many more, in the order of the wish. gains: of the places from this one on. */
static void try_from(struct search *s, uint64_t set, unsigned sum, const unsigned *gains,
	unsigned place, unsigned more)
{
	unsigned next[TOPOLOGY_MAX];

	if (!more) {
		note(s, set, sum);
		return;
	}
	for (; s->steps_left && s->count - place >= more && has_hope(s, gains, sum, place, more);
		place++) {
		s->steps_left--;
		add_gains(s, place, place + 1, gains, next);
		try_from(s, set | UINT64_C(1) << place, sum + gains[place], next, place + 1,
			more - 1);
		if (place < s->must)
			return;
	}
}

static void choose_many(struct search *s)
{
	const unsigned gains[TOPOLOGY_MAX] = {0};
	uint64_t must = first_places(s->must);

	for (unsigned i = 0; i < s->count; i++)
		grow(s, must ? must : UINT64_C(1) << i);
	try_from(s, 0, 0, gains, 0, s->wanted);
}

static bool is_possible(const struct topology_wish *wish)
{
	return wish->wanted && wish->wanted <= wish->count && wish->must <= wish->wanted &&
	       wish->count <= TOPOLOGY_MAX;
}

/* The scores are set. */
static void choose(struct search *s, const struct topology_wish *wish, unsigned *ret_devices)
{
	s->count = wish->count;
	s->must = wish->must;
	s->wanted = wish->wanted;
	s->steps_left = STEPS_MAX;
	if (wish->wanted > 1 || wish->must)
		choose_many(s);
	else
		choose_one(s);
	for (unsigned i = 0; i < wish->count; i++)
		if (has(s->best, i))
			*ret_devices++ = wish->free[i];
}

int topology_choose(
	const struct topology *topology, const struct topology_wish *wish, unsigned *ret_devices)
{
	const unsigned *free = wish->free;
	struct search search = {.best = 0};

	if (!is_possible(wish))
		return -EINVAL;
	for (unsigned i = 0; i < wish->count; i++)
		for (unsigned j = 0; j <= i; j++)
			set_score(&search, i, j,
				topology_score(topology, free[i], free[j]) +
					topology_score(topology, free[j], free[i]));
	choose(&search, wish, ret_devices);
	return 0;
}

int topology_choose_scored(const uint32_t *scores, unsigned device_count,
	const struct topology_wish *wish, unsigned *ret_devices)
{
	const unsigned *free = wish->free;
	struct search search = {.best = 0};

	if (!is_possible(wish))
		return -EINVAL;
	for (unsigned i = 0; scores && i < wish->count; i++)
		for (unsigned j = 0; j < i; j++)
			set_score(&search, i, j,
				scores[free[i] * device_count + free[j]] +
					scores[free[j] * device_count + free[i]]);
	choose(&search, wish, ret_devices);
	return 0;
}
