/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of turns, and which slices are believed.
 *
 * A record says a state and until when it counts. Its reader takes that with doubt: a turn that
 * stands in the way of one wish for longer than the reader's patience is not believed any more, and
 * then stands in nobody's way. All records of the owner for whom the reader waited longest are not
 * believed for a while, when the reader has had too little. Such a slice may still wish, and be
 * given the turn; but nobody waits for it.
 *
 * A slice that is first in line and does not take a free turn in time has only missed it: its
 * process woke up late, as it may again and again where processors are busy. For such, 0.3 ms are
 * waited each, but not more than a thirty-second of all time, all waiters together; beyond that it
 * is passed over at once, and believed as before.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A waiter's least patience with one turn, and what follows for the honest: they see a waiter after
 * 5 ms at most (turn_record.c), announce 244 ms at most, and end a hold 240 ms after seeing one.
 * Only the work that a turn begins with may be longer: who has had as much waits for as long.
 */
#define TURN_PATIENCE_NS UINT64_C(250000000)
#define TURN_LEASE_NS	 UINT64_C(244000000)
#define TURN_WANTED_NS	 UINT64_C(240000000)
#define TURN_LONGEST_NS	 UINT64_C(2500000000) /* of such work, and of any patience */

#define TURN_WISH_NS	 UINT64_C(5000000) /* a wish counts so long after it was last said */
#define TURN_CLAIM_NS	 UINT64_C(1000000) /* a claim is a matter of a few us */
#define TURN_CLAIMS_NS	 UINT64_C(4000000) /* who claims for so long takes no turn */
#define TURN_TAKE_NS	 UINT64_C(300000)  /* what the first in line has for taking a free turn */
#define TURN_NEXT_NS	 UINT64_C(50000)   /* and each after it in addition: about a wake-up */
#define TURN_IGNORE_NS	 UINT64_C(1000000000) /* not believed, the first time */
/* And the second time, as each end of it costs the waiters anew; doubled each time from then on. */
#define TURN_IGNORE_AGAIN_NS UINT64_C(4000000000)
#define TURN_IGNORE_MOST_NS  UINT64_C(64000000000) /* at most, and after as long all is forgotten */
#define TURN_REPAY_NS \
	UINT64_C(400000000) /* not believed by a reader that others had much time of */
#define TURN_SUSPECT_NS (TURN_REPAY_NS + TURN_IGNORE_NS)
#define TURN_MISS_NS	(32 * TURN_TAKE_NS) /* a missed turn counts for so long, one after the other */
#define TURN_MISSES	8u /* that count at once, and the next one is not waited for */
#define TURN_RANKS	2u /* of a priority: who is within its cores, and after it who borrows */
#define TURN_RANK_NS	UINT64_C(200000000) /* after such a wait ranks no longer count */
/* The same for who borrows: others have their shares first, also where their kernels are long. */
#define TURN_BORROWS_NS UINT64_C(1000000000)
#define TURN_ROOM_PART	12 /* of its own turns a slice keeps a twelfth free for who goes first */
#define TURN_ROOM_USED	2  /* and half as much as it sees those have the turn */
#define TURN_ROOM_NS	INT64_C(4000000) /* and so much at once at most */
#define TURN_ALIVE_NS \
	UINT64_C(1000000000) /* since the last sign of life, but for a turn that counts */

/* The order matters: from TURN_CLAIM on, a slice stands in the way of others. */
enum turn_state { TURN_FREE, TURN_WANT, TURN_CLAIM, TURN_HOLD };

/* The content of a record. */
struct turn_claim {
	enum turn_state state;
	uint32_t rank;
	uint64_t until_ns;  /* the state counts until then */
	uint64_t ticket_ns; /* since when it wants */
	uint64_t since_ns;  /* when its last turn began */
	uint64_t seen_ns;   /* its last sign of life */
	uint64_t next_ns;   /* when it expects to come again; 0: it does not know */
};

