/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: one slice at a time lets its batches run on a device.
 *
 * Each slice has a record of its own in a folder that all see: FOLDER/UUID/SLICE. Only its processes
 * write it; all others read it and believe it within bounds (policy/turn_order.h). A record holds
 * a lease: a wish, a claim and a hold each count until a time that stands beside them, so who dies or
 * is stopped is past by itself. See docs/decisions/0016-turns.md.
 *
 * The slice's own processes go by its books, of which the record is a copy for others: what any other program writes there
 * is no turn. A slice that finds its record changed blames nobody for some time, and gives way to who works beside it.
 *
 * Nothing here waits, except turn_wait(). errno is kept. The caller lets one thread of a process at a
 * time use a `struct turn`. Times are clock_now_ns()'s.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "policy/turn_order.h"

#define TURN_PEERS	64u   /* other slices of a device that are looked at */
#define TURN_OWNERS	16u   /* of records that went, and are remembered */
#define TURN_PROCESSES	1024u /* of a slice; a process's number is its slot in the region */
#define TURN_DULLS	2048u /* names that were no record, and are remembered */
#define TURN_NAME_BYTES 88u   /* of a slice's name, with its zero byte */

enum {
	TURN_HELD = 0,
	TURN_E_WAIT,   /* it is somebody else's, or the slice is handing it over */
	TURN_E_SHARED, /* the slice's other processes still have work on the device */
};

struct region_turn;
struct turn_record;

/* Where another slice's record is. */
struct turn_peer_record {
	const void *at; /* mapped for the kernel to look at: no access of ours may touch it */
	uint64_t inode;
	uint64_t
		owner; /* the user whose file it is, or the record where only the operator makes any */
	uint64_t word;	  /* its TURN_WORD(), as last read */
	uint32_t listing; /* in which it was last met, and */
	uint32_t first;	  /* first met */
	bool is_crowded;  /* it did not wake us when it had news: more sleep on it than it wakes */
	char name[TURN_NAME_BYTES];
};

/* What records that are gone have left for those of the same owner that come after them. */
struct turn_owner {
	uint64_t owner;
	uint64_t at_ns; /* when the last one went; 0: none has */
	struct turn_doubt doubt;
};

/* One for each process and device; in static storage, begun with TURN_NULL (all zero). */
struct turn {
	struct turn_record *own; /* NULL: not open */
	/* The slice's books, put there before it is opened; where it is NULL then, they lie in the record. */
	struct region_turn *books;
	uint64_t own_inode;
	uint64_t (*clock_ns)(
		void); /* what a test puts there; turn_open() puts the clock where it is NULL */
	uint64_t quantum_ns, grace_ns;
	uint64_t polled_ns; /* the last poll of the peers; and the last one of all of them */
	uint64_t polled_all_ns;
	uint64_t listed_ns, folder_changed_ns, folder_asked_ns;
	uint64_t
		listing_changed_ns; /* when the folder had changed as the present listing of it began */
	int64_t listing_at;	    /* where that goes on at the next look; 0: it is done */
	uint32_t listing_looks;	    /* that it took so far */
	uint32_t late_looks; /* in a row, that took so long that who is new may have the turn */
	bool is_passed_over; /* names were left for the next listing, as the look's work was done */
	uint64_t free_since_ns;	  /* seen free since then; 0: not */
	uint64_t patience_ns;	  /* see turn_order_patience_ns() */
	uint64_t begun_ns;	  /* when this process last began a turn */
	uint64_t first_until_ns;  /* when the work ends that it began with, with the grace */
	uint64_t wanted_since_ns; /* since when somebody is seen waiting for our turn; 0: not */
	uint64_t waiters_ns;	  /* the poll of which it is noted who waits */
	uint64_t unwanted_ns;	  /* when nobody was last seen waiting for it */
	uint64_t woke_ns;	  /* the last time that turn_idle() woke others */
	uint64_t
		crowded_ns; /* the last time that as many slept on our record as are woken at once */
	uint64_t peeked_ns;   /* when they were last read without a poll */
	uint64_t others_ns;   /* when another slice was last seen to want or have the device */
	uint64_t tampered_ns; /* when the record was last found changed; 0: never */
	uint64_t hidden_ns;   /* and so that it said nothing of a turn that was held */
	uint64_t
		held_until_ns; /* as announced last for work of this process, or when the turn was given back before */
	uint64_t served_ns,
		others_served_ns; /* see turn_note_served(); since anybody was last blamed or all forgiven */
	struct turn_room room;
	bool is_substitute; /* took the turn as the first in line did not: for a moment */
	bool is_cut;	    /* the last turn was wanted before it was over, by who goes before */
	uint32_t process;
	uint32_t peer_count;
	uint32_t
		alive_count; /* of them, as last read; and the best rank of these: UINT32_MAX without any */
	uint32_t best_rank;
	uint32_t own_news; /* as awaited -1 */
	int32_t awaited;   /* whose news turn_wait() is for; -1: our own */
	bool is_blind;	   /* the folder cannot be listed: others may be there that are not known */
	bool is_by_operator; /* nobody but the operator makes records: the folder is closed to us */
	bool is_by_file;     /* records are read by their path: the better way is forbidden here */
	char folder[256];    /* the device's */
	char slice[TURN_NAME_BYTES];
	struct turn_peer_record peer_records[TURN_PEERS];
	struct turn_peer peers[TURN_PEERS];
	uint32_t listing; /* counts the listings of the folder */
	struct turn_owner owners[TURN_OWNERS];
	uint64_t dulls[TURN_DULLS]; /* see turn_list.c */
};

