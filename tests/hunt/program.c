/* SPDX-License-Identifier: Apache-2.0 */
/* Programs: made at random, printed, read again. */
#include "tests/hunt/program.h"

#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "tests/stress/random.h"

#define FAMILIES_MOST 4
#define DUEL_MOMENTS  20 /* of most calls */

static const char *const families[] = {
#define FAMILY(name) #name,
#include "tests/tenant/load/family.def"
};

static const char *const modes[PROGRAM_MODES] = {
	[PROGRAM_HONEST] = "honest", [PROGRAM_HOSTILE] = "hostile", [PROGRAM_FAILING] = "failing"};
static const char *const verbs[PROGRAM_VERBS] = {[PROGRAM_TAKE] = "take",
	[PROGRAM_GIVE] = "give",
	[PROGRAM_GIVE_TWICE] = "twice",
	[PROGRAM_USE] = "use"};

const char *program_mode_text(enum program_mode mode)
{
	return modes[mode];
}

/* The place of a word in a list, or the list's length. */
static unsigned find(const char *const list[], unsigned count, const char *word)
{
	unsigned i = 0;

	while (i < count && strcmp(list[i], word) != 0)
		i++;
	return i;
}

/* A few families that meet often find more than all at once. */
static unsigned choose_families(struct random *random, unsigned ret_families[])
{
	unsigned count = 1 + random_below(random, FAMILIES_MOST);

	for (unsigned i = 0; i < count; i++)
		ret_families[i] = random_below(random, ARRAY_SIZE(families));
	return count;
}

/* Near the beginning of a call, or somewhere in it. */
static unsigned choose_moment(struct random *random)
{
	return 1 + random_below(random, random_below(random, 2) ? 8 : 48);
}

static void choose_accidents(
	const struct program *p, struct random *random, unsigned rarity, struct program_step *step)
{
	if (p->threads > 1 && random_below(random, rarity) == 0)
		step->pause = choose_moment(random);
	if (p->mode != PROGRAM_FAILING || random_below(random, 3))
		return;
	if (random_below(random, 2))
		step->refuse = 1 + random_below(random, 12);
	else
		step->memory = 1 + random_below(random, 6);
}

static enum program_verb choose_verb(const struct program *p, struct random *random, unsigned taken)
{
	if (taken == 0 || random_below(random, 2))
		return PROGRAM_TAKE;
	if (random_below(random, 3) == 0)
		return PROGRAM_USE;
	return p->mode == PROGRAM_HOSTILE && random_below(random, 3) == 0 ? PROGRAM_GIVE_TWICE
									  : PROGRAM_GIVE;
}

/* What was taken: rather something of lately. */
struct taken {
	unsigned number[PROGRAM_STEPS], count;
};

static unsigned choose_object(struct random *random, const struct taken *taken)
{
	unsigned back = random_below(random, taken->count < 6 ? taken->count : 6);

	return taken->number[taken->count - 1 - back];
}

static struct program_step *add(struct program *p, struct random *random)
{
	struct program_step *step = &p->step[p->count];

	step->number = p->count++;
	step->thread = random_below(random, p->threads);
	step->seed = random_below(random, 1000000);
	return step;
}

/* One thread does something with what another one gives back meanwhile. */
static void add_duel(struct program *p, struct random *random, const struct taken *taken)
{
	struct program_step *first = add(p, random), *second = add(p, random);

	first->object = second->object = choose_object(random, taken);
	first->verb = random_below(random, 2) ? PROGRAM_USE : PROGRAM_GIVE_TWICE;
	second->verb = random_below(random, 3) ? PROGRAM_GIVE_TWICE : PROGRAM_USE;
	first->pause = 1 + random_below(random, DUEL_MOMENTS);
	second->thread = (first->thread + 1 + random_below(random, p->threads - 1)) % p->threads;
}

void program_make(struct program *ret_program, enum program_mode mode, uint64_t seed)
{
	static const uint64_t quotas[] = {700, 1024, 2048, 8192};
	struct random random = random_stream(seed, mode);
	unsigned chosen[FAMILIES_MOST], kinds, rarity, most;
	struct taken taken = {.count = 0};
	struct program *p = ret_program;

	*p = (struct program){.mode = mode, .quota_mib = quotas[random_below(&random, 4)]};
	p->threads = 1 + random_below(&random, PROGRAM_THREADS);
	most = 16 + random_below(&random, PROGRAM_STEPS - 16);
	kinds = choose_families(&random, chosen);
	rarity = 1u << random_below(&random, 5);
	while (p->count < most) {
		struct program_step *step;

		if (mode == PROGRAM_HOSTILE && p->threads > 1 && taken.count > 0 &&
			random_below(&random, 3) == 0) {
			add_duel(p, &random, &taken);
			continue;
		}
		step = add(p, &random);
		step->verb = choose_verb(p, &random, taken.count);
		choose_accidents(p, &random, rarity, step);
		if (step->verb == PROGRAM_TAKE) {
			step->family = chosen[random_below(&random, kinds)];
			taken.number[taken.count++] = step->number;
		} else {
			step->object = choose_object(&random, &taken);
		}
	}
}

