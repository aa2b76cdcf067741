/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of time.
 *
 * Growth is rounded down to a step, so booking it at every look would lose up to a step each
 * time. It is booked only once it is BOOK_STEPS, and until then the word keeps its older moment.
 *
 * A word is of one of two scales, so that a debt of hours has room in it, and is changed at once as any other: balances below
 * DEEP_BASE are debts in large steps. Between the two there is some room, or a debt there would be rounded again and again.
 */
#include "policy/budget.h"

#include <stdbool.h>

#define BOOK_STEPS  1024 /* of fine ones 65 us: rounding loses less than a thousandth */
#define BACKWARD_NS (UINT64_C(1) << 30) /* moments that two processors read the other way round */

/* Steps and moments are 1 << shift ns. */
struct scale {
	unsigned step_shift, moment_shift;
};
static const struct scale fine = {6, 10}, deep = {18, 18};

/* The balance in the word of a deep debt of no step. */
#define DEEP_BASE (-(INT64_C(1) << 30))
#define DEEP_MOST (INT64_C(1) << 30)

/* From the first one on a debt is deep, until it is no more than the second one. At a rate of 1 the first is paid before moments repeat. */
#define DEEP_NS	   (INT64_C(1) << 31)
#define SHALLOW_NS (INT64_C(1) << 30)

/* So long ago a moment may be, in a fine word. */
#define AGE_MOST_NS (UINT64_C(1) << 41)

struct state {
	const struct scale *scale;
	int64_t balance; /* in steps */
	uint32_t moment;
};

static struct state unpack(uint64_t word)
{
	int64_t balance = (int32_t)(uint32_t)(word >> 32);

	if (balance < DEEP_BASE)
		return (struct state){&deep, balance - DEEP_BASE, (uint32_t)word};
	return (struct state){&fine, balance, (uint32_t)word};
}

/* Now; the word's own moment where that is later, so that what has grown until then does not grow again. */
static uint32_t moment_of(const struct state *s, bool is_none, uint64_t now_ns)
{
	uint32_t moment = (uint32_t)(now_ns >> s->scale->moment_shift);
	uint32_t backward = (uint32_t)(BACKWARD_NS >> s->scale->moment_shift);

	if (moment == 0)
		moment = 1; /* 0 with a balance of 0 is BUDGET_NONE */
	if (!is_none && moment - s->moment > UINT32_MAX - backward)
		return s->moment;
	return moment;
}

/* To the nearest step: many come out right in all. */
static int64_t steps_of(const struct scale *scale, int64_t ns)
{
	int64_t step = INT64_C(1) << scale->step_shift;

	return (ns + (ns < 0 ? -step / 2 : step / 2)) / step;
}

/* The same balance and moment in another scale; nothing grows twice by that. */
static struct state rescale(const struct state *s, const struct scale *to, uint64_t now_ns)
{
	uint32_t moment = (uint32_t)(now_ns >> s->scale->moment_shift) - s->moment;
	uint64_t age_ns = 0, unit = UINT64_C(1) << to->moment_shift;

	/* It may be later than now, by a moment that another processor read. */
	if (moment <= UINT32_MAX - (uint32_t)(BACKWARD_NS >> s->scale->moment_shift))
		age_ns = (uint64_t)moment << s->scale->moment_shift;
	if (age_ns > AGE_MOST_NS)
		age_ns = AGE_MOST_NS;
	if (age_ns > now_ns)
		age_ns = now_ns;
	moment = (uint32_t)((now_ns - age_ns + unit - 1) >> to->moment_shift);
	return (struct state){.scale = to,
		.balance = steps_of(to, s->balance * (INT64_C(1) << s->scale->step_shift)),
		.moment = moment ? moment : 1};
}