/* One reader's knowledge of another slice's honesty; all zero is a stranger, who is believed. */
struct turn_doubt {
	uint64_t
		way_ns; /* how long the reader waited for it of late, without what it may have and what is excused */
	uint64_t round_ns; /* the same, since the reader last had the device */
	uint64_t excused_ns;
	uint64_t suspect_until_ns; /* who is waited for longest again before is clearly to blame */
	uint64_t in_way_ns; /* for how long it was seen in the way of the reader's present wish */
	uint64_t wish_ns;   /* the ticket of that wish */
	uint64_t turn_ns;   /* when the turn began in which it was last seen */
	uint64_t
		outlasted_ns; /* when the turn began that is not believed any more, nor any before it */
	uint64_t
		blamed_turn_ns; /* the latest begin of a turn that it had said when it was last blamed */
	uint64_t ticket_ns;  /* no earlier one is believed: it was seen not waiting then */
	uint64_t free_ns;    /* it was seen without a turn or a claim then: its turn is no older */
	uint64_t claimed_ns; /* for how long it was seen claiming, since it last held a turn */
	uint64_t ignored_until_ns;
	uint64_t promised_ns; /* the reader makes room for it until then; 0: it does not */
	uint64_t promised_since_ns;
	uint64_t missed_until_ns; /* each turn that it missed counts TURN_MISS_NS, in a row */
	uint32_t ignored_times;
	bool was_in_way, was_claiming;
	bool is_blamed;	   /* was to blame, clearly or not, for what the reader lacks */
	bool is_outlasted; /* there is one */
	bool is_awaited;   /* the reader's present wish waits for it */
	bool has_taken;	   /* the reader gave its last turn back for it, and has had none since */
	bool is_slow;	/* a look at its record has taken long: its page is not touched any more */
	bool is_absent; /* room was made for it in vain, and it has had no turn since */
};

struct turn_peer {
	struct turn_claim claim;
	struct turn_doubt doubt;
	uint64_t owner;	 /* not 0; equal for records that one tenant may have made */
	uint64_t met_ns; /* since when the reader knows of it */
	bool wins_ties;	 /* by its name */
	bool is_alive;	 /* has made itself heard within a second, as noted last */
};

/*
 * What the reader may still keep free of its own turns, for all that say that they are about to
 * come: a part of the time in which it has them, and of that in which those have. All zero at
 * first.
 */
struct turn_room {
	int64_t left_ns;
};

/* The reader's own wish. */
struct turn_wish {
	uint32_t rank;
	uint64_t ticket_ns;
	uint64_t patience_ns; /* for so long the turns of one slice may stand in its way */
};

/* The state in a record, as far as it counts now and its slice is believed. */
enum turn_state turn_order_state(const struct turn_peer *peer, uint64_t now_ns);

/* Whether it is one that is not believed now. */
bool turn_order_is_ignored(const struct turn_peer *peer, uint64_t now_ns);

/*
 * Notes what was just read of a peer. wish: the reader's, NULL where it waits for nothing; elapsed_ns: since
 * its last look.
 */
void turn_order_note(
	struct turn_peer *peer, const struct turn_wish *wish, uint64_t elapsed_ns, uint64_t now_ns);

/* Whether it was clearly to blame before, and that is not forgotten. */
bool turn_order_was_to_blame(const struct turn_peer *peer, uint64_t now_ns);

/* Of what the reader is to have. */
enum turn_lack {
	TURN_LACKS_LITTLE, /* no more than slices cost each other that have long kernels */
	TURN_LACKS,	   /* more, as it may since others were last to blame for it */
	TURN_LACKS_ANEW,   /* more since then */
};

/*
 * The reader has waited for others and had less than its share. No record is believed from now on
 * of the owner for whose records it waited longest: doubled each time where that was for much
 * longer than for others, or, if there is one owner alone, than enough_ns, or twice within
 * TURN_SUSPECT_NS; else for TURN_REPAY_NS, in which the reader has what it could not have. Returns
 * how many records; the time of all begins anew.
 *
 * What the reader lacks may be the doing of who was blamed before, and the owner a slice that
 * waited for that one, too, and has it back: only who was clearly to blame before is blamed again
 * for it, doubled each time. Who was blamed for what the reader lacks waits until that is as much
 * more; anybody else is excused, and TURN_PATIENCE_NS of its time does not count, unless the reader
 * lacks as much more since then. Who was clearly to blame before, and clearly is again, is blamed
 * for little.
 */
unsigned turn_order_blame(struct turn_peer *peers, unsigned count, uint64_t enough_ns,
	enum turn_lack lack, uint64_t now_ns);

/*
 * How long others may have the device for each time that a reader has it, which is to have this
 * part of it: 0 is no promise.
 */
uint64_t turn_order_others_ns(uint64_t served_ns, uint64_t permille);

/*
 * The reader has had the device, and others may have it for others_ns: as much of what it waited
 * for them since it last had it is no offence, of each in proportion. What they leave of it pays
 * for no earlier wait: who took the device for long at once is to blame for that, and not who takes
 * turns with the reader while that has it back.
 */
void turn_order_note_served(struct turn_peer *peers, unsigned count, uint64_t others_ns);

/* The reader has what it is to have: the time of all begins anew. */
void turn_order_forgive(struct turn_peer *peers, unsigned count);

/* The reader waited so long for the peer. */
void turn_order_note_wait(struct turn_doubt *doubt, uint64_t waited_ns);