void program_print(const struct program *program, char text[PROGRAM_TEXT])
{
	size_t used = (size_t)snprintf(text, PROGRAM_TEXT, "hunt %s quota %llu threads %u\n",
		modes[program->mode], (unsigned long long)program->quota_mib, program->threads);

	for (unsigned i = 0; i < program->count; i++) {
		const struct program_step *s = &program->step[i];
		const struct {
			const char *name;
			unsigned at;
		} accidents[] = {{"pause", s->pause}, {"refuse", s->refuse}, {"memory", s->memory}};

		used += (size_t)snprintf(text + used, PROGRAM_TEXT - used, "%u %u %s ", s->number,
			s->thread, verbs[s->verb]);
		if (s->verb == PROGRAM_TAKE)
			used += (size_t)snprintf(
				text + used, PROGRAM_TEXT - used, "%s", families[s->family]);
		else
			used += (size_t)snprintf(text + used, PROGRAM_TEXT - used, "%u", s->object);
		used += (size_t)snprintf(
			text + used, PROGRAM_TEXT - used, " %llu", (unsigned long long)s->seed);
		for (unsigned k = 0; k < ARRAY_SIZE(accidents); k++)
			if (accidents[k].at)
				used += (size_t)snprintf(text + used, PROGRAM_TEXT - used, " %s %u",
					accidents[k].name, accidents[k].at);
		used += (size_t)snprintf(text + used, PROGRAM_TEXT - used, "\n");
	}
}

static bool parse_accidents(const char *text, struct program_step *step)
{
	char name[16];
	unsigned at;
	int length;

	while (sscanf(text, "%15s %u%n", name, &at, &length) == 2) {
		if (strcmp(name, "pause") == 0)
			step->pause = at;
		else if (strcmp(name, "refuse") == 0)
			step->refuse = at;
		else if (strcmp(name, "memory") == 0)
			step->memory = at;
		else
			return false;
		text += length;
	}
	return true;
}

static bool parse_step(const char *line, struct program_step *step)
{
	char verb[16], what[40];
	unsigned long long seed;
	int length;

	if (sscanf(line, "%u %u %15s %39s %llu%n", &step->number, &step->thread, verb, what, &seed,
		    &length) != 5)
		return false;
	step->seed = seed;
	step->verb = (enum program_verb)find(verbs, PROGRAM_VERBS, verb);
	if (step->verb == PROGRAM_TAKE)
		step->family = find(families, ARRAY_SIZE(families), what);
	else if (sscanf(what, "%u", &step->object) != 1)
		return false;
	return step->verb < PROGRAM_VERBS && step->family < ARRAY_SIZE(families) &&
	       step->number < PROGRAM_STEPS && step->object < PROGRAM_STEPS &&
	       step->thread < PROGRAM_THREADS && parse_accidents(line + length, step);
}

/* Lines that begin with '#' say what a kept program is about. */
bool program_parse(const char *text, struct program *ret_program)
{
	char copy[PROGRAM_TEXT], mode[16], *rest = NULL;
	unsigned long long quota;
	bool has_head = false;

	*ret_program = (struct program){.count = 0};
	if ((size_t)snprintf(copy, sizeof(copy), "%s", text) >= sizeof(copy))
		return false;
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (*line == '#')
			continue;
		if (has_head) {
			if (ret_program->count == PROGRAM_STEPS ||
				!parse_step(line, &ret_program->step[ret_program->count++]))
				return false;
			continue;
		}
		if (sscanf(line, "hunt %15s quota %llu threads %u", mode, &quota,
			    &ret_program->threads) != 3)
			return false;
		has_head = true;
		ret_program->mode = (enum program_mode)find(modes, PROGRAM_MODES, mode);
		ret_program->quota_mib = quota;
	}
	return has_head && ret_program->mode < PROGRAM_MODES && ret_program->threads > 0 &&
	       ret_program->threads <= PROGRAM_THREADS;
}