static uint64_t pack(const struct state *state, uint64_t now_ns)
{
	struct state s = *state;
	int64_t balance_ns = s.balance * (INT64_C(1) << s.scale->step_shift);

	if (s.scale == &fine && balance_ns < -DEEP_NS)
		s = rescale(&s, &deep, now_ns);
	else if (s.scale == &deep && balance_ns >= -SHALLOW_NS)
		s = rescale(&s, &fine, now_ns);
	if (s.balance > INT32_MAX)
		s.balance = INT32_MAX;
	if (s.scale == &deep)
		s.balance = DEEP_BASE + (s.balance < -DEEP_MOST ? -DEEP_MOST : s.balance);
	return (uint64_t)(uint32_t)(int32_t)s.balance << 32 | s.moment;
}

static int64_t burst_steps(const struct scale *scale, const struct budget_rate *rate)
{
	uint64_t burst_ns =
		rate->burst_ns > BUDGET_MIN_BURST_NS ? rate->burst_ns : BUDGET_MIN_BURST_NS;
	uint64_t steps = burst_ns >> scale->step_shift;

	return steps > INT32_MAX ? INT32_MAX : (int64_t)steps;
}

/* What grows in a moment, in thousandths of a step. */
static uint64_t growth(const struct scale *scale, const struct budget_rate *rate)
{
	return (UINT64_C(1) << (scale->moment_shift - scale->step_shift)) * rate->permille;
}

/* The balance in steps, with what has grown since the word's moment. */
static int64_t grown(
	const struct state *s, bool is_none, const struct budget_rate *rate, uint32_t moment)
{
	uint32_t passed = moment - s->moment;
	int64_t balance, burst = burst_steps(s->scale, rate);

	if (is_none)
		return 0;
	balance = s->balance + (int64_t)(passed * growth(s->scale, rate) / 1000);
	return balance > burst ? burst : balance;
}

uint64_t budget_spend(
	uint64_t word, const struct budget_rate *rate, uint64_t now_ns, int64_t cost_ns)
{
	return budget_spend_since(word, rate, now_ns, now_ns, cost_ns);
}

uint64_t budget_spend_since(uint64_t word, const struct budget_rate *rate, uint64_t since_ns,
	uint64_t now_ns, int64_t cost_ns)
{
	struct state s = unpack(word);
	bool is_none = word == BUDGET_NONE;
	uint32_t moment = moment_of(&s, is_none, now_ns);
	uint64_t passed = since_ns < now_ns ? (now_ns - since_ns) >> s.scale->moment_shift : 0;
	uint32_t most = is_none ? moment - 1 : moment - s.moment;
	int64_t balance, cost = steps_of(s.scale, cost_ns);

	moment -= passed < most ? (uint32_t)passed : most;
	balance = grown(&s, is_none, rate, moment);
	if (balance - s.balance >= BOOK_STEPS || balance == burst_steps(s.scale, rate) || is_none) {
		s.balance = balance;
		s.moment = moment;
	}
	s.balance -= cost;
	return pack(&s, now_ns);
}

int64_t budget_balance_ns(uint64_t word, const struct budget_rate *rate, uint64_t now_ns)
{
	struct state s = unpack(word);
	bool is_none = word == BUDGET_NONE;

	return grown(&s, is_none, rate, moment_of(&s, is_none, now_ns)) *
	       (INT64_C(1) << s.scale->step_shift);
}

uint64_t budget_wait_ns(uint64_t word, const struct budget_rate *rate, uint64_t now_ns)
{
	struct state s = unpack(word);
	bool is_none = word == BUDGET_NONE;
	uint32_t moment = moment_of(&s, is_none, now_ns);
	uint64_t each = growth(s.scale, rate), debt, moments;

	if (grown(&s, is_none, rate, moment) >= 0)
		return 0;
	if (rate->permille == 0)
		return UINT64_MAX;
	debt = (uint64_t)-s.balance * 1000;
	moments = (debt + each - 1) / each - (moment - s.moment);
	return (moments << s.scale->moment_shift) -
	       (now_ns & ((UINT64_C(1) << s.scale->moment_shift) - 1));
}
