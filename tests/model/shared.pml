/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared allocations (src/region/shared.c, and what src/region/ledger.c does for them), for every interleaving.
 *
 * The maker charges a unit, makes a shared allocation of it, may have it grow by another one that it has charged, and has that
 * back, and lets it go; the user holds the shared allocation and lets it go. Both may die instead of any step. A helper reaps
 * them, sweeps and settles, while a settler settles a doubt of before. Steps are as in ledger.pml. A holder of the shared allocations' lock that dies gives it back.
 */
/* run: */
/* run-must-fail: -DMUTANT_MOVE_UNCOUNTED */
/* run-must-fail: -DMUTANT_END_UNCOUNTED */
/* run-must-fail: -DMUTANT_SHRINK_UNCOUNTED */
/* run-must-fail: -DMUTANT_SHARED_FIRST */
/* run-must-fail: -DMUTANT_FREE_FIRST */
/* run-must-fail: -DMUTANT_NO_BIT_FIRST */

#define MAKER	 0
#define USER	 1
#define HELPER	 2
#define SLOTS	 3
#define SETTLERS 2

byte used;
bool total_changed[SETTLERS], looks[SETTLERS];
byte held[SLOTS], way[SLOTS];
byte shared;	   /* its units; 0: free */
bool has_key;
bool bit_of[SLOTS]; /* holders */
bool shared_locked;
byte doubts = 1, settled;
bool live[SLOTS], locked[SLOTS];
byte running;

#define CAN_REAP(s) (live[s] && !locked[s])
#define IN_DOUBT  (doubts != settled)
#define IS_UNHELD (!bit_of[0] && !bit_of[1] && !bit_of[2])
#define SUM	  (held[0] + held[1] + held[2] + shared)
#define CHECK	  assert(SUM <= used)

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

/* One step, or death. */
#define STEP(what)      \
	if              \
	:: what         \
	:: goto dead    \
	fi

/* end_if_unheld() and ledger_end_shared(), with slot s, under the lock */
inline end_shared(s)
{
	if
	:: d_step { shared > 0 && IS_UNHELD -> m = shared; way[s] = way[s] + m };
#ifndef MUTANT_END_UNCOUNTED
		STEP(d_step { change_total(used) });
#endif
#ifdef MUTANT_FREE_FIRST
		STEP(d_step { lower(m); CHECK });
		STEP(d_step { shared = 0; CHECK });
#else
		STEP(d_step { shared = 0; CHECK });
		STEP(d_step { lower(m); CHECK });
#endif
		STEP(d_step { way[s] = way[s] - m; m = 0 })
	:: atomic { !(shared > 0 && IS_UNHELD) -> skip }
	:: goto dead
	fi
}

inline let_go(s)
{
	STEP(bit_of[s] = false);
	STEP(atomic { !shared_locked -> shared_locked = true; has_lock = true });
	end_shared(s);
	STEP(atomic { shared_locked = false; has_lock = false })
}

/* A unit of the slot's becomes the shared allocation's: shared_make(), shared_grow(). */
inline move_to_shared()
{
	STEP(d_step { held[MAKER]--; way[MAKER]++; CHECK });
#ifndef MUTANT_MOVE_UNCOUNTED
	STEP(d_step { change_total(used) });
#endif
	STEP(d_step { shared++; CHECK })
}

/* shared_grow() of a unit that is charged before, shared_shrink(), and the unit is given back. */
inline grow_and_shrink()
{
	STEP(way[MAKER]++);
	STEP(d_step { change_total(used + 1); CHECK });
	STEP(d_step { held[MAKER]++; way[MAKER]--; CHECK });
	move_to_shared();
	STEP(way[MAKER]--);
	STEP(way[MAKER]++);
#ifndef MUTANT_SHRINK_UNCOUNTED
	STEP(d_step { change_total(used) });
#endif
	STEP(d_step { shared--; CHECK });
	STEP(d_step { held[MAKER]++; way[MAKER]--; CHECK });
	STEP(d_step { held[MAKER]--; way[MAKER]++; CHECK });
	STEP(d_step { lower(1); CHECK });
	STEP(way[MAKER]--)
}