/* clang-format off */
#define TURN_NULL {0}
/* clang-format on */

/*
 * Opens the slice's record, making it and the folders where they are missing. process: this process's
 * slot in the region. -errno where there can be no turns; the struct is as before then.
 */
int turn_open(struct turn *turn, const char *folder, const char *uuid, const char *slice,
	unsigned process, uint64_t now_ns) MUST_CHECK;

/* Takes back what this process wants, and unmaps; fit for one that is not open. */
void turn_close(struct turn *turn);

/* For a child of fork(): forgets the parent's, of which nothing was inherited. */
void turn_reset_after_fork(struct turn *turn);

/*
 * How long a turn lasts while others of the same rank wait (0: 5 ms; at most 35 ms), and how long one
 * is kept for a slice without work (0: 300 us; at most 5 ms).
 */
void turn_set_times(struct turn *turn, uint64_t quantum_ns, uint64_t grace_ns);

/* For how long turns of others are waited for: see turn_order_patience_ns(); at first TURN_PATIENCE_NS. */
void turn_set_patience(struct turn *turn, uint64_t patience_ns);

/* Other slices that have made themselves heard within the last second. Reads them every 5 ms. */
unsigned turn_count_peers(struct turn *turn, uint64_t now_ns);

/* Whether another program has changed the slice's record of late, so that others knew nothing of a turn that the slice held. */
bool turn_is_hidden(const struct turn *turn, uint64_t now_ns);

/*
 * Whether another slice has wanted or had the device since then, as far as looks at their records saw: the last of them is
 * no more than half a ms old. True where they are not known.
 */
bool turn_is_contended(struct turn *turn, uint64_t since_ns, uint64_t now_ns);

/* Whether another slice's work is likely to be on the device beside ours: turn_order_is_outlasted(), as last read. */
bool turn_is_overlapped(const struct turn *turn, uint64_t now_ns);

/*
 * Takes, keeps or resumes the turn for work that is expected to end at busy_until_ns (at most 2.5 s
 * ahead count for what a turn begins with, and 244 ms for more). rank: the smaller, the sooner. With TURN_E_WAIT the slice waits in line, *ret_poll_ns
 * says until when to wait and then to call again; who does not call for 5 ms has lost its place.
 * A held turn costs no system call, but for a poll of the others each half ms. A process's end of work
 * replaces the one that it said before.
 */
