/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The protocol of src/region/ledger.c, for every interleaving of few processes and small numbers.
 *
 * Two tenants charge and give back on a slot each, and may die instead of any step; a next life of
 * the first claims the same slot again. A helper reaps and settles, and may die while it reaps; a
 * second one settles at the same time. One atomic operation of the code is one step here, and a loop
 * of compare-and-exchange is one step, too, because only its last turn changes anything, and it
 * decides on what it then finds. That a word counts its changes is modelled as what it is for: who
 * has looked at it is told when it was changed.
 *
 * A line "run" names what must hold, "run-must-fail" mistakes that the search must find, so that we
 * know that it can. MUTANT_DOUBT_RESET is one count of doubts that is set back to 0. With AUDIT the
 * second settler is one who looks at the books at any time (ledger_audit()).
 */
/* run: */
/* run: -DAUDIT */
/* run-must-fail: -DMUTANT_TOTAL_FIRST */
/* run-must-fail: -DMUTANT_BACK_TOTAL_FIRST */
/* run-must-fail: -DMUTANT_TOTAL_UNCOUNTED */
/* run-must-fail: -DMUTANT_DOUBT_AFTER */
/* run-must-fail: -DMUTANT_DOUBT_RESET */
/* run-must-fail: -DAUDIT -DMUTANT_TOTAL_UNCOUNTED */

#define SLOTS	 2
#define LIMIT	 2
#define SETTLERS 2
#ifdef AUDIT
#define DUTIES	 2
#else
#define DUTIES	 3 /* what the helper does before it ends */
#endif

/* total */
byte used;
bool total_changed[SETTLERS]; /* since this settler looked */
bool looks[SETTLERS];
/* a slot's word */
byte held[SLOTS];
byte way[SLOTS];
/* doubts, and how many of them are settled: both only grow */
byte doubts;
byte settled;

bool live[SLOTS];   /* state is SLOT_LIVE */
bool locked[SLOTS]; /* by its living owner, or by a reaper */
byte running;	    /* processes that have not come to their end */

#define CAN_REAP(s) (live[s] && !locked[s])
#define IN_DOUBT (doubts != settled)
#define SUM   (held[0] + held[1])
#define CHECK assert(used <= LIMIT && SUM <= used)

inline change_total(value)
{
	used = value;
	total_changed[0] = looks[0];
	total_changed[1] = looks[1]
}

inline lower(n)
{
	if
	:: used > n -> change_total(used - n)
	:: else -> change_total(0)
	fi
}

/* Charges up to most units in each of its lives. */
proctype tenant(byte s; byte lives; byte most)
{
	byte n;

	do
	:: atomic {
			lives > 0 && !live[s] && !locked[s];
			locked[s] = true;
			live[s] = true;
			lives--
		};
		/* charge */
#ifdef MUTANT_TOTAL_FIRST
		if
		:: n = 1
		:: most == 2 -> n = 2
		fi;
#else
		if
		:: d_step { n = 1; way[s] = way[s] + n }
		:: d_step { most == 2 -> n = 2; way[s] = way[s] + n }
		:: goto dead
		fi;
#endif
		if
		:: atomic {
				if
				:: used + n > LIMIT -> n = 0
				:: else -> change_total(used + n)
				fi;
				CHECK
			}
		:: goto dead
		fi;
		if
#ifdef MUTANT_TOTAL_FIRST
		:: d_step { held[s] = held[s] + n; CHECK }
#else
		:: d_step { n == 0 -> way[s] = 0 }
		:: d_step { n > 0 -> held[s] = held[s] + n; way[s] = way[s] - n; CHECK }
#endif
		:: goto dead
		fi;
		/* give-back */
#ifdef MUTANT_BACK_TOTAL_FIRST
		if
		:: d_step { n > 0 -> lower(n); CHECK }
		:: goto dead
		fi;
		d_step { held[s] = held[s] - n; CHECK };
#else
		if
		:: d_step { n > 0 -> held[s] = held[s] - n; way[s] = way[s] + n; CHECK }
		:: goto dead
		:: goto idle /* lives on to the end, and holds what it holds */
		fi;
		if
		:: d_step { lower(n); CHECK }
		:: goto dead
		fi;
		if
		:: d_step { way[s] = way[s] - n }
		:: goto dead
		fi;
#endif
		if
		:: true
		:: goto idle
		fi;
dead:
		atomic { locked[s] = false; n = 0 }
	:: break
	od;
idle:
	atomic { running--; n = 0; lives = 0 }
}

