/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Promise, lock, binding and Allocate (docs/scheduler.md, decision 0027), for every interleaving.
 *
 * Two replicas of the scheduler, and each believes at any time that it leads: one takes over from the other, which is dead (it
 * takes no further step), stands still, or has not noticed yet. Two pods each want a device; the devices are on one node, or
 * each on its own (NODES), with a device plugin each. A call is answered, refused, or unanswered: then the server carries it out at
 * any later moment, or never, and the caller goes on without it. That holds for bindings, and where it is said for locks and their
 * removal (LATE_LOCKS), or for promises and theirs (LATE_PROMISES). A replica hears of each change at any later moment.
 *
 * A version of an object is known, or a call names it, until the object changes: a flag says so. The lock's text says for which
 * pod it is and who has set it. Promises of others do not count here, and the lock of a pod that is not bound is too old at any
 * moment: they make faults rarer, and are not what keeps them out.
 *
 * No device is bound to two pods. A plugin is asked for the pod whose lock the node has, and finds the devices that its
 * binding has brought.
 */
/* run: -DNODES=1 -DDEVICES=1 -DROUNDS=2 */
/* run: -DNODES=1 -DDEVICES=2 -DLATE_LOCKS */
/* run: -DNODES=1 -DDEVICES=2 -DLATE_PROMISES */
/* run: -DNODES=2 -DDEVICES=2 */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DLATE_LOCKS -DMUTANT_LOCK_UNCONDITIONAL */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DLATE_LOCKS -DMUTANT_UNLOCK_UNCONDITIONAL */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DLATE_PROMISES -DMUTANT_WRITTEN_UNCONDITIONALLY */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_BINDING_WITHOUT_VERSION */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_GIVEN_UP_AS_IT_IS */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_TAKEN_OVER_AS_IT_IS */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_JUDGED_ANOTHER */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_VERSION_AFTER_LOCK */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_PODS_NOT_READ */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_READ_WITHOUT_LOCK */
/* run-must-fail: -DNODES=1 -DDEVICES=1 -DMUTANT_DECIDED_BEFORE */

#define PODS	 2
#define REPLICAS 2

/* Of Filter and Bind, for the first replica; the other has one. */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define TRIES 1 /* more of the lock, in one Bind */

#if NODES == 2
#define NODE(device) (device - 1)
#else
#define NODE(device) 0
#endif

#define NONE 0 /* pods and devices are counted from 1 in what may be none */

#define WAITS	   0
#define ALLOCATING 1
#define RUNS	   2
#define OVER	   3

/* What the API server has. */
byte phase[PODS];
byte bound[PODS]; /* to a device, as the binding said */
byte says[PODS];  /* its annotations: a device */
byte lock[NODES]; /* the pod */
byte lock_by[NODES];

/* An unanswered call. */
typedef call {
	byte pod, device; /* NONE: there is no call; a promise of NONE is one that is removed */
	bool is_current;  /* the object is at the version that it names */
};
call binding[REPLICAS], promise[REPLICAS], locking[REPLICAS], unlocking[REPLICAS];

/* What a replica knows. */
typedef knowledge {
	byte kept[PODS];       /* a device, by a promise of its own */
	byte booked[PODS];     /* one that a bound pod has */
	bool is_settled[PODS]; /* it is bound, or over */
	bool is_outdated[PODS]; /* another replica has bound to the node since the promise */
	bool knows[PODS];      /* the pod's version */
	bool has_news[NODES];  /* another has locked the node, and that is on its way here */
	bool is_listed[NODES], is_verified[NODES]; /* as in cluster.h */
	bool has_judged;       /* and the node has the same lock still */
};
knowledge its[REPLICAS];
bool has_begun; /* the first replica, with the first pod: it is the same with the others */
bool is_over[REPLICAS]; /* it does nothing more */

#define IS_BOUND(q)    (phase[q] == ALLOCATING || phase[q] == RUNS)
#define HOLDS(q)       (IS_BOUND(q) -> bound[q] : NONE)
#define IS_NEWS(q)     (phase[q] != WAITS && (!its[s].is_settled[q] || its[s].booked[q] != HOLDS(q)))
#define TAKES(q, d)    (its[s].kept[q] == d || its[s].booked[q] == d)
#define IS_ON(call, n) (call.pod != NONE && NODE(call.device) == n)