proctype maker()
{
	bool has_lock;
	byte m;

	atomic { live[MAKER] = true; locked[MAKER] = true };
	STEP(way[MAKER]++);
	STEP(d_step { change_total(used + 1); CHECK });
	STEP(d_step { held[MAKER]++; way[MAKER]--; CHECK });
	/* shared_make() */
	STEP(atomic { !shared_locked -> shared_locked = true; has_lock = true });
#ifndef MUTANT_NO_BIT_FIRST
	STEP(bit_of[MAKER] = true);
#endif
	move_to_shared();
#ifdef MUTANT_NO_BIT_FIRST
	STEP(atomic { shared_locked = false; has_lock = false });
	STEP(bit_of[MAKER] = true);
#endif
	STEP(way[MAKER]--);
	STEP(has_key = true);
	STEP(atomic { shared_locked = (shared_locked && !has_lock); has_lock = false });
	assert(shared == 1 && bit_of[MAKER]);
	if
	:: true
	:: grow_and_shrink()
	fi;
	if
	:: true
	:: goto idle
	fi;
	let_go(MAKER);
	goto idle;
dead:
	atomic {
		locked[MAKER] = false;
		if
		:: has_lock -> shared_locked = false
		:: else
		fi
	};
idle:
	running--
}

proctype user()
{
	bool has_lock, is_found;
	byte m;

	STEP(atomic { !shared_locked -> shared_locked = true; has_lock = true });
	STEP(d_step { is_found = (shared > 0 && has_key); bit_of[USER] = is_found });
	STEP(atomic { shared_locked = false; has_lock = false });
	if
	:: !is_found -> goto idle
	:: is_found
	fi;
	assert(shared > 0);
	if
	:: true
	:: goto idle
	fi;
	let_go(USER);
	goto idle;
dead:
	atomic {
		locked[USER] = false;
		if
		:: has_lock -> shared_locked = false
		:: else
		fi
	};
idle:
	running--
}

inline read_slot(s)
{
	if
	:: d_step { way[s] == 0 -> sum = sum + held[s] }
	:: way[s] > 0 -> goto given_up
	fi
}

inline settle(me)
{
	seen_doubts = doubts;
	d_step { looks[me] = true; total_changed[me] = false };
#ifdef MUTANT_SHARED_FIRST
	sum = sum + shared;
#endif
	read_slot(0);
	read_slot(1);
	read_slot(2);
#ifndef MUTANT_SHARED_FIRST
	sum = sum + shared;
#endif
	if
	:: d_step { !total_changed[me] -> change_total(sum); CHECK };
		d_step {
			if
			:: settled < seen_doubts -> settled = seen_doubts
			:: else
			fi
		}
	:: else
	fi;
given_up:
	atomic {
		seen_doubts = 0;
		sum = 0;
		looks[me] = false;
		total_changed[me] = false
	}
}

/* clear() of a dead slot, shared allocations first */
inline reap(s)
{
	bit_of[s] = false;
	if
	:: d_step { held[s] > 0 -> n = held[s]; held[s] = 0; way[s] = way[s] + n; CHECK };
		d_step { lower(n); CHECK };
		d_step { way[s] = way[s] - n; n = 0 }
	:: held[s] == 0
	fi;
	if
	:: way[s] > 0 -> doubts++; way[s] = 0
	:: else
	fi;
	live[s] = false
}

proctype helper()
{
	byte duties = 3, n, m, seen_doubts, sum;
	bool has_lock;

	live[HELPER] = true;
	locked[HELPER] = true;
	do
	:: atomic { duties > 0 && CAN_REAP(MAKER) -> duties--; locked[MAKER] = true };
		reap(MAKER);
		locked[MAKER] = false
	:: atomic { duties > 0 && CAN_REAP(USER) -> duties--; locked[USER] = true };
		reap(USER);
		locked[USER] = false
	:: atomic { duties > 0 && shared > 0 && IS_UNHELD && !shared_locked ->
			duties--;
			shared_locked = true;
			has_lock = true
		};
		end_shared(HELPER);
		atomic { shared_locked = false; has_lock = false }
	:: atomic { duties > 0 && IN_DOUBT -> duties-- };
		settle(0)
	:: break
	od;
	goto idle;
dead:
	atomic {
		locked[HELPER] = false;
		if
		:: has_lock -> shared_locked = false
		:: else
		fi
	};
idle:
	running--
}

proctype settler()
{
	byte seen_doubts, sum;

	settle(1);
	running--
}

/* When all stand still, one more process reaps, sweeps and settles. */
proctype last()
{
	byte s;

	atomic {
		running == 0;
		for (s : 0 .. SLOTS - 1) {
			if
			:: CAN_REAP(s) ->
				bit_of[s] = false;
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
		assert(!shared_locked);
		if
		:: shared > 0 && IS_UNHELD -> used = used - shared; shared = 0
		:: else
		fi;
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
		/* The user holds a unit besides, for which a total that is too low shows. */
		held[USER] = 1;
		used = 1;
		live[USER] = true;
		locked[USER] = true;
		run maker();
		run user();
		run helper();
		run settler();
		run last()
	}
}