/* ledger_reap() and clear() on slot s, whose lock the caller has */
inline reap()
{
	if
	:: d_step { held[s] > 0 -> n = held[s]; held[s] = 0; way[s] = way[s] + n; CHECK };
		if
		:: d_step { lower(n); CHECK }
		:: goto reaper_died
		fi;
		if
		:: d_step { way[s] = way[s] - n }
		:: goto reaper_died
		fi
	:: held[s] == 0
	fi;
	if
	:: way[s] > 0 ->
		if
#ifdef MUTANT_DOUBT_AFTER
		:: way[s] = 0
#else
		:: doubts++
#endif
		:: goto reaper_died
		fi;
		if
#ifdef MUTANT_DOUBT_AFTER
		:: doubts++
#else
		:: way[s] = 0
#endif
		:: goto reaper_died
		fi
	:: else
	fi;
	live[s] = false;
reaper_died:
	atomic { locked[s] = false; n = 0; s = 0 }
}

/* One turn of the loop in ledger_settle(); me is the settler's number. */
inline settle(me)
{
	seen_doubts = doubts;
	d_step { seen_used = used; looks[me] = true; total_changed[me] = false };
	if
	:: d_step { way[0] == 0 -> sum = held[0] }
	:: way[0] > 0 -> goto given_up
	fi;
	if
	:: d_step { way[1] == 0 -> sum = sum + held[1] }
	:: way[1] > 0 -> goto given_up
	fi;
	if
	:: d_step {
#ifdef MUTANT_TOTAL_UNCOUNTED
			used == seen_used ->
#else
			!total_changed[me] ->
#endif
			change_total(sum);
			CHECK
		}
		d_step {
			if
#ifdef MUTANT_DOUBT_RESET
			:: doubts == seen_doubts -> doubts = 0
#else
			:: settled < seen_doubts -> settled = seen_doubts
#endif
			:: else
			fi
		}
	:: else
	fi;
given_up:
	atomic {
		seen_used = 0;
		seen_doubts = 0;
		sum = 0;
		looks[me] = false;
		total_changed[me] = false
	}
}

/*
 * ledger_audit(): where the total stood still, it is never below what is held, so that this can only be
 * tampering; and where nothing was on its way, it is what is held.
 */
inline audit(me)
{
	d_step { seen_used = used; looks[me] = true; total_changed[me] = false };
	d_step { sum = held[0]; quiet = way[0] == 0 };
	d_step { sum = sum + held[1]; quiet = quiet && way[1] == 0 };
	d_step {
		if
#ifdef MUTANT_TOTAL_UNCOUNTED
		:: used == seen_used ->
#else
		:: !total_changed[me] ->
#endif
			assert(sum <= used);
			if
			:: quiet -> change_total(sum)
			:: else
			fi;
			CHECK
		:: else
		fi;
		seen_used = 0;
		sum = 0;
		quiet = false;
		looks[me] = false;
		total_changed[me] = false
	}
}

proctype helper()
{
	byte duties = DUTIES, s, n;
	byte seen_used, seen_doubts, sum;

	do
	:: atomic {
			duties > 0 && (CAN_REAP(0) || CAN_REAP(1));
			if
			:: CAN_REAP(0) -> s = 0
			:: CAN_REAP(1) -> s = 1
			fi;
			locked[s] = true;
			duties--
		};
		reap()
	:: atomic { duties > 0 && IN_DOUBT -> duties-- };
		settle(0)
	:: break
	od;
	atomic { running--; duties = 0 }
}

proctype settler()
{
	byte seen_used, seen_doubts, sum;
#ifdef AUDIT
	bool quiet;

	audit(1);
#else

	if
	:: IN_DOUBT -> settle(1)
	:: true
	fi;
#endif
	running--
}

/* When all stand still, one more process reaps and settles; it does not die. */
proctype last()
{
	byte s;

	atomic {
		running == 0;
		for (s : 0 .. SLOTS - 1) {
			if
			:: CAN_REAP(s) ->
				used = used - held[s];
				held[s] = 0;
				if
				:: way[s] > 0 -> doubts++; way[s] = 0
				:: else
				fi;
				live[s] = false
			:: else
			fi;
			assert(way[s] == 0)
		}
		if
		:: IN_DOUBT -> used = SUM
		:: else
		fi;
		assert(used == SUM)
	}
}

init
{
	atomic {
		running = 4;
		run tenant(0, 2, 2);
		run tenant(1, 1, 1);
		run helper();
		run settler();
		run last()
	}
}
