/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns (src/region/turn.c), for every interleaving.
 *
 * Two slices claim the turn, prolong it and release it; the first has two processes, or (ALONE) one, and then
 * each process does more. Time passes at any moment, also between any two steps of a process: that is one that
 * was stopped. One that dies takes no further step. What a process reads from its clock is a step of its own.
 *
 * No two slices believe in the turn at the same time. A belief lasts as long as the process's work, and not
 * longer than the word that it confirmed.
 */
/* run: */
/* run: -DALONE */
/* run-must-fail: -DALONE -DMUTANT_NO_SECOND_LOOK */
/* run-must-fail: -DALONE -DMUTANT_UNCONFIRMED_HOLD */
/* run-must-fail: -DALONE -DMUTANT_UNCONFIRMED_LEASE */
/* run-must-fail: -DALONE -DMUTANT_CLOCK_AFTER_LOOK */
/* run-must-fail: -DMUTANT_NO_FRESH */
/* run-must-fail: -DMUTANT_RELEASE_UNASKED */

#define SLICES	  2
#define PROCESSES 3
#define LEASE	  2

#ifdef ALONE
#define LAST	4 /* time ends here */
#define CLAIMED 2
#else
#define LAST	3
#define CLAIMED 1
#endif

#define FREE  0
#define CLAIM 1
#define HOLD  2

/* One word of a record, changed by compare and exchange. */
typedef word {
	byte state, until, stamp; /* the stamp stands for the ns by which any two differ */
	bool fresh
};

byte now;
word record[SLICES];
byte busy[PROCESSES];	/* until when the process has work; only its slice reads it */
byte belief[PROCESSES]; /* until when the process believes in the turn */

#define SLICE(p) (p / 2)

/* Beliefs of different slices at the same time. */
#define CHECK assert(!((now < belief[0] || now < belief[1]) && now < belief[2]))

inline put(a, b, c)
{
	record[s].state = a;
	record[s].until = b;
	record[s].fresh = c;
	record[s].stamp++
}

/* The word is as it was seen. */
#define SAME (record[s].stamp == seen_stamp)

inline see()
{
	seen_state = record[s].state;
	seen_until = record[s].until;
	seen_fresh = record[s].fresh;
	seen_stamp = record[s].stamp
}

/* For as long as its work takes and the word says. */
inline believe(end)
{
	belief[p] = (busy[p] < end -> busy[p] : end);
	CHECK
}

/* The slice holds, and no other process of it is going on or has work. */
#define HOLDS_ALONE (seen_state == HOLD && now < seen_until && !seen_fresh)
#ifdef MUTANT_RELEASE_UNASKED
#define IS_RELEASED HOLDS_ALONE
#else
#define IS_RELEASED (HOLDS_ALONE && !(s == 0 && busy[1 - p] > now))
#endif

/* The look at the other slice, by the clock of before. */
inline look()
{
#ifdef MUTANT_CLOCK_AFTER_LOOK
	d_step { other_state = record[1 - s].state; other_until = record[1 - s].until };
	d_step { in_way = (other_state != FREE && now < other_until); other_state = 0; other_until = 0 }
#else
	clock = now;
	d_step { in_way = (record[1 - s].state != FREE && clock < record[1 - s].until); clock = 0 }
#endif
}

/* put_hold(): the new lease, seen to be in time, and then confirmed. */
inline put_hold(is_confirmed)
{
	if
	:: d_step { SAME -> counted = seen_until;
#ifdef MUTANT_NO_FRESH
			put(HOLD, now + LEASE, false);
#else
			put(HOLD, now + LEASE, true);
#endif
			see() };
		if
		:: d_step { (now < counted || !is_confirmed) -> in_time = true }
		:: d_step { !(now < counted || !is_confirmed) -> in_time = false }
		fi;
		if
#ifdef MUTANT_NO_FRESH
		:: d_step { in_time -> is_held = true; believe(seen_until) }
#else
		:: d_step { in_time && SAME -> put(HOLD, seen_until, false); is_held = true; believe(seen_until) }
		:: d_step { in_time && !SAME -> skip }
#endif
		:: d_step { !in_time && SAME -> put(FREE, 0, false) }
		:: d_step { !in_time && !SAME -> skip }
		fi
	:: d_step { !SAME -> skip }
	fi
}

proctype process(byte p; byte rounds)
{
	byte s = SLICE(p), seen_state, seen_until, seen_stamp, counted, clock;
#ifdef MUTANT_CLOCK_AFTER_LOOK
	byte other_state, other_until;
#endif
	bool seen_fresh, in_way, in_time, is_held;

	do
	:: d_step { rounds > 0 && now < LAST - 1 -> rounds--; busy[p] = now + 2; belief[p] = 0 };
		d_step { see() };
		if
		/* Its slice's: keep() */
		:: d_step { seen_state == HOLD && now < seen_until && !seen_fresh -> skip };
			if
			/* The lease is long enough: only marked. */
			:: d_step { busy[p] <= seen_until && SAME -> put(HOLD, seen_until, false) };
				if
				:: d_step { now < seen_until -> is_held = true; believe(seen_until) }
				:: d_step { now >= seen_until -> skip }
				fi
			:: d_step { busy[p] > seen_until && SAME -> skip };
#ifdef MUTANT_UNCONFIRMED_LEASE
				put_hold(false)
#else
				put_hold(true)
#endif
			:: d_step { !SAME -> skip }
			fi
		/* Nobody's, or the other slice's: take() and claim() */
		:: d_step { !(now < seen_until && seen_state != FREE) -> skip };
			look();
			if
			:: d_step { !in_way && SAME -> put(CLAIM, now + CLAIMED, false); see() };
#ifndef MUTANT_NO_SECOND_LOOK
				look();
#endif
				if
				:: d_step { in_way && SAME -> put(FREE, 0, false) }
				:: d_step { !in_way && SAME -> skip };
#ifdef MUTANT_UNCONFIRMED_HOLD
					put_hold(false)
#else
					put_hold(true)
#endif
				:: d_step { !SAME -> skip }
				fi
			:: d_step { in_way || !SAME -> skip }
			fi
		/* Another process of the slice is at it. */
		:: d_step { now < seen_until && (seen_state == CLAIM || (seen_state == HOLD && seen_fresh)) ->
				skip }
		fi;
		/* Dies with its work under way, goes on, or has finished and releases. */
		if
		:: goto dead
		:: skip
		:: d_step { is_held -> belief[p] = 0; busy[p] = 0; see() };
			if
			:: d_step { IS_RELEASED -> skip };
				if
				:: d_step { SAME -> put(FREE, 0, false) }
				:: d_step { !SAME -> skip }
				fi
			:: d_step { !(IS_RELEASED) -> skip }
			fi
		fi;
		d_step { seen_state = 0; seen_until = 0; seen_stamp = 0; seen_fresh = false;
			counted = 0; in_way = false; in_time = false; is_held = false }
	:: d_step { rounds == 0 || now >= LAST - 1 -> skip };
		break
	od;
dead:
	skip
}

/* Passes while others stand between two steps. */
proctype time()
{
	do
	:: atomic { now < LAST -> now++; CHECK }
	:: atomic { now == LAST -> break }
	od
}

init
{
	atomic {
#ifdef ALONE
		run process(0, 2);
		run process(2, 2);
#else
		run process(0, 1);
		run process(1, 1);
		run process(2, 1);
#endif
		run time()
	}
}
