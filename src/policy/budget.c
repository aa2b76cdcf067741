/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A budget of time.
 *
 * Growth is rounded down to a step, so booking it at every look would lose up to a step each
 * time. It is booked only once it is BOOK_STEPS, and until then the word keeps its older moment.
 */
#include "policy/budget.h"

#include <stdbool.h>

#define STEP_NS	     64
#define MOMENT_SHIFT 10
#define BOOK_STEPS   1024 /* 65 us: rounding loses less than a thousandth */
#define BACKWARD_STEPS \
	(1u << 20) /* about a second: moments that two processors read the other way round */

/* Now; the word's own moment where that is later, so that what has grown until then does not grow again. */
static uint32_t moment_of(uint64_t word, uint64_t now_ns)
{
	uint32_t moment = (uint32_t)(now_ns >> MOMENT_SHIFT);

	if (moment == 0)
		moment = 1; /* 0 with a balance of 0 is BUDGET_NONE */
	if (word != BUDGET_NONE && moment - (uint32_t)word > UINT32_MAX - BACKWARD_STEPS)
		return (uint32_t)word;
	return moment;
}

static int32_t balance_of(uint64_t word)
{
	return (int32_t)(uint32_t)(word >> 32);
}

static uint64_t pack(int64_t balance, uint32_t moment)
{
	if (balance > INT32_MAX)
		balance = INT32_MAX;
	if (balance < INT32_MIN)
		balance = INT32_MIN;
	return (uint64_t)(uint32_t)(int32_t)balance << 32 | moment;
}

static int64_t burst_steps(const struct budget_rate *rate)
{
	uint64_t burst_ns =
		rate->burst_ns > BUDGET_MIN_BURST_NS ? rate->burst_ns : BUDGET_MIN_BURST_NS;

	return burst_ns / STEP_NS > INT32_MAX ? INT32_MAX : (int64_t)(burst_ns / STEP_NS);
}

/* The balance in steps, with what has grown since the word's moment. */
static int64_t grown(uint64_t word, const struct budget_rate *rate, uint32_t moment)
{
	uint32_t passed = moment - (uint32_t)word;
	int64_t balance = balance_of(word), burst = burst_steps(rate);

	if (word == BUDGET_NONE)
		return 0;
	balance += (int64_t)((uint64_t)passed * (1u << MOMENT_SHIFT) / STEP_NS * rate->permille /
			     1000);
	return balance > burst ? burst : balance;
}

static uint64_t spend_at(
	uint64_t word, const struct budget_rate *rate, uint32_t moment, int64_t cost_ns)
{
	int64_t before = balance_of(word), balance = grown(word, rate, moment);
	/* To the nearest step: many small costs come out right in all. */
	int64_t cost = (cost_ns + (cost_ns < 0 ? -STEP_NS / 2 : STEP_NS / 2)) / STEP_NS;
	bool is_booked = balance - before >= BOOK_STEPS || balance == burst_steps(rate) ||
			 word == BUDGET_NONE;

	if (is_booked)
		return pack(balance - cost, moment);
	return pack(before - cost, (uint32_t)word);
}

uint64_t budget_spend(
	uint64_t word, const struct budget_rate *rate, uint64_t now_ns, int64_t cost_ns)
{
	return spend_at(word, rate, moment_of(word, now_ns), cost_ns);
}

uint64_t budget_spend_since(uint64_t word, const struct budget_rate *rate, uint64_t since_ns,
	uint64_t now_ns, int64_t cost_ns)
{
	uint32_t moment = moment_of(word, now_ns);
	uint64_t passed = since_ns < now_ns ? (now_ns - since_ns) >> MOMENT_SHIFT : 0;
	uint32_t most = word == BUDGET_NONE ? moment - 1 : moment - (uint32_t)word;

	return spend_at(word, rate, moment - (passed < most ? (uint32_t)passed : most), cost_ns);
}

int64_t budget_balance_ns(uint64_t word, const struct budget_rate *rate, uint64_t now_ns)
{
	return grown(word, rate, moment_of(word, now_ns)) * STEP_NS;
}

uint64_t budget_wait_ns(uint64_t word, const struct budget_rate *rate, uint64_t now_ns)
{
	uint32_t moment = moment_of(word, now_ns);
	/* Of a thousandth of a step, which grow for each moment, and are owed. */
	uint64_t growth = (1u << MOMENT_SHIFT) / STEP_NS * (uint64_t)rate->permille, debt, moments;

	if (grown(word, rate, moment) >= 0)
		return 0;
	if (rate->permille == 0)
		return UINT64_MAX;
	debt = (uint64_t)(-(int64_t)balance_of(word)) * 1000;
	moments = (debt + growth - 1) / growth - (moment - (uint32_t)word);
	return (moments << MOMENT_SHIFT) - (now_ns & ((1u << MOMENT_SHIFT) - 1));
}