inline change_pod(q)
{
	its[0].knows[q] = false;
	its[1].knows[q] = false;
	binding[0].is_current = binding[0].is_current && binding[0].pod != q + 1;
	binding[1].is_current = binding[1].is_current && binding[1].pod != q + 1;
	promise[0].is_current = promise[0].is_current && promise[0].pod != q + 1;
	promise[1].is_current = promise[1].is_current && promise[1].pod != q + 1
}

inline change_node(m)
{
	its[0].has_judged = false; /* one judges one node at a time; with two, at worst again */
	its[1].has_judged = false;
	locking[0].is_current = locking[0].is_current && !IS_ON(locking[0], m);
	locking[1].is_current = locking[1].is_current && !IS_ON(locking[1], m);
	unlocking[0].is_current = unlocking[0].is_current && !IS_ON(unlocking[0], m);
	unlocking[1].is_current = unlocking[1].is_current && !IS_ON(unlocking[1], m)
}

inline end_call(c)
{
	c.pod = NONE;
	c.device = NONE;
	c.is_current = false
}

inline hear_node(r, m)
{
	if
	:: its[r].has_news[m] ->
		its[r].has_news[m] = false;
		its[r].is_listed[m] = false;
		its[r].is_verified[m] = false
	:: else
	fi
}

inline settle(r, q)
{
	its[r].kept[q] = NONE;
	its[r].is_outdated[q] = false;
	its[r].is_settled[q] = true
}

inline forget(q)
{
	settle(s, q);
	its[s].booked[q] = NONE
}

inline hear_pod(r, q)
{
	if
	:: phase[q] == WAITS
	:: phase[q] == OVER ->
		its[r].booked[q] = NONE;
		settle(r, q)
	:: else ->
		if
		:: its[r].booked[q] != bound[q] && its[r].kept[q] != bound[q] &&
		   its[r].kept[1 - q] != NONE && NODE(its[r].kept[1 - q]) == NODE(bound[q]) ->
			its[r].is_outdated[1 - q] = true
		:: else
		fi;
		its[r].booked[q] = bound[q];
		settle(r, q)
	fi
}

inline set_lock(r, q, m)
{
	change_node(m);
	lock[m] = q + 1;
	lock_by[m] = r;
	its[1 - r].has_news[m] = true
}

inline remove_lock(m)
{
	change_node(m);
	lock[m] = NONE;
	lock_by[m] = 0
}

inline be_bound(q, to)
{
	change_pod(q);
	phase[q] = ALLOCATING;
	bound[q] = to;
	says[q] = to;
	assert(HOLDS(0) == NONE || HOLDS(0) != HOLDS(1))
}

inline write(q, to)
{
	change_pod(q);
	says[q] = to
}

/* Promises are written, and removed, at the version that is known. */
inline write_or_send(to)
{
	if
	:: phase[p] == WAITS -> write(p, to); its[s].knows[p] = true
#ifdef LATE_PROMISES
	:: its[s].knows[p] && promise[s].pod == NONE ->
		promise[s].pod = p + 1;
		promise[s].device = to;
		promise[s].is_current = true;
		its[s].kept[p] = NONE
#endif
	:: true
	fi
}

#define HAS_LOCK(q, m) (lock[m] == q + 1 && lock_by[m] == s)

/* Whose last round it was needs to know nothing. */
inline end_round()
{
	is_unanswered = false;
	tries = 0;
	n = 0;
	p = 0;
	if
	:: rounds == 0 -> forget(0); forget(1); is_over[s] = true
	:: else
	fi
}

#ifdef MUTANT_DECIDED_BEFORE
#define CAN_SEND (its[s].kept[p] != NONE)
#else
#define CAN_SEND (its[s].kept[p] != NONE && !its[s].is_outdated[p])
#endif