/* What is known of one record counts for another one, too: the worse of both, and the waits for both. */
void turn_order_inherit(struct turn_doubt *doubt, const struct turn_doubt *from);

/*
 * The first in line did not take a free turn, and the reader did, as others do: so many are alive.
 * A slice that woke up too late does not wait for another whole turn.
 */
void turn_order_note_miss(struct turn_peer *peer, unsigned alive, uint64_t now_ns);

/* Whether nobody waits for it to take a free turn now. */
bool turn_order_is_passed_over(const struct turn_peer *peer, uint64_t now_ns);

struct turn_line {
	int in_way; /* who claims or holds the turn, and of several holders who was to blame before; -1: it is free */
	int first;	  /* who is first in line; -1: the reader */
	unsigned before;  /* how many are before the reader */
	uint64_t wait_ns; /* for how long the reader lets them take the free turn */
};

struct turn_line turn_order_line(const struct turn_peer *peers, unsigned count,
	const struct turn_wish *wish, uint64_t now_ns);

/*
 * Whether a holder of this rank gives its turn back: *ret_waiting says whether anybody waits. When the turn is over it
 * gives way to its own rank or better, before that to better ones, who may also have taken it.
 */
bool turn_order_is_wanted(const struct turn_peer *peers, unsigned count, uint32_t rank,
	bool is_over, uint64_t now_ns, bool *ret_waiting);

/* Whether any of them wants or has the device, by what it says, believed or not. */
bool turn_order_is_contended(const struct turn_peer *peers, unsigned count, uint64_t now_ns);

/* Whether any of them holds the turn. */
bool turn_order_is_held(const struct turn_peer *peers, unsigned count, uint64_t now_ns);

/*
 * Which of them holds a turn beside the reader's own, which began at since_ns, so that the reader
 * is to give way; -1: none: the other one began first, or so long after that that it does not
 * believe the reader's any more. Both would go on as long as they have work. It comes to that where
 * one was to blame for a while. A turn did not begin before its slice was seen without one, nor is
 * it yet to begin: who says so began last. Of a slice that was met since, nobody knows that; the
 * reader gives way to it when its own turn is over (is_over).
 */
int turn_order_taken_by(const struct turn_peer *peers, unsigned count, uint64_t since_ns,
	bool is_over, uint64_t now_ns);

/*
 * Whether one of them still holds a turn that the reader waited for as long as it could, and believes no more: work of both is on the
 * device. Not of an owner who is to blame, nor of a turn for which he was, nor of one that is longer than any or is yet to begin: a record that says for
 * ever that it holds one turn would be believed in this, and who is owed for it would blame the honest.
 */
bool turn_order_is_outlasted(const struct turn_peer *peers, unsigned count, uint64_t now_ns);

/*
 * When the next slice of a better rank expects to come, as far as that is not more than lead_ns
 * ahead, or late_ns ago; 0: none does, or the room is used up. The reader makes room for it from
 * then on, once, until it has come.
 */
uint64_t turn_order_next_ns(struct turn_peer *peers, unsigned count, const struct turn_room *room,
	uint32_t rank, uint64_t lead_ns, uint64_t late_ns, uint64_t now_ns);

/*
 * Since its last look the reader, of this rank, made room, for whomever; or one that goes first had
 * the turn, as that look saw; or the reader had it (is_held), or none of these.
 */
void turn_order_note_room(struct turn_room *room, const struct turn_peer *peers, unsigned count,
	uint32_t rank, bool is_held, uint64_t elapsed_ns);

/*
 * Until when a holder may announce the turn for work that ends at busy_until_ns. wanted_since_ns: since
 * when it has seen somebody wait, 0: nobody does. first_until_ns: when the work ends that the turn began with.
 */
uint64_t turn_order_lease_ns(uint64_t now_ns, uint64_t busy_until_ns, uint64_t grace_ns,
	uint64_t wanted_since_ns, uint64_t first_until_ns);

/*
 * How long a slice waits for one turn of another: until it has waited for longer than it has had
 * beforehand. saved_ns: what it may have of its share, which is below 0 after more than that;
 * behind_ns: what it may lack without blaming others for it; permille: of the device, 1 to 1000.
 * TURN_PATIENCE_NS to TURN_LONGEST_NS.
 */
uint64_t turn_order_patience_ns(int64_t saved_ns, uint64_t behind_ns, uint32_t permille);

bool turn_order_is_alive(const struct turn_claim *claim, uint64_t now_ns);

/* How many of them live, and the best rank of these: UINT32_MAX without any. */
unsigned turn_order_count_alive(
	const struct turn_peer *peers, unsigned count, uint32_t *ret_best_rank);
