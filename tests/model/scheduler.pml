/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promise, lock, binding and Allocate (docs/scheduler.md, decision 0027), for every interleaving.
 *
 * Two replicas of the scheduler, of which one leads; it loses the lead, or dies, at any moment, and the other goes on. Two pods
 * each want a device; the devices are on one node, or each on its own (NODES), with a device plugin each. Calls are lost,
 * refused, or carried out and not answered. Each replica hears of each pod's changes at any later moment.
 *
 * No device is bound to two pods. A plugin is asked for the pod whose lock the node has, and finds the devices that its
 * binding has brought.
 */
/* run: -DNODES=1 -DDEVICES=1 */
/* run: -DNODES=1 -DDEVICES=2 */
/* run: -DNODES=2 -DDEVICES=2 */
/* run-must-fail: -DNODES=1 -DDEVICES=2 -DMUTANT_LOCK_UNCONDITIONAL */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_UNLOCK_NOT_AWAITED */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_PROMISE_REMOVED_LATE */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_TWO_LEADERS */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_NOT_LISTED_AGAIN */

#define PODS   2

/* of Filter and Bind, for each replica */
#if DEVICES == 1
#define ROUNDS 2
#else
#define ROUNDS 1
#endif

#if NODES == 2
#define NODE(device) (device)
#else
#define NODE(device) 0
#endif

#define NONE 0 /* pods and devices are counted from 1 in what may be none */

#define WAITS	   0
#define ALLOCATING 1
#define RUNS	   2
#define OVER	   3

/* What the API server has. */
byte promised[PODS]; /* a device, by the annotations */
byte phase[PODS];
byte bound[PODS]; /* to a device, as the binding said */
byte lock[NODES];
byte version[NODES];

/* On their way to the server. */
bool clearing[PODS];	/* the removal of a pod's annotations */
byte unlocking[NODES]; /* that of a lock, where it is still this pod's */

/* What each replica knows: of pods as it has heard last, and what it keeps for those that are not bound. */
typedef knowledge {
	byte kept[PODS], promised[PODS], phase[PODS];
	bool is_own[PODS]
};
knowledge known[2];
byte leader;
bool has_listed[2], is_dead[2];
bool is_deciding;      /* the first leader is in a Filter */
bool is_binding[PODS]; /* somebody alive is between its lock and its end */

#define LEADS (leader == s)

#define TAKES(q, d)                                            \
	((known[s].phase[q] == WAITS && known[s].kept[q] == d) || \
		(known[s].phase[q] != WAITS && known[s].phase[q] != OVER && known[s].promised[q] == d))

inline hear(s, p)
{
	known[s].phase[p] = phase[p];
	known[s].promised[p] = promised[p];
	if
	:: phase[p] != WAITS -> known[s].kept[p] = NONE; known[s].is_own[p] = false
	:: phase[p] == WAITS && !known[s].is_own[p] -> known[s].kept[p] = promised[p]
	:: else
	fi
}

inline give_back()
{
	known[s].kept[p] = NONE;
	known[s].is_own[p] = false
}

#define DECIDED is_deciding = (is_deciding && s == 1)

/* The devices of pods that were bound to the same one. */
#define HOLDS(q) ((phase[q] == ALLOCATING || phase[q] == RUNS) -> bound[q] : NONE)
#define CHECK	 assert(HOLDS(0) == NONE || HOLDS(0) != HOLDS(1))