proctype replica(byte s)
{
	byte p, n, rounds = (s == 0 -> ROUNDS : 1), tries;
	bool is_unanswered;

end:
	do
	:: atomic { rounds > 0 && (has_begun || s == 0) -> rounds--;
		if
		:: p = 0
		:: has_begun -> p = 1
		fi;
		has_begun = true;
		if
		:: its[s].is_settled[p] -> goto next
		:: !its[s].is_settled[p] && its[s].kept[p] != NONE -> goto binds
		:: !its[s].is_settled[p]
		fi;
		/* Filter: what was promised before is given back. */
		its[s].kept[p] = NONE;
		its[s].is_outdated[p] = false;
		its[s].knows[p] = (phase[p] == WAITS);
		if
		:: !TAKES(1 - p, 1) -> its[s].kept[p] = 1
#if DEVICES == 2
		:: !TAKES(1 - p, 2) -> its[s].kept[p] = 2
#endif
		:: else -> goto next
		fi;
		if
		:: goto binds
		:: goto next
		:: true
		fi };
		atomic { write_or_send(its[s].kept[p]);
			if
			:: its[s].kept[p] != NONE -> goto binds
			:: goto next
			fi };
	binds:
		atomic {
			if
			:: its[s].kept[p] == NONE -> goto next
			:: else -> n = NODE(its[s].kept[p]); tries = TRIES
			fi };
	locks:
		if
		:: atomic { lock[n] == NONE || HAS_LOCK(p, n) -> hear_node(s, n); set_lock(s, p, n) }
#ifdef LATE_LOCKS
		:: atomic { lock[n] == NONE && locking[s].pod == NONE ->
			locking[s].pod = p + 1; locking[s].device = its[s].kept[p]; locking[s].is_current = true; goto failed }
#endif
		/* a lock that is nobody's any more */
		:: atomic { lock[n] != NONE && lock[n] != p + 1 && (phase[lock[n] - 1] == RUNS || phase[lock[n] - 1] == OVER) ->
			hear_node(s, n); set_lock(s, p, n) }
		/* that of a pod which is not bound: it is given another version first */
		:: atomic { lock[n] != NONE && !HAS_LOCK(p, n) && phase[lock[n] - 1] == WAITS ->
#ifndef MUTANT_TAKEN_OVER_AS_IT_IS
			change_pod((lock[n] - 1));
#endif
			its[s].has_judged = true };
			if
#ifdef MUTANT_JUDGED_ANOTHER
			:: atomic { true -> its[s].has_judged = false; hear_node(s, n); set_lock(s, p, n) }
#else
			:: atomic { its[s].has_judged -> its[s].has_judged = false; hear_node(s, n); set_lock(s, p, n) }
			:: atomic { !its[s].has_judged && tries > 0 -> tries--; goto locks }
#endif
			:: atomic { true -> its[s].has_judged = false; goto failed }
			fi
		:: goto failed
		fi;
#ifndef MUTANT_PODS_NOT_READ
		/* Others may have bound to the node before. */
		if
		:: its[s].is_verified[n]
#ifdef MUTANT_READ_WITHOUT_LOCK
		:: atomic { !its[s].is_verified[n] &&
#else
		:: atomic { !its[s].is_verified[n] && (HAS_LOCK(p, n) || its[s].has_news[n]) && /* as far as is known */
#endif
			(!IS_BOUND(0) || NODE(bound[0]) != n || (its[s].booked[0] != NONE && its[s].kept[0] == NONE)) &&
			(!IS_BOUND(1) || NODE(bound[1]) != n || (its[s].booked[1] != NONE && its[s].kept[1] == NONE)) ->
			its[s].is_verified[n] = true }
		:: else -> goto failed
		fi;
#endif
	sends:
		/* The binding names the version of the pod that was known before the lock. */
		if
		:: atomic { CAN_SEND && its[s].knows[p] -> be_bound(p, its[s].kept[p]); goto succeeded }
		:: atomic { CAN_SEND && its[s].knows[p] && binding[s].pod == NONE ->
			binding[s].pod = p + 1; binding[s].device = its[s].kept[p]; binding[s].is_current = true;
			is_unanswered = true }
		:: CAN_SEND && !its[s].knows[p] /* a conflict */
		:: goto failed
		fi;
	confirms:
		if
		:: phase[p] != WAITS && NODE(bound[p]) == n -> goto succeeded
		:: phase[p] != WAITS && NODE(bound[p]) != n -> goto failed
#ifdef MUTANT_GIVEN_UP_AS_IT_IS
		:: phase[p] == WAITS && is_unanswered -> goto failed
#else
		/* it is given another version, and the binding finds that */
		:: atomic { phase[p] == WAITS && is_unanswered -> change_pod(p); goto failed }
#endif
		:: atomic { phase[p] == WAITS && !is_unanswered && tries > 0 -> tries--; its[s].knows[p] = true;
#ifdef MUTANT_VERSION_AFTER_LOCK
			goto sends }
#else
			goto locks }
#endif
		:: phase[p] == WAITS && !is_unanswered && tries == 0 -> goto failed
		fi;
	succeeded:
		atomic {
			if
			:: its[s].kept[p] != NONE -> its[s].booked[p] = its[s].kept[p]
			:: else
			fi;
			settle(s, p);
			goto next };
	failed:
		atomic {
			if
			:: HAS_LOCK(p, n) -> remove_lock(n)
#ifdef LATE_LOCKS
			:: HAS_LOCK(p, n) && unlocking[s].pod == NONE ->
				unlocking[s].pod = p + 1; unlocking[s].device = n + 1; unlocking[s].is_current = true
#endif
			:: true
			fi;
			its[s].kept[p] = NONE;
			its[s].is_outdated[p] = false;
			write_or_send(NONE) };
	next:
		atomic { end_round() }
	od
}

