/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turn records: how they lie in their folder, and how they are read.
 *
 * Another slice's record may be cut short at any moment, and an access to its mapping would then be a
 * signal. So the mapping is only an address for the kernel: FUTEX_WAIT on it, and process_vm_readv() of
 * our own process, which fail with EFAULT instead. No descriptor stays open, which a program that closes
 * all its descriptors could put another file behind.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/layout.h"
#include "region/turn.h"

#define TURN_MAGIC     UINT64_C(0x31306e7275747667) /* "gvturn01" */
#define TURN_DISTRUSTS 8u			    /* that a record has room for saying */
#define TURN_WANTS     1u			    /* in busy_until_ns: waits for the turn */
#define TURN_BORN_NS   UINT64_C(60000000) /* after so long everybody has found a new record */
/* Looks in a row that took too long for that: more of them are the folder's, and not by chance. */
#define TURN_LATE_LOOKS 2u

/* The part of a record that others read, in one go. */
struct turn_face {
	_Atomic uint64_t word; /* TURN_WORD() */
	_Atomic uint64_t ticket_ns;
	_Atomic uint64_t since_ns; /* the present turn's begin */
	_Atomic uint64_t seen_ns;
	_Atomic uint32_t rank;
	_Atomic uint32_t news; /* counts what sleepers are woken for, after the word; a futex */
	_Atomic uint64_t turns;
	_Atomic uint64_t held_ns;
	_Atomic uint64_t magic;
	_Atomic uint64_t next_ns; /* when it expects to come again; 0: it does not know */
	uint64_t unused[7];
};

struct turn_distrust {
	_Atomic uint64_t name_hash;
	_Atomic uint64_t until_ns;
};

struct turn_record {
	struct turn_face face;
	struct turn_distrust distrusts[TURN_DISTRUSTS]; /* for those who watch */
	uint64_t unused_word;
	_Atomic uint64_t born_ns; /* when it was made, or made whole again */
	uint8_t unused[4096 - sizeof(struct turn_face) -
		       TURN_DISTRUSTS * sizeof(struct turn_distrust) - 2 * sizeof(uint64_t)];
	struct region_turn books; /* of a slice that has no others */
};

_Static_assert(sizeof(struct turn_face) == 2 * CACHE_LINE_BYTES, "two lines are read of a record");
_Static_assert(REGION_SLOTS == TURN_PROCESSES, "a process's number is its slot");

/*
 * State and time in one word, so that they change together. Draining: the turn is being handed over. Fresh:
 * written by a process that has yet to see that it was in time; no other process of the slice may build on it.
 * 60 bits of ns are 36 years since the machine's start.
 */
#define TURN_WORD(state, until_ns) ((uint64_t)(until_ns) << 4 | (uint64_t)(state))
#define TURN_WORD_STATE(word)	   ((enum turn_state)((word)&3))
#define TURN_WORD_UNTIL_NS(word)   ((word) >> 4)
#define TURN_WORD_DRAINING	   UINT64_C(4)
#define TURN_WORD_FRESH		   UINT64_C(8)

/* Of a record's path, with its zero byte. */
#define TURN_PATH_BYTES (sizeof(((struct turn *)0)->folder) + TURN_NAME_BYTES)

/* Writes FOLDER/NAME. */
void turn_record_join(char *ret_path, const char *folder, const char *name);

/* A name as the distrusts have it. */
uint64_t turn_record_hash(const char *name);

/* Whether it can be a slice's record: no dot in front, no slash. */
bool turn_record_is_name(const char *name);

/* Opens our own record in turn->folder, making it where it is missing, or where what is there is no record any more. */
int turn_record_open_own(struct turn *turn) MUST_CHECK;

/*
 * Makes what is mapped a record. It is born afterwards, by the clock as it is then: a slice that was stopped while it made its record is not
 * older than others can know.
 */
void turn_record_show(struct turn *turn);

/* When others could find the record: not before now, where nobody has said so yet. */
uint64_t turn_record_born_ns(struct turn *turn);

/* Decodes a face that was read; -EBADMSG where it is no record's. */
int turn_record_decode(const struct turn_face *face, struct turn_claim *ret_claim) MUST_CHECK;

/*
 * Maps a record for looking at it or (is_own) writing it; a child of fork() does not inherit it. Space is taken at
 * once: with a full file system a later store would be a signal.
 */
int turn_record_map(int fd, bool is_own, void **ret_at) MUST_CHECK;

/* Forgets a peer; the last one moves to its place. */
void turn_record_forget(struct turn *turn, unsigned peer);

/*
 * Reads the claims of all peers that are known, or (is_all not set) of those that live, into turn->peers.
 * One whose record is broken says nothing, and one whose record is cut short is forgotten.
 */
void turn_record_read_peers(struct turn *turn, bool is_all, uint64_t now_ns);

/*
 * Whether a peer's word is what it was when the peer was last read. *ret_news is what turn_wait() may sleep on then: it was
 * read before the word, so what changes the word later changes it, too. True where the record is cut short: nobody can sleep on it.
 */
bool turn_record_is_as_read(const struct turn *turn, unsigned peer, uint32_t *ret_news);

/* What a peer's sleepers sleep on, as it is now. False where the record is cut short. */
bool turn_record_read_news(const struct turn *turn, unsigned peer, uint32_t *ret_news);

/* Says in our own record, for those who watch, until when a peer is not believed. */
void turn_record_say_distrust(struct turn *turn, unsigned peer);

void turn_record_close(struct turn *turn);
