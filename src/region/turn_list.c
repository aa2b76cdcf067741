/* SPDX-License-Identifier: Apache-2.0 */
/* Who has a record in the folder of a device. */
#include "region/turn_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "region/turn_owner.h"
#include "region/turn_place.h"
#include "region/turn_record.h"

#define LIST_NS UINT64_C(50000000) /* between two looks at the folder */
#define LIST_ANYWAY_NS \
	UINT64_C(1000000000) /* and at one that did not change: a clock may have been set back */
/* A look that takes longer is too old before the next one: who is new has the turn after TURN_BORN_NS. */
#define LATE_NS	    (TURN_BORN_NS - TURN_CLAIM_NS - LIST_NS)
#define ASK_NS	    UINT64_C(1000000)	   /* between two questions whether it has changed */
#define TICK_NS	    UINT64_C(20000000)	   /* a folder's time of change is that coarse */
#define LARGE_BYTES UINT64_C(65536)	   /* no record of ours has as many */
#define LITTER_NS   UINT64_C(600000000000) /* without a sign of life */
#define YOUNG_BYTES (offsetof(struct turn_face, magic) + sizeof(uint64_t)) /* see is_young() */

/* The work of a look: about a ms. */
#define ROUNDS	    32u /* of ROUND_BYTES each: 2,700 short names */
#define ROUND_BYTES 2048
#define ASKED	    1024u /* new names, whose they are: a us each */
#define OPENED	    128u  /* of them, 8 us each */
#define OPENED_OF   32u	  /* of one user */
#define FIRST_TIMES 4u	  /* as many at the first look: nobody waits for the turn yet */
#define OWNERS	    64u	  /* are told apart */
#define LOOKS	    64u	  /* a listing has no more: 174,000 names */

/*
 * A name that was no record: a tag of 40 bits, when it may be opened again in ticks of 67 ms, and how often it was opened. At the
 * next look, then after twice as long, 4 s at most: what a program has broken its slice mends.
 */
#define DULL_WAYS	4u
#define DULL_TICK_SHIFT 26
#define DULL_TICKS_MASK UINT64_C(0xfffff)
#define DULL_FIRST	UINT64_C(1)
#define DULL_DOUBLED	6u
#define DULL_LONGEST	(DULL_FIRST << DULL_DOUBLED)

/* The kernel's, which has no name in the C library before 2.30. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t length;
	uint8_t type;
	char name[];
};

#define TYPE_UNKNOWN 0
#define TYPE_REGULAR 8

struct look {
	struct turn *turn;
	int folder_fd;
	unsigned asked, opened, opened_of; /* how many may be as yet; of one user in all */
	uint8_t opened_by[OWNERS];
};

/* Of the file and its name: who puts another file in its place, or gives a file another name, has a new one. */
static uint64_t key_of(const struct entry *entry)
{
	return hash_u64(entry->inode ^ turn_record_hash(entry->name));
}

static uint64_t tick_of(uint64_t now_ns)
{
	return now_ns >> DULL_TICK_SHIFT & DULL_TICKS_MASK;
}

/* Whether it is to be left alone still. */
static bool is_resting(uint64_t dull, uint64_t now_ns)
{
	uint64_t rest = ((dull >> 4) - tick_of(now_ns)) & DULL_TICKS_MASK;

	return dull && rest > 0 && rest <= DULL_LONGEST;
}

static uint64_t *ways_of(struct turn *turn, uint64_t key)
{
	return &turn->dulls[key % TURN_DULLS / DULL_WAYS * DULL_WAYS];
}

static uint64_t *find_dull(struct turn *turn, uint64_t key)
{
	uint64_t *ways = ways_of(turn, key);

	for (unsigned i = 0; i < DULL_WAYS; i++)
		if (ways[i] && ways[i] >> 24 == key >> 24)
			return &ways[i];
	return NULL;
}

static bool is_dull(struct turn *turn, uint64_t key)
{
	const uint64_t *dull = find_dull(turn, key);

	return dull && is_resting(*dull, turn->clock_ns());
}