proctype replica(byte s)
{
	byte p, rounds = ROUNDS, seen, device, n;

	{
		do
		/* It leads: all pods are read again. Whoever leads no more keeps nothing of its own. */
		:: d_step { LEADS && !has_listed[s] -> has_listed[s] = true;
#ifndef MUTANT_NOT_LISTED_AGAIN
			hear(s, 0); hear(s, 1)
#endif
		   }
		:: d_step { LEADS && has_listed[s] && rounds > 0 -> rounds--; p = 0 };
			if
			:: p = 0
			:: p = 1
			fi;
			if
			:: known[s].phase[p] != WAITS -> goto next
			:: d_step { LEADS && known[s].phase[p] == WAITS -> is_deciding = (s == 0); give_back() }
			:: !LEADS -> goto next
			fi;
#ifndef MUTANT_PROMISE_REMOVED_LATE
			!clearing[p];
#endif
			/* Filter */
			if
			:: d_step { !TAKES(1 - p, 1) -> device = 1 }
#if DEVICES == 2
			:: d_step { !TAKES(1 - p, 2) -> device = 2 }
#endif
			:: else -> d_step { clearing[p] = true; DECIDED }; goto next
			fi;
			d_step { known[s].kept[p] = device; known[s].is_own[p] = true };
			if
			:: d_step { promised[p] = device; DECIDED }
			:: d_step { give_back(); clearing[p] = true; DECIDED }; goto next
			:: d_step { promised[p] = device; give_back(); clearing[p] = true; DECIDED }; goto next
			fi;
			/* Bind: the lock, or its own from before */
			n = NODE(device - 1);
			if
#ifdef MUTANT_LOCK_UNCONDITIONAL
			:: d_step { lock[n] == NONE -> seen = version[n] };
				d_step { is_binding[p] = true; lock[n] = p + 1; version[n]++ }
#else
			:: d_step { lock[n] == NONE -> seen = version[n] };
				if
#ifdef MUTANT_TWO_LEADERS
				:: d_step { version[n] == seen && lock[n] == NONE ->
#else
				:: d_step { LEADS && version[n] == seen ->
#endif
					is_binding[p] = true; lock[n] = p + 1; version[n]++ }
				:: else -> goto failed
				fi
#endif
			:: d_step { lock[n] == p + 1 -> is_binding[p] = true }
			/* the pod that has it is not about to be bound, or needs it no more */
			:: d_step { lock[n] != NONE && lock[n] != p + 1 && !is_binding[lock[n] - 1] &&
				    phase[lock[n] - 1] != ALLOCATING && LEADS ->
				   is_binding[p] = true; lock[n] = p + 1; version[n]++ }
			:: goto failed
			fi;
			if
#ifdef MUTANT_TWO_LEADERS
			:: d_step { phase[p] == WAITS ->
#else
			:: d_step { LEADS && phase[p] == WAITS ->
#endif
				phase[p] = ALLOCATING; bound[p] = device; promised[p] = device;
				is_binding[p] = false; hear(s, p); CHECK }
				goto next
			:: skip
			fi;
		failed:
			skip;
			/* Its own lock, the promise and the annotations are taken back; by a replica that leads no more, none of them. */
			if
			:: d_step { LEADS && phase[p] == WAITS && is_binding[p] -> unlocking[n] = p + 1 };
#ifndef MUTANT_UNLOCK_NOT_AWAITED
				unlocking[n] == NONE
#endif
			:: else
			fi;
			d_step { is_binding[p] = false; give_back();
				if
				:: LEADS && phase[p] == WAITS -> clearing[p] = true
				:: else
				fi }
		next:
			skip;
			d_step { device = 0; seen = 0; n = 0 }
		od
	} unless { is_dead[s] }
}

/* The removals that were sent are carried out at some time, or, the sender being dead, never. */
proctype server()
{
	do
	:: d_step { clearing[0] -> promised[0] = NONE; clearing[0] = false }
	:: d_step { clearing[1] -> promised[1] = NONE; clearing[1] = false }
	:: d_step { unlocking[0] != NONE ->
		if
		:: lock[0] == unlocking[0] -> lock[0] = NONE; version[0]++
		:: else
		fi;
		unlocking[0] = NONE }
#if NODES == 2
	:: d_step { unlocking[1] != NONE ->
		if
		:: lock[1] == unlocking[1] -> lock[1] = NONE; version[1]++
		:: else
		fi;
		unlocking[1] = NONE }
#endif
	:: d_step { hear(0, 0) }
	:: d_step { hear(0, 1) }
	:: d_step { hear(1, 0) }
	:: d_step { hear(1, 1) }
	od
}

inline allocate()
{
	assert(lock[n] == p + 1);
	assert(promised[p] == bound[p]);
	phase[p] = RUNS
}

/* The phase was written before. */
inline unlock()
{
	if
	:: d_step { lock[n] == p + 1 -> lock[n] = NONE; version[n]++ }
	:: lock[n] != p + 1
	fi
}

/* The plugin of a node, which the kubelet asks for a pod that is bound there; and the pod's life. */
proctype plugin(byte n)
{
	byte p;

	do
	:: d_step { phase[0] == ALLOCATING && NODE(bound[0] - 1) == n -> p = 0; allocate() }; unlock()
	:: d_step { phase[1] == ALLOCATING && NODE(bound[1] - 1) == n -> p = 1; allocate() }; unlock()
	:: d_step { phase[0] == RUNS && NODE(bound[0] - 1) == n -> phase[0] = OVER }
	:: d_step { phase[1] == RUNS && NODE(bound[1] - 1) == n -> phase[1] = OVER }
	od
}

#if NODES == 2
#define NOTHING_UNDER_WAY (!clearing[0] && !clearing[1] && !unlocking[0] && !unlocking[1] && !is_deciding)
#else
#define NOTHING_UNDER_WAY (!clearing[0] && !clearing[1] && !unlocking[0] && !is_deciding)
#endif

/*
 * The lease changes hands once; the one before is dead, or only waits with a bind. It has stopped to renew before, and the lease
 * outlasts its Filter and its calls.
 */
proctype lease()
{
	if
	:: d_step { is_dead[0] = true; is_binding[0] = false; is_binding[1] = false; is_deciding = false }
	:: true
	fi;
#ifdef MUTANT_TWO_LEADERS
	leader = 1
#else
	d_step { NOTHING_UNDER_WAY -> leader = 1 }
#endif
}

init
{
	atomic {
		run replica(0);
		run replica(1);
		run server();
		run plugin(0);
#if NODES == 2
		run plugin(1);
#endif
		run lease()
	}
}