int turn_hold(struct turn *turn, unsigned rank, uint64_t now_ns, uint64_t busy_until_ns,
	uint64_t *ret_poll_ns) MUST_CHECK;

/* The slice, which is to have this part of the device, has had it for so long since the last time: see turn_order_note_served(). */
void turn_note_served(struct turn *turn, uint64_t served_ns, uint64_t permille);
/* It has had less than its share: see turn_order_blame(). False where nobody is to blame as yet. */
bool turn_blame(struct turn *turn, enum turn_lack lack, uint64_t now_ns);
/* It has had its share. */
void turn_forgive(struct turn *turn);

/* Keeps the turn for work that takes longer, where it is the slice's still. */
void turn_prolong(struct turn *turn, unsigned rank, uint64_t now_ns, uint64_t busy_until_ns);

/*
 * For a slice that goes before all others: holds the turn at once, and whoever holds it as well gives it back
 * at its next poll.
 */
void turn_seize(struct turn *turn, unsigned rank, uint64_t now_ns, uint64_t busy_until_ns);

/* Says when this slice expects to come again (0: it does not know), so that it finds the device free. */
void turn_say_next(struct turn *turn, uint64_t next_ns);

/* When one of a better rank expects to come, as last read: see turn_order_next_ns(). */
uint64_t turn_next_ns(
	struct turn *turn, unsigned rank, uint64_t lead_ns, uint64_t late_ns, uint64_t now_ns);

/*
 * Whether the turn should be given back: let the work drain, then turn_release(). Until then
 * turn_hold() goes on saying yes. begin_ns, end_ns: when further work counts as begun, as the turn must not be over
 * then (in the past: the turn is longer by that), and when it ends, as others wait for one turn no longer than
 * TURN_WANTED_NS. Reads the others at most every half ms.
 */
bool turn_is_wanted(
	struct turn *turn, unsigned rank, uint64_t now_ns, uint64_t begin_ns, uint64_t end_ns);

/*
 * This process has nothing on the device. Where that is true of the whole slice, the turn is kept for the grace from now on,
 * and may be resumed in it by turn_hold() without asking anybody; for keep_ns, where that is more and the turn lasts as long.
 */
void turn_idle(struct turn *turn, uint64_t keep_ns, uint64_t now_ns);

/* This process's work ends sooner than it was announced, as far as it knows. */
void turn_shorten(struct turn *turn, uint64_t now_ns, uint64_t busy_until_ns);

/*
 * Hands the turn over: 0, or TURN_E_SHARED where other processes of the slice have work until later:
 * none of them gets more in (turn_hold() says TURN_E_WAIT), and the last one's release, or the end
 * that it announced, completes it.
 */
int turn_release(struct turn *turn, uint64_t now_ns);

/* Wants nothing any more (it waits for its budget, or ends); what it holds is released. */
void turn_leave(struct turn *turn);

/* Whether another process of the slice waits for the turn, or has work under way as far as it said; one that died is believed, too. */
bool turn_has_others(const struct turn *turn, uint64_t now_ns);

/* Sleeps until the turn's holder says something new, or until then; a signal ends it early (-EINTR). */
int turn_wait(struct turn *turn, uint64_t until_ns);

/* A record of a device, for people to read. */
struct turn_view {
	char slice[TURN_NAME_BYTES];
	enum turn_state state; /* TURN_FREE where what it says has expired */
	uint32_t rank;
	uint64_t since_ns;   /* since when it has that state */
	uint64_t until_ns;   /* and until when it counts */
	uint64_t seen_ns;    /* its last sign of life */
	uint64_t turns;	     /* taken so far */
	uint64_t held_ns;    /* in all */
	uint32_t distrusted; /* by how many slices it is not believed now, as far as they say */
};

/* Reads up to room slices of a device, as an outsider: makes nothing, maps nothing. */
int turn_read(const char *folder, const char *uuid, uint64_t now_ns, struct turn_view *views,
	unsigned room, unsigned *ret_count) MUST_CHECK;