static void note_dull(struct turn *turn, uint64_t key)
{
	uint64_t now_ns = turn->clock_ns(), doubled = 0;
	uint64_t *dull = find_dull(turn, key), *ways = ways_of(turn, key);

	if (dull)
		doubled = (*dull & 15) < DULL_DOUBLED ? (*dull & 15) + 1 : DULL_DOUBLED;
	/* Another one's place: a free one, or any. */
	for (unsigned i = 0; !dull && i < DULL_WAYS; i++)
		if (!is_resting(ways[i], now_ns))
			dull = &ways[i];
	if (!dull)
		dull = &ways[(key >> 16) % DULL_WAYS];
	*dull = key >> 24 << 24 |
		((tick_of(now_ns) + (DULL_FIRST << doubled)) & DULL_TICKS_MASK) << 4 | doubled;
}

static uint64_t real_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Whose a record is, as far as room goes: where the operator makes all, each is another one's. */
static unsigned count_of(const struct turn *turn, uint64_t owner, unsigned *ret_last)
{
	unsigned count = 0;

	for (unsigned i = 0; i < turn->peer_count; i++)
		if (turn->peer_records[i].owner == owner) {
			*ret_last = i;
			count++;
		}
	return count;
}

/* The last record of who has the most, where these are at least two more than this owner's; -1: there is no such. */
static int find_crowded(const struct turn *turn, const struct file_identity *record)
{
	unsigned last = 0, most, room = UINT_MAX;

	if (turn->is_by_operator)
		return -1;
	most = count_of(turn, record->owner, &last) + 1;
	for (unsigned i = 0; i < turn->peer_count; i++) {
		unsigned count = count_of(turn, turn->peer_records[i].owner, &last);

		if (count > most) {
			most = count;
			room = last;
		}
	}
	return room == UINT_MAX ? -1 : (int)room;
}

/*
 * A place for one more: a free one, or that of a slice that does not live, or of who has more of them. So nobody's records keep another
 * user's from being known.
 */
static int find_room(struct turn *turn, const struct file_identity *record)
{
	int at = -1;

	if (turn->peer_count < TURN_PEERS)
		return (int)turn->peer_count++;
	for (unsigned i = 0; at < 0 && i < turn->peer_count; i++)
		if (!turn->peers[i].is_alive)
			at = (int)i;
	if (at < 0)
		at = find_crowded(turn, record);
	if (at >= 0) {
		turn_owner_leave(turn, (unsigned)at);
		munmap((void *)(uintptr_t)turn->peer_records[at].at, sizeof(struct turn_face));
	}
	return at;
}

/*
 * Whether it is a dead one of this user's, which nobody else may remove: names are not used twice (turns.c), and a folder
 * full of the dead would hide the living. A slice that comes back after so long makes its record anew.
 */
static bool is_litter(const struct turn *turn, int fd, const struct turn_claim *claim)
{
	uint64_t now_ns = turn->clock_ns();
	struct file_identity id;

	if (claim->seen_ns + LITTER_NS > now_ns && claim->seen_ns < now_ns + LITTER_NS)
		return false;
	return file_identify(fd, &id) == 0 && id.owner == geteuid() &&
	       id.changed_ns + LITTER_NS < real_ns();
}

/* Whether it is a record that is known from now on, or is removed. */
static bool add(struct turn *turn, int folder_fd, const struct entry *entry)
{
	_cleanup_fd_ int fd = -1;
	struct file_identity identity;
	struct turn_face face;
	struct turn_claim claim;
	void *address;
	int at;

	/* a device that somebody made there is not opened */
	if (file_open_regular(folder_fd, entry->name, O_RDONLY | O_NOFOLLOW, &fd) < 0 ||
		file_identify(fd, &identity) < 0 ||
		pread(fd, &face, sizeof(face), 0) != (ssize_t)sizeof(face) ||
		turn_record_decode(&face, &claim) < 0)
		return false;
	if (is_litter(turn, fd, &claim))
		return unlinkat(folder_fd, entry->name, 0) == 0;
	if (turn_record_map(fd, false, &address) < 0)
		return false;
	at = find_room(turn, &identity);
	if (at < 0) {
		munmap(address, sizeof(struct turn_face));
		return false;
	}
	turn->peer_records[at] = (struct turn_peer_record){.at = address,
		.inode = entry->inode,
		.listing = turn->listing,
		.first = turn->listing};
	memcpy(turn->peer_records[at].name, entry->name, strlen(entry->name) + 1);
	turn->peers[at] = (struct turn_peer){.claim = claim,
		.is_alive = true,
		.met_ns = turn->clock_ns(),
		.doubt.is_slow = identity.size_bytes > LARGE_BYTES,
		.wins_ties = strcmp(entry->name, turn->slice) < 0};
	turn_owner_note(turn, (unsigned)at, &identity);
	turn_owner_take_over(turn, (unsigned)at);
	turn->awaited = -1;
	return true;
}

