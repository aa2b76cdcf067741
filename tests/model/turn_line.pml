/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long turns last, and how long they are waited for (src/policy/turn_order.c, turn_is_wanted() in src/region/turn.c), for every order of looks
 * and every length of work.
 *
 * Two slices always have work. Each looks once in a unit of time, which is about 50 ms; which of them looks first, and how long its next work takes, is
 * open. A look and what follows from it are one step here: what comes between is in turn.pml. Time has no end, as all ages are
 * bounded. Who holds gives its next work before the last one ends. The first slice has rank RANK, the other one 2;
 * the smaller is the better one.
 *
 * - An honest turn is outlasted only where the one piece of work that it began with takes as long as the waiter's patience.
 * - Two slices that both hold do so no longer than one piece of work takes.
 * - No slice waits longer than until its rank is as good as any, and then its patience.
 * - A turn that is outlasted is not believed any more, and a later one is.
 *
 * The first slice may be a LIAR that says at each look that it holds, by the turn of before or a new one. The other one waits no
 * longer for it. Who dies or is stopped is in turn.pml.
 *
 * Who sees that the other one holds by a later turn gives its own back (turn_order_taken_by()); without that both go on for as
 * long as they have work (MUTANT_OUTLASTED_GOES_ON).
 */
/* run: -DRANK=2 */
/* run: -DRANK=0 */
/* run: -DRANK=2 -DPATIENCE=9 */
/* run: -DRANK=0 -DLIAR */
/* run: -DRANK=2 -DLIAR */
/* run-must-fail: -DRANK=0 -DMUTANT_NO_AGE */
/* run-must-fail: -DRANK=2 -DMUTANT_NO_PATIENCE -DLIAR */
/* run-must-fail: -DRANK=0 -DMUTANT_NEVER_BEGINS_ANEW */
/* run-must-fail: -DRANK=2 -DMUTANT_NEW_TURN_FORGIVES -DLIAR */
/* run-must-fail: -DRANK=2 -DMUTANT_OUTLASTED_GOES_ON */
/* run-must-fail: -DRANK=2 -DMUTANT_LEASE_AS_LONG_AS_WORK */
/* run-must-fail: -DRANK=2 -DMUTANT_END_WRAPS -DLIAR */

#define LONGEST 7 /* piece of work */
#define WANTED  3 /* for so long a turn goes on after others began to wait */
#ifndef PATIENCE
#define PATIENCE 4
#endif
#define AGE(rank) 2 /* after such a wait it is as good as any */
#define SEEN	  1		      /* by so much a look may be late */
#define MOST	  15		      /* ages beyond count no more */

#define OTHERS 2
#define RANK_OF(s) (s == 0 -> RANK : OTHERS)
/* With the last unit for the look itself. */
#define LAST_AGE (AGE(OTHERS) + (PATIENCE > LONGEST -> LONGEST : PATIENCE) + 2 * SEEN + 1)

#define FREE 0 /* after a hold that was not prolonged */
#define WANT 1
#define HOLD 2

#define TIMES 3 /* of beginnings, which a liar says: the last one is the end of time */

byte state[2], work[2]; /* until that is done the hold counts, too */
byte waited[2];	      /* since when it wants */
byte held[2];	      /* since when its turn lasts */
byte wanted[2];	      /* since when it sees the other one wait for it */
byte first[2];	      /* the work that the turn began with */
byte in_way[2];	      /* for how long the other one was, of the present wish */
bool was_in_way[2];
bool is_new[2];	      /* the other one's turn, to this reader */
bool is_later[2];     /* the other one's turn began after this one's */
bool is_outlasted[2]; /* the other one's turn */
byte both;
bool has_looked[2];
#ifdef LIAR
byte since, outlasted; /* as the liar says it, and as it is not believed */
#define IS_HONEST(s) (s == 1)
#else
#define IS_HONEST(s) true
#endif

#define BOUNDED(n) (n < MOST -> n + 1 : MOST)
#ifdef MUTANT_NO_AGE
#define AGED(s) RANK_OF(s)
#else
#define AGED(s) (waited[s] >= AGE(RANK_OF(s)) -> 0 : RANK_OF(s))
#endif

#define IS_BELIEVED(s) (state[1 - s] == HOLD && !is_outlasted[s])
/* By the holder: who waits, or has taken the turn although it is held. */
#define IS_WAITING(s) (state[1 - s] == WANT || (IS_BELIEVED(s) && AGED(1 - s) < RANK_OF(s)))
#ifdef MUTANT_OUTLASTED_GOES_ON
#define IS_WANTED_FOR_IT(s) false
#else
/* It has been outlasted. */
#define IS_WANTED_FOR_IT(s) (IS_BELIEVED(s) && is_later[s])
#endif
#define IS_WANTED(s, is_over) (IS_WANTED_FOR_IT(s) || \
	(IS_WAITING(s) && (AGED(1 - s) < RANK_OF(s) || (AGED(1 - s) == RANK_OF(s) && is_over))))
/* Is the other one first in line? */
#define IS_BEFORE(s) (state[1 - s] == WANT && (AGED(1 - s) < AGED(s) || \
	(AGED(1 - s) == AGED(s) && (waited[1 - s] > waited[s] || (waited[1 - s] == waited[s] && s == 1)))))

inline begin()
{
	held[s] = 0;
	wanted[s] = 0;
	first[s] = next;
	is_new[1 - s] = true;
	is_outlasted[1 - s] = false;
	is_later[1 - s] = true;
	is_later[s] = false
}