/* Unanswered calls are carried out at some time, or never; and what there is to hear is heard. */
proctype server(byte s)
{
end:
	do
#ifdef MUTANT_BINDING_WITHOUT_VERSION
	:: d_step { binding[s].pod != NONE && phase[binding[s].pod - 1] == WAITS ->
#else
	:: d_step { binding[s].pod != NONE && binding[s].is_current ->
#endif
		be_bound((binding[s].pod - 1), binding[s].device); end_call(binding[s]) }
#ifndef MUTANT_BINDING_WITHOUT_VERSION
	:: d_step { binding[s].pod != NONE && !binding[s].is_current -> end_call(binding[s]) }
#endif
#ifdef MUTANT_WRITTEN_UNCONDITIONALLY
	:: d_step { promise[s].pod != NONE ->
#else
	:: d_step { promise[s].pod != NONE && promise[s].is_current ->
#endif
		write((promise[s].pod - 1), promise[s].device); end_call(promise[s]) }
	:: d_step { promise[s].pod != NONE -> end_call(promise[s]) }
#ifdef MUTANT_LOCK_UNCONDITIONAL
	:: d_step { locking[s].pod != NONE ->
#else
	:: d_step { locking[s].pod != NONE && locking[s].is_current ->
#endif
		set_lock(s, (locking[s].pod - 1), NODE(locking[s].device)); end_call(locking[s]) }
	:: d_step { locking[s].pod != NONE -> end_call(locking[s]) }
#ifdef MUTANT_UNLOCK_UNCONDITIONAL
	:: d_step { unlocking[s].pod != NONE ->
#else
	:: d_step { unlocking[s].pod != NONE && unlocking[s].is_current ->
#endif
		remove_lock((unlocking[s].device - 1)); end_call(unlocking[s]) }
	:: d_step { unlocking[s].pod != NONE -> end_call(unlocking[s]) }
	:: d_step { !is_over[s] && IS_NEWS(0) -> hear_pod(s, 0) }
	:: d_step { !is_over[s] && IS_NEWS(1) -> hear_pod(s, 1) }
	:: d_step { !is_over[s] && its[s].has_news[0] -> hear_node(s, 0) }
	/* all pods are listed */
	:: d_step { !is_over[s] && !its[s].is_verified[0] && (its[s].has_news[0] || lock[0] == NONE) -> its[s].is_listed[0] = true }
	:: d_step { !is_over[s] && its[s].is_listed[0] -> hear_pod(s, 0); hear_pod(s, 1);
		its[s].is_verified[0] = true; its[s].is_listed[0] = false }
#if NODES == 2
	:: d_step { !is_over[s] && its[s].has_news[1] -> hear_node(s, 1) }
#endif
	od
}

/* The plugin of a node, which the kubelet asks for a pod that is bound there; and the pod's life. */
proctype plugin(byte n)
{
	byte p;

end:
	do
	:: d_step { phase[0] == ALLOCATING && NODE(bound[0]) == n -> p = 0; assert(lock[n] == p + 1 && says[p] == bound[p]); phase[p] = RUNS };
		if
		:: d_step { lock[n] == p + 1 -> remove_lock(n) }
		:: lock[n] != p + 1
		fi
	:: d_step { phase[1] == ALLOCATING && NODE(bound[1]) == n -> p = 1; assert(lock[n] == p + 1 && says[p] == bound[p]); phase[p] = RUNS };
		if
		:: d_step { lock[n] == p + 1 -> remove_lock(n) }
		:: lock[n] != p + 1
		fi
	:: d_step { phase[0] == RUNS && NODE(bound[0]) == n -> phase[0] = OVER }
	:: d_step { phase[1] == RUNS && NODE(bound[1]) == n -> phase[1] = OVER }
	od
}

init
{
	atomic {
		run replica(0);
		run replica(1);
		run server(0);
		run server(1);
		run plugin(0);
#if NODES == 2
		run plugin(1);
#endif
	}
}