/* As other versions make a record: it has its name a moment before it is as long as one. */
static bool is_young(const struct file_identity *record)
{
	return record->size_bytes == YOUNG_BYTES;
}

/* Whether this user's files may be opened as yet in this look. Two users may count as one, and do not in the next listing. */
static bool may_open(struct look *look, uid_t owner)
{
	uint8_t *opened =
		&look->opened_by[hash_u64(owner ^ (uint64_t)look->turn->listing << 32) % OWNERS];

	if (*opened >= look->opened_of)
		return false;
	++*opened;
	return true;
}

/* A name that is not known. False where the look has done its work: it is the next one's. */
static bool meet_new(struct look *look, const struct entry *entry)
{
	uint64_t key = key_of(entry);
	struct file_identity id;

	if (is_dull(look->turn, key))
		return true;
	if (look->asked == 0 || look->opened == 0)
		return false;
	look->asked--;
	if (file_identify_at(look->folder_fd, entry->name, &id) < 0)
		return true;
	if (is_young(&id)) {
		look->turn->is_passed_over = true;
	} else if (!id.is_regular || id.size_bytes < sizeof(struct turn_face)) {
		note_dull(look->turn, key);
	} else if (!may_open(look, id.owner)) {
		look->turn->is_passed_over = true;
	} else {
		look->opened--;
		if (!add(look->turn, look->folder_fd, entry))
			note_dull(look->turn, key);
	}
	return true;
}

/* One name in the folder: a known file, maybe under another name, or a new one. */
static bool meet(struct look *look, const struct entry *entry)
{
	struct turn *turn = look->turn;

	if ((entry->type != TYPE_REGULAR && entry->type != TYPE_UNKNOWN) ||
		!turn_record_is_name(entry->name) || strcmp(entry->name, turn->slice) == 0)
		return true;
	for (unsigned i = 0; i < turn->peer_count; i++) {
		struct turn_peer_record *known = &turn->peer_records[i];

		if (known->inode != entry->inode)
			continue;
		known->listing = turn->listing;
		memcpy(known->name, entry->name, strlen(entry->name) + 1);
		turn->peers[i].wins_ties = strcmp(entry->name, turn->slice) < 0;
		return true;
	}
	return meet_new(look, entry);
}

static bool is_there(int folder_fd, const struct turn_peer_record *record)
{
	struct file_identity id;

	return file_identify_at(folder_fd, record->name, &id) == 0 && id.inode == record->inode;
}

/* Names that come and go while the folder is read can keep one from being met. */
static bool is_gone(const struct look *look, unsigned i)
{
	const struct turn_peer_record *record = &look->turn->peer_records[i];

	return record->listing != look->turn->listing && !is_there(look->folder_fd, record);
}

/* The records that are gone, and what they leave to those that were new in the same listing. */
static void forget_gone(const struct look *look)
{
	struct turn *turn = look->turn;

	for (unsigned i = turn->peer_count; i-- > 0;)
		if (is_gone(look, i))
			turn_record_forget(turn, i);
	for (unsigned i = 0; i < turn->peer_count; i++)
		if (turn->peer_records[i].first == turn->listing)
			turn_owner_take_over(turn, i);
}

static void begin_listing(struct turn *turn, uint64_t changed_ns)
{
	turn->listing++;
	turn->listing_at = 0;
	turn->listing_looks = 0;
	turn->listing_changed_ns = changed_ns;
	turn->is_passed_over = false;
}

static void end_listing(const struct look *look)
{
	struct turn *turn = look->turn;

	forget_gone(look);
	turn->listing_at = 0;
	turn->folder_changed_ns = turn->is_passed_over ? 0 : turn->listing_changed_ns;
}