inline give_back()
{
	state[s] = WANT;
	waited[s] = 0;
	wanted[s] = 0;
	in_way[s] = 0;
	was_in_way[s] = false;
	is_outlasted[1 - s] = false
}

inline hold()
{
	if
	:: IS_WAITING(s) && wanted[s] == 0 -> wanted[s] = 1
	:: !IS_WAITING(s) -> wanted[s] = 0
	:: else
	fi;
	if
	:: work[s] > 0
	:: work[s] == 0 && IS_WANTED(s, held[s] > 0) -> give_back()
	:: work[s] == 0 && !IS_WANTED(s, held[s] > 0) ->
		if
#ifdef MUTANT_LEASE_AS_LONG_AS_WORK
		:: true -> work[s] = next
#else
		/* Of what nobody waits for no more is announced. What runs on beyond is no turn. */
		:: !wanted[s] -> work[s] = (next < WANTED -> next : WANTED)
		:: wanted[s] && wanted[s] - 1 + next <= WANTED -> work[s] = next
		:: wanted[s] && wanted[s] - 1 + next > WANTED ->
			if
#ifdef MUTANT_NEVER_BEGINS_ANEW
			:: true -> work[s] = next
#else
			:: IS_WANTED(s, true) -> give_back()
			:: !IS_WANTED(s, true) -> begin(); work[s] = next
#endif
			fi
#endif
		fi
	fi
}

inline note()
{
	if
	:: state[1 - s] != HOLD -> is_outlasted[s] = false
	:: else
	fi;
#ifdef MUTANT_NEW_TURN_FORGIVES
	if
	:: is_new[s] -> in_way[s] = 0
#else
	if
	:: is_new[s] && RANK_OF((1 - s)) < AGED(s) -> in_way[s] = 0
#endif
	:: else
	fi;
	is_new[s] = false;
	if
	:: state[1 - s] == HOLD && was_in_way[s] -> in_way[s] = BOUNDED(in_way[s])
	:: else
	fi;
	was_in_way[s] = (state[1 - s] == HOLD);
#ifdef MUTANT_NO_PATIENCE
	is_outlasted[s] = false
#else
	if
	:: was_in_way[s] && in_way[s] > PATIENCE -> is_outlasted[s] = true
	:: else
	fi;
#ifdef LIAR
	/* By what the record says of its beginning: no turn is believed that began then or before. */
	if
	:: is_outlasted[s] -> outlasted = since;
#ifdef MUTANT_END_WRAPS
		is_outlasted[s] = (since < (outlasted + 1) % TIMES)
#else
		is_outlasted[s] = (since <= outlasted)
#endif
	:: else
	fi
#endif
#endif
}

inline take()
{
	note();
	if
	:: IS_BELIEVED(s) || IS_BEFORE(s)
	:: !IS_BELIEVED(s) && !IS_BEFORE(s) ->
		/* Only what began so long. What is left of a stopped one's turn is none. */
		assert(state[1 - s] != HOLD || !IS_HONEST((1 - s)) || first[1 - s] + SEEN > PATIENCE);
		state[s] = HOLD;
		work[s] = next;
		waited[s] = 0;
		in_way[s] = 0;
		was_in_way[s] = false;
		begin()
	fi
}

inline look_of(slice)
{
	s = slice;
	if
	:: next = 1
	:: next = WANTED
	:: next = LONGEST
	fi;
	if
#ifdef LIAR
	:: s == 0 ->
		state[0] = HOLD;
		if
		:: true -> is_new[1] = true; is_outlasted[1] = false; is_later[1] = true;
			if
			:: since = 0
			:: since = 1
			:: since = TIMES - 1
			fi
		:: true
		fi
#endif
	:: IS_HONEST(s) && state[s] == HOLD -> hold()
	:: IS_HONEST(s) && state[s] == WANT -> take()
	:: IS_HONEST(s) && state[s] == FREE -> give_back()
	fi;
	has_looked[s] = true;
	s = 0;
	next = 0
}

/* One unit for a slice: its work goes on. Of a hold that was not prolonged nothing counts any more. */
inline pass(slice)
{
	has_looked[slice] = false;
	if
	:: IS_HONEST(slice) && state[slice] == HOLD && work[slice] > 0 -> work[slice]--
	:: IS_HONEST(slice) && state[slice] == HOLD && work[slice] == 0 -> state[slice] = FREE; wanted[slice] = 0
	:: else
	fi;
	if
	:: state[slice] == WANT -> waited[slice] = BOUNDED(waited[slice])
	:: else
	fi;
	if
	:: state[slice] == HOLD && held[slice] == 0 -> held[slice] = 1
	:: else
	fi;
	if
	:: wanted[slice] -> wanted[slice] = BOUNDED(wanted[slice])
	:: else
	fi
}

active proctype world()
{
	byte s, next;

	state[0] = WANT;
	state[1] = WANT;
	do
	:: atomic { !has_looked[0] -> look_of(0) }
	:: atomic { !has_looked[1] -> look_of(1) }
	:: atomic { has_looked[0] && has_looked[1] ->
		pass(0);
		pass(1);
		both = (state[0] == HOLD && state[1] == HOLD -> BOUNDED(both) : 0);
#ifndef LIAR
		assert(both <= LONGEST + SEEN);
		assert(PATIENCE <= LONGEST || !both);
#endif
#ifndef LIAR
		assert(waited[0] <= LAST_AGE);
#endif
		assert(waited[1] <= LAST_AGE) }
	od
}
