/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A turn record that lies as HUNT_LIE says, beside work or without: words like "hold_us=6000", of which each has a value
 * where it is missing. The hunt for lies (tests/hunt/hunt_lies.py) makes them at random.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/hostile/records.h"

#define US	1000u
#define RECORDS 8u

enum when { ALWAYS, WHILE_IT_WAITS, WHILE_IT_HOLDS, AFTER_IT_HELD };

/* since when the record says it holds */
enum since {
	SINCE_NOW,
	SINCE_IT_BEGAN,
	BEFORE_THE_OTHER,
	AFTER_THE_OTHER,
	SINCE_THE_START,
	SINCE_LATER
};

enum ticket { TICKET_NOW, TICKET_FIRST, TICKET_BEFORE_THE_OTHER };

struct lie {
	uint64_t kernel_ns; /* of the slice's own work; 0 is none */
	uint64_t processes; /* that do it */
	uint64_t own;	    /* 1 where the slice's own record lies, else another user's */
	uint64_t records;   /* of that user, by turns */
	uint64_t hold_ns, gap_ns;
	uint64_t lease_ns; /* for how long the record is said to hold, each time */
	uint64_t step_ns;  /* between two words */
	uint64_t burst_ns, rest_ns;
	uint64_t rank;
	unsigned state, gap_state; /* enum turn_state */
	enum since since;
	enum ticket ticket;
	enum when when;
};

static const char *const states[] = {[TURN_FREE] = "free",
	[TURN_WANT] = "want",
	[TURN_CLAIM] = "claim",
	[TURN_HOLD] = "hold",
	NULL};
static const char *const sinces[] = {
	"now", "begin", "before_other", "after_other", "start", "later", NULL};
static const char *const tickets[] = {"now", "first", "before_other", NULL};
static const char *const whens[] = {"always", "waits", "holds", "held", NULL};

/* What stands behind "name=" in HUNT_LIE. */
static const char *value_of(const char *name)
{
	const char *at = getenv("HUNT_LIE");
	size_t length = strlen(name);

	for (; at && *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	return NULL;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *value = value_of(name);

	return value ? strtoull(value, NULL, 10) : otherwise;
}

static unsigned word(const char *name, const char *const *words, unsigned otherwise)
{
	const char *value = value_of(name);
	unsigned i = 0;

	if (!value)
		return otherwise;
	while (words[i] && strncmp(value, words[i], strcspn(value, " ")) != 0)
		i++;
	MUST(!words[i]);
	return i;
}

static struct lie read_lie(void)
{
	struct lie lie = {
		.kernel_ns = number("kernel_us", 500) * US,
		.processes = number("processes", 1),
		.own = number("own", 0),
		.records = number("records", 1),
		.hold_ns = number("hold_us", 100000) * US,
		.gap_ns = number("gap_us", 250) * US,
		.lease_ns = number("lease_us", 10000) * US,
		.step_ns = number("step_us", 1000) * US,
		.burst_ns = number("burst_ms", 0) * MS,
		.rest_ns = number("rest_ms", 500) * MS,
		.rank = number("rank", 0),
		.state = word("state", states, TURN_HOLD),
		.gap_state = word("between", states, TURN_FREE),
		.since = (enum since)word("since", sinces, SINCE_NOW),
		.ticket = (enum ticket)word("ticket", tickets, TICKET_NOW),
		.when = (enum when)word("when", whens, ALWAYS),
	};

	MUST(lie.records < 1 || lie.records > RECORDS || lie.step_ns < 100 * US ||
		lie.gap_ns < 100 * US);
	return lie;
}

static bool may_hold(const struct lie *l, const struct turn_record *other, bool is_holding)
{
	bool other_holds = TURN_WORD_STATE(other->face.word) == TURN_HOLD;

	switch (l->when) {
	case WHILE_IT_WAITS:
		return !other_holds;
	case WHILE_IT_HOLDS:
		return other_holds;
	case AFTER_IT_HELD:
		return is_holding ||
		       (other_holds && records_now_ns() > other->face.since_ns + 2 * MS);
	default:
		return true;
	}
}

static void say(const struct lie *l, struct turn_record *r, const struct turn_record *other,
	uint64_t start_ns, uint64_t begin_ns)
{
	bool is_wish = l->state == TURN_WANT;
	uint64_t since_ns[] = {
		[SINCE_NOW] = 0,
		[SINCE_IT_BEGAN] = begin_ns,
		[BEFORE_THE_OTHER] = other->face.since_ns - 1,
		[AFTER_THE_OTHER] = other->face.since_ns + 251 * MS,
		[SINCE_THE_START] = start_ns,
		[SINCE_LATER] = records_now_ns() + 300 * MS,
	};

	records_say(r, l->state, (uint32_t)l->rank,
		is_wish && l->lease_ns > 9 * MS ? 9 * MS : l->lease_ns);
	if (l->since != SINCE_NOW)
		r->face.since_ns = since_ns[l->since];
	if (l->ticket == TICKET_FIRST)
		r->face.ticket_ns = 1;
	else if (l->ticket == TICKET_BEFORE_THE_OTHER)
		r->face.ticket_ns = other->face.ticket_ns - 1;
}

/* Until the hold is over. */
static void hold(const struct lie *l, struct turn_record *r, const struct turn_record *other,
	uint64_t start_ns)
{
	uint64_t begin_ns = records_now_ns(), now_ns;
	bool is_holding = false;

	while ((now_ns = records_now_ns()) < begin_ns + l->hold_ns) {
		if (l->burst_ns && (now_ns - start_ns) % (l->burst_ns + l->rest_ns) > l->burst_ns) {
			records_say(r, TURN_FREE, 0, 0);
			served_sleep(l->step_ns);
			begin_ns = records_now_ns();
			continue;
		}
		is_holding = may_hold(l, other, is_holding);
		if (is_holding)
			say(l, r, other, start_ns, begin_ns);
		else
			records_say(r, l->gap_state, (uint32_t)l->rank, MS);
		served_sleep(l->step_ns);
	}
}

static void attack(void)
{
	struct lie lie = read_lie();
	struct turn_record *records[RECORDS];
	const struct turn_record *other;
	uint64_t start_ns;

	for (uint64_t i = 0; lie.kernel_ns && i < lie.processes; i++)
		records_start_work(lie.kernel_ns);
	if (lie.own) {
		records[0] = records_own();
		lie.records = 1;
	} else {
		records_enter();
		records_make_all(records, (int)lie.records);
	}
	other = records_of("s1");
	start_ns = records_now_ns();
	for (uint64_t i = 0;; i++) {
		struct turn_record *r = records[i % lie.records];

		hold(&lie, r, other, start_ns);
		records_say(r, lie.gap_state, (uint32_t)lie.rank, lie.gap_ns + MS / 4);
		served_sleep(lie.gap_ns);
		records_say(r, TURN_FREE, 0, 0);
	}
}

int main(void)
{
	return served_beside_main(attack);
}