/* False where the look ends with it: the folder, or its work, is done. */
static bool read_round(struct look *look)
{
	struct turn *turn = look->turn;
	union {
		struct entry first; /* aligns it */
		char bytes[ROUND_BYTES];
	} buffer;
	long length = syscall(SYS_getdents64, look->folder_fd, &buffer, sizeof(buffer));

	if (length < 0) {
		turn->listing_at = 0;
		return false;
	}
	/* Who fills the folder blinds nobody. */
	turn->is_blind = false;
	if (length == 0) {
		end_listing(look);
		return false;
	}
	for (long at = 0; at < length;) {
		const struct entry *entry = (const struct entry *)(const void *)(buffer.bytes + at);

		if (!meet(look, entry))
			return false;
		turn->listing_at = entry->next;
		at += entry->length;
	}
	return true;
}

static void list(struct turn *turn, unsigned times, uint64_t changed_ns)
{
	struct look look = {.turn = turn,
		.folder_fd = -1,
		.asked = times * ASKED,
		.opened = times * OPENED,
		.opened_of = times * OPENED_OF};
	unsigned rounds = times * ROUNDS;
	_cleanup_fd_ int fd = -1;

	turn->is_blind = true;
	/* Tried again soon. */
	turn->folder_changed_ns = 0;
	if (turn_place_open(turn->folder, &fd) < 0) {
		turn->listing_at = 0;
		return;
	}
	look.folder_fd = fd;
	if (turn->listing_at == 0 || lseek(fd, turn->listing_at, SEEK_SET) < 0)
		begin_listing(turn, changed_ns);
	turn->is_by_operator = access(turn->folder, W_OK) < 0;
	while (rounds > 0 && read_round(&look))
		rounds--;
	/* Names that others make all the while are no end of it. */
	if (turn->listing_at && ++turn->listing_looks >= LOOKS)
		end_listing(&look);
}

/* Where our own record was removed, nobody new can find us: begin with another one. */
static void keep_own(struct turn *turn)
{
	char path[TURN_PATH_BYTES];
	struct file_identity identity;
	struct turn_record *old = turn->own;
	int r;

	turn_record_join(path, turn->folder, turn->slice);
	r = file_identify_path(path, &identity);
	if ((r == 0 && identity.inode == turn->own_inode) || (r < 0 && r != -ENOENT))
		return;
	if (turn_record_open_own(turn) == 0)
		munmap(old, sizeof(*old));
}

/*
 * The next look comes LIST_NS after the end of this one: one that takes long is not followed by the next at once. But
 * for the first of such: its process may have lost its processor, and who came meanwhile has the turn soon.
 */
static void note_listed(struct turn *turn, uint64_t begun_ns)
{
	uint64_t now_ns = turn->clock_ns();

	if (now_ns <= begun_ns + LATE_NS)
		turn->late_looks = 0;
	else if (turn->late_looks < TURN_LATE_LOOKS)
		turn->late_looks++;
	turn->listed_ns = turn->late_looks == 1 ? begun_ns : now_ns;
}

void turn_list_look(struct turn *turn, uint64_t now_ns)
{
	bool is_first = turn->listed_ns == 0;
	struct file_identity identity;
	uint64_t real;
	int r;

	if (!is_first &&
		(now_ns < turn->folder_asked_ns + ASK_NS || now_ns < turn->listed_ns + LIST_NS))
		return;
	turn->folder_asked_ns = now_ns;
	real = real_ns();
	r = file_identify_path(turn->folder, &identity);
	/* One that is gone has nobody in it. */
	turn->is_blind = (r < 0 && r != -ENOENT) || (turn->is_blind && r == 0);
	if (r < 0)
		return;
	if (!is_first && turn->listing_at == 0 && identity.changed_ns == turn->folder_changed_ns &&
		now_ns < turn->listed_ns + LIST_ANYWAY_NS)
		return;
	keep_own(turn);
	/* A second change within the same tick of the file system's clock leaves the same time. */
	list(turn, is_first ? FIRST_TIMES : 1,
		identity.changed_ns + TICK_NS > real ? 0 : identity.changed_ns);
	note_listed(turn, now_ns);
}

bool turn_list_forget_gone(struct turn *turn, unsigned peer)
{
	_cleanup_fd_ int fd = -1;

	if (turn_place_open(turn->folder, &fd) < 0 || is_there(fd, &turn->peer_records[peer]))
		return false;
	turn_record_forget(turn, peer);
	return true;
}
