/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of compute work. */
#include "tests/hunt/compute.h"
#include "tests/stress/random.h"

#define ROUND_US      100000 /* of work, the most that a step gives at once */
#define PAUSE_MOST_US 80000

/* Each program leans to some kinds of steps, has no other kinds at all, and keeps to few lengths of work. */
struct style {
	struct random random;
	uint32_t weight[COMPUTE_OPS], us[2];
	uint32_t streams, contexts;
	bool is_part_used[COMPUTE_PARTS];
};

static struct style choose_style(uint64_t seed)
{
	static const uint32_t lengths_us[] = {20, 100, 500, 1000, 2000, 5000, 20000};
	struct style s = {.random = random_stream(seed, 0)};

	for (unsigned i = 0; i < COMPUTE_OPS; i++) {
		unsigned lean = random_below(&s.random, 6);

		s.weight[i] = lean < 2 ? 0 : compute_kinds[i].weight << (lean - 2);
	}
	if (s.weight[COMPUTE_launch] == 0)
		s.weight[COMPUTE_launch] = compute_kinds[COMPUTE_launch].weight;
	for (unsigned i = 0; i < 2; i++)
		s.us[i] = lengths_us[random_below(&s.random, ARRAY_SIZE(lengths_us))];
	s.streams = 1 + random_below(&s.random, COMPUTE_STREAMS - 2);
	s.contexts = 1 + random_below(&s.random, COMPUTE_CONTEXTS);
	return s;
}

static bool is_for_other_parts(enum compute_op op)
{
	return op == COMPUTE_exit || op == COMPUTE_kill || op == COMPUTE_exec;
}

/* What begins others is for the first part alone, so that their number has an end. */
static bool is_for_first_part(enum compute_op op)
{
	return op == COMPUTE_process || op == COMPUTE_thread || op == COMPUTE_reap;
}

static enum compute_op choose_op(struct style *s, uint32_t part)
{
	uint32_t all = 0, at, op = 0;

	for (unsigned i = 0; i < COMPUTE_OPS; i++)
		all += s->weight[i];
	at = random_below(&s->random, all);
	while (at >= s->weight[op])
		at -= s->weight[op++];
	if (part ? is_for_first_part((enum compute_op)op) : is_for_other_parts((enum compute_op)op))
		return COMPUTE_launch;
	return (enum compute_op)op;
}

static uint32_t choose_stream(struct style *s)
{
	return random_below(&s->random, 4) ? random_below(&s->random, s->streams)
					   : COMPUTE_STREAMS - 1 - random_below(&s->random, 2);
}

static bool is_wait(enum compute_op op)
{
	return op == COMPUTE_pause || op == COMPUTE_stop || op == COMPUTE_poll ||
	       op == COMPUTE_poll_event || op == COMPUTE_host;
}

static struct compute_step choose_step(struct style *s, uint32_t part)
{
	static const uint32_t times[] = {1, 1, 1, 2, 4, 8, 32};
	struct compute_step step = {.op = choose_op(s, part),
		.part = part,
		.context = random_below(&s->random, s->contexts),
		.stream = choose_stream(s),
		.event = random_below(&s->random, COMPUTE_EVENTS),
		.graph = random_below(&s->random, COMPUTE_GRAPHS),
		.other_part = 1 + random_below(&s->random, COMPUTE_PARTS - 1),
		.us = s->us[random_below(&s->random, 2)],
		.times = times[random_below(&s->random, ARRAY_SIZE(times))]};

	if (is_wait(step.op)) {
		step.us *= 1 + random_below(&s->random, 8);
		if (step.us > PAUSE_MOST_US)
			step.us = PAUSE_MOST_US;
	} else if (step.us * step.times > ROUND_US) {
		step.times = ROUND_US / step.us;
	}
	/* Short work comes in numbers, or a second of it takes too long to try. */
	if ((step.op == COMPUTE_launch || step.op == COMPUTE_other) && step.us * step.times < 160)
		step.times = 160 / step.us;
	if (step.op == COMPUTE_process || step.op == COMPUTE_thread)
		s->is_part_used[step.other_part] = true;
	return step;
}

static void add_part(
	struct style *s, uint32_t part, uint32_t least, uint32_t most, struct compute_program *p)
{
	uint32_t count = least + random_below(&s->random, most - least + 1);

	while (count-- && p->count < COMPUTE_STEPS)
		p->steps[p->count++] = choose_step(s, part);
}

void compute_make(uint64_t seed, struct compute_program *ret_program)
{
	static const uint32_t caps[] = {10, 30, 50};
	struct style s = choose_style(seed);

	*ret_program = (struct compute_program){
		.cap_percent = caps[random_below(&s.random, ARRAY_SIZE(caps))]};
	if (random_below(&s.random, 3) == 0)
		ret_program->peer_percent = ret_program->cap_percent == 50 ? 40 : 60;
	add_part(&s, 0, 2, 16, ret_program);
	for (uint32_t part = 1; part < COMPUTE_PARTS; part++)
		if (s.is_part_used[part])
			add_part(&s, part, 1, 8, ret_program);
}
