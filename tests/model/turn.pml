/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns (src/region/turn.c), for every interleaving.
 *
 * Two slices, of which the first has two processes, claim the turn, prolong it and release it. Time passes
 * at any moment, also between any two steps of a process, which is a process that was stopped; one that dies
 * takes no further step. A page's word holds a state and until when it counts. What a process found out about
 * its clock is a step of its own, before or after the step that it is for.
 *
 * No two slices may believe in the turn at the same time: each belief lasts to the time that the process
 * confirmed, and not longer than the slice's word says so.
 */
/* run: */
/* run-must-fail: -DMUTANT_NO_SECOND_LOOK */
/* run-must-fail: -DMUTANT_UNCONFIRMED_HOLD */
/* run-must-fail: -DMUTANT_UNCONFIRMED_LEASE */
/* run-must-fail: -DMUTANT_CLOCK_AFTER_LOOK */
/* run-must-fail: -DMUTANT_NO_FRESH */
/* run-must-fail: -DMUTANT_RELEASE_UNASKED */

#define SLICES	  2
#define PROCESSES 3
#define LAST	  4 /* time ends here */
#define LEASE	  2
#define CLAIMED	  1
#define ROUNDS	  2

#define FREE  0
#define CLAIM 1
#define HOLD  2

/* One word of a page, changed by compare and exchange. */
typedef word {
	byte state, until, stamp; /* the stamp stands for the ns by which any two differ */
	bool fresh
};

byte now;
word page[SLICES];
byte busy[PROCESSES];	/* until when the process has work; only its slice reads it */
byte belief[PROCESSES]; /* until when the process believes in the turn */

#define SLICE(p)  (p / 2)
#define IS(s, what) (page[s].state == what && now < page[s].until)

/* Beliefs of different slices at the same time. */
#define CHECK assert(!((now < belief[0] || now < belief[1]) && now < belief[2]))

inline put(s, a, b, c)
{
	page[s].state = a;
	page[s].until = b;
	page[s].fresh = c;
	page[s].stamp++
}

/* The word is as it was seen. */
#define SAME (page[s].stamp == seen_stamp)

inline see()
{
	seen_state = page[s].state;
	seen_until = page[s].until;
	seen_fresh = page[s].fresh;
	seen_stamp = page[s].stamp
}

/* The look at the other slice, by the clock of before. */
inline look()
{
#ifdef MUTANT_CLOCK_AFTER_LOOK
	d_step { other_state = page[1 - s].state; other_until = page[1 - s].until };
	clock = now;
#else
	clock = now;
	d_step { other_state = page[1 - s].state; other_until = page[1 - s].until };
#endif
	in_way = (other_state != FREE && clock < other_until);
	d_step { clock = 0; other_state = 0; other_until = 0 }
}

/* put_hold(): the new lease, seen to be in time, and then confirmed. */
inline put_hold(is_confirmed)
{
	until = now + LEASE;
	is_held = false;
	if
	:: d_step { SAME -> counted = seen_until;
#ifdef MUTANT_NO_FRESH
			put(s, HOLD, until, false);
#else
			put(s, HOLD, until, true);
#endif
			see() };
		if
		:: atomic { (now < counted || !is_confirmed) ->
#ifdef MUTANT_NO_FRESH
				is_held = true
#else
				if
				:: SAME -> put(s, HOLD, until, false); is_held = true
				:: else
				fi
#endif
				;
				if
				:: is_held -> belief[p] = (busy[p] < until -> busy[p] : until); CHECK
				:: else
				fi }
		:: d_step { !(now < counted || !is_confirmed) ->
				if
				:: SAME -> put(s, FREE, 0, false)
				:: else
				fi }
		fi
	:: d_step { !SAME -> skip }
	fi;
	d_step { counted = 0; until = 0 }
}

proctype process(byte p)
{
	byte s = SLICE(p), seen_state, seen_until, seen_stamp, clock, other_state, other_until;
	byte until, counted, rounds = ROUNDS;
	bool seen_fresh, in_way, is_held;

	do
	:: atomic { rounds > 0 && now < LAST - 1 -> rounds--;
			busy[p] = now + 2;
			belief[p] = 0 };
		d_step { see() };
		if
		/* Of its own slice's: keep() */
		:: d_step { seen_state == HOLD && now < seen_until && !seen_fresh -> skip };
			if
			/* The lease is long enough: only marked. */
			:: d_step { busy[p] <= seen_until && SAME ->
					counted = seen_until;
					put(s, HOLD, seen_until, false) };
				if
				:: d_step { now < counted ->
						is_held = true;
						belief[p] = busy[p];
						CHECK }
				:: d_step { now >= counted -> is_held = false }
				fi;
				counted = 0
			:: atomic { busy[p] > seen_until && SAME -> skip };
#ifdef MUTANT_UNCONFIRMED_LEASE
				put_hold(false)
#else
				put_hold(true)
#endif
			:: d_step { !SAME -> is_held = false }
			fi
		/* Nobody's, or the other slice's: take() and claim() */
		:: atomic { !(now < seen_until && seen_state != FREE) -> skip };
			is_held = false;
			look();
			if
			:: atomic { !in_way && SAME -> put(s, CLAIM, now + CLAIMED, false); see() };
#ifndef MUTANT_NO_SECOND_LOOK
				look();
#endif
				if
				:: atomic { in_way && SAME -> put(s, FREE, 0, false) }
				:: atomic { !in_way && SAME -> skip };
#ifdef MUTANT_UNCONFIRMED_HOLD
					put_hold(false)
#else
					put_hold(true)
#endif
				:: atomic { !SAME -> skip }
				fi
			:: atomic { in_way || !SAME -> skip }
			fi
		/* Another process of the slice is at it. */
		:: atomic { now < seen_until && (seen_state == CLAIM || seen_fresh) -> is_held = false }
		fi;
		/* Dies, goes on with its work still running, or has finished and releases. */
		if
		:: true -> break
		:: true
		:: atomic { is_held -> belief[p] = 0; busy[p] = 0 };
			d_step { see() };
			if
			:: atomic { seen_state == HOLD && now < seen_until && !seen_fresh -> skip };
				if
#ifndef MUTANT_RELEASE_UNASKED
				:: atomic { s == 0 && busy[1 - p] > now -> skip }
#endif
				:: atomic {
#ifndef MUTANT_RELEASE_UNASKED
					!(s == 0 && busy[1 - p] > now) &&
#endif
					true -> skip };
					if
					:: d_step { SAME -> put(s, FREE, 0, false) }
					:: d_step { !SAME -> skip }
					fi
				fi
			:: atomic { !(seen_state == HOLD && now < seen_until && !seen_fresh) -> skip }
			fi
		fi;
		d_step { seen_state = 0; seen_until = 0; seen_stamp = 0; seen_fresh = false;
			in_way = false; is_held = false }
	:: atomic { rounds == 0 || now >= LAST - 1 -> break }
	od
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
		run process(0);
		run process(1);
		run process(2);
		run time()
	}
}
