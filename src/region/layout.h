/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region file, byte by byte.
 *
 * The first part is HAMi's layout v1 (the offsets are a contract with its monitor, which reads
 * this file while we write it), kept truthful for readers and trusted by nobody. Our own state
 * stands behind it, on pages of its own. All numbers are little-endian and naturally aligned.
 *
 * The unit of the ledger is 64 KiB: every driver that we know takes device memory in multiples of
 * 2 MiB, older ones of 64 KiB, and 32 bits of units are 256 TiB.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define REGION_DEVICES	  16
#define REGION_SLOTS	  1024
#define REGION_UUID_BYTES 96
#define REGION_UNIT_BYTES 65536u

/* Part one: HAMi's layout v1. Field names are ours, offsets are pinned below. */
#define HAMI_MAGIC 19920718
#define HAMI_MAJOR 1
#define HAMI_MINOR 2
enum hami_status { HAMI_EXITED, HAMI_RUNNING, HAMI_SUSPENDED };

struct hami_use {
	_Atomic uint64_t context_bytes, module_bytes, data_bytes, offset_bytes, total_bytes;
	uint64_t unused[3];
};

struct hami_utilization {
	uint64_t decoder, encoder, sm, unused[3];
};

struct hami_slot {
	_Atomic int32_t pid, host_pid;
	struct hami_use used[REGION_DEVICES];
	_Atomic uint64_t monitor_used_bytes[REGION_DEVICES];
	struct hami_utilization utilization[REGION_DEVICES];
	_Atomic int32_t status;
	uint32_t padding;
	_Atomic uint64_t sequence;
	uint64_t unused[2];
};

struct hami_region {
	_Atomic int32_t magic;
	int32_t major, minor, sm_init;
	uint64_t owner_pid;
	uint8_t semaphore[32];
	_Atomic uint64_t device_count;
	char uuids[REGION_DEVICES][REGION_UUID_BYTES];
	_Atomic uint64_t limit_bytes[REGION_DEVICES];
	_Atomic uint64_t sm_limit_percent[REGION_DEVICES];
	struct hami_slot slots[REGION_SLOTS];
	_Atomic int32_t slot_count;
	_Atomic int32_t utilization_switch, recent_kernel, priority;
	_Atomic uint64_t last_kernel_s;
	uint8_t post_init_semaphore[32];
};

#define PIN(type, field, at) _Static_assert(offsetof(type, field) == (at), #type "." #field)
PIN(struct hami_region, major, 4);
PIN(struct hami_region, owner_pid, 16);
PIN(struct hami_region, semaphore, 24);
PIN(struct hami_region, device_count, 56);
PIN(struct hami_region, uuids, 64);
PIN(struct hami_region, limit_bytes, 1600);
PIN(struct hami_region, sm_limit_percent, 1728);
PIN(struct hami_region, slots, 1856);
PIN(struct hami_region, slot_count, 2008896);
PIN(struct hami_region, utilization_switch, 2008900);
PIN(struct hami_region, recent_kernel, 2008904);
PIN(struct hami_region, priority, 2008908);
PIN(struct hami_region, last_kernel_s, 2008912);
PIN(struct hami_region, post_init_semaphore, 2008920);
_Static_assert(sizeof(struct hami_region) == 2008952, "struct hami_region");
_Static_assert(sizeof(struct hami_slot) == 1960, "struct hami_slot");
PIN(struct hami_slot, used, 8);
PIN(struct hami_use, total_bytes, 32);
PIN(struct hami_slot, monitor_used_bytes, 1032);
PIN(struct hami_slot, utilization, 1160);
PIN(struct hami_slot, status, 1928);
PIN(struct hami_slot, sequence, 1936);

/* Part two: our own. */
#define REGION_MAGIC   0x31504f4c544e4143ull /* "CANTLOP1" */
#define REGION_VERSION 14

/* What device memory is held for; the order is the file's. */
#define CHARGE_KINDS(X)       \
	X(CONTEXT, "context") \
	X(PLAIN, "plain")     \
	X(MANAGED, "managed") \
	X(MAPPED, "mapped")   \
	X(POOL, "pool")       \
	X(MODULE, "module")   \
	X(ARRAY, "array")     \
	X(GRAPH, "graph")     \
	X(LOCAL, "local")     \
	X(SHARED, "shared")   \
	X(UNATTRIBUTED, "unattributed")

enum charge_kind {
#define X(id, name) CHARGE_##id,
	CHARGE_KINDS(X)
#undef X
		CHARGE_KIND_COUNT
};

/* A device of the slice. Entries are taken in order and never given back. */
struct region_device {
	/* The ledger's one word: units in use << 32 | number of changes (see ledger.c). */
	_Atomic uint64_t total;
	_Atomic uint64_t context_bytes; /* what a context was measured to take; 0: not yet */
	_Atomic uint64_t refusal_count; /* since the file was made */
	/* Deaths whose last step is unknown, and how many of them are settled; both only grow. */
	_Atomic uint64_t doubts, doubts_settled;
	_Atomic uint64_t
		drift_count; /* comparisons in which books and driver differed (reconcile.h) */
	_Atomic uint64_t lists_namespaces; /* NVML was seen to list PIDs of the asker's namespace */
	_Atomic uint64_t key;		   /* hash of the UUID; 0: the entry is free (region.c) */
	/* When that was measured, with nothing else under way (CLOCK_MONOTONIC); a figure grows old (contexts.c). */
	_Atomic uint64_t context_measured_ns;
	/* What the device's own runtime was measured to take of a context (runtime.c); 0: not yet. */
	_Atomic uint64_t heap_runtime_bytes, printf_runtime_bytes;
	/* PID << 32 | slot + 1 of the process that loads what may bring that unreserved (load_turn.c); 0: none does. */
	_Atomic uint64_t loading;
	uint64_t unused[4];
};

/* What a process has found out. */
enum region_note {
	REGION_NOTE_NVML = 1,	 /* NVML tells what the driver has given to it */
	REGION_NOTE_NO_NVML = 2, /* it does not, so the books stand alone */
};

enum region_slot_state { SLOT_FREE, SLOT_LIVE };

/* A process of the slice. Whoever holds the lock on the slot's byte, or its token, owns all of it (slot.h). */
struct region_slot {
	_Atomic uint32_t state;	     /* enum region_slot_state */
	_Atomic uint32_t pid;	     /* in the namespace below */
	_Atomic uint64_t start_time; /* /proc/PID/stat field 22, as its time namespace tells it */
	/* Inode numbers of /proc/self/ns/pid and time; 0: not known. */
	_Atomic uint32_t pid_namespace, time_namespace;
	char command[16];
	/* The ledger's words: units held << 32 | units on their way in or out (see ledger.c). */
	_Atomic uint64_t held[REGION_DEVICES];
	/* The same by kind, in bytes: for people to read, nothing is decided by it. */
	_Atomic uint64_t kind_bytes[REGION_DEVICES][CHARGE_KIND_COUNT];
	_Atomic uint32_t notes; /* of enum region_note: for people, nothing is decided by it */
				/* Its address space was once so large (process.h); 0: not known. */
#define REGION_PEAK_NOBODYS UINT32_MAX /* its process has left it: the lock or token alone tells */
	_Atomic uint32_t peak_mib;
	/* What the process has on the device is expected to end then (CLOCK_MONOTONIC); 0: nothing. */
	_Atomic uint64_t busy_until_ns[REGION_DEVICES];
	_Atomic uint64_t evicted_bytes[REGION_DEVICES]; /* moved to the host by a checkpoint */
							/*
	 * Work that is not charged yet is under way since then (CLOCK_MONOTONIC; the lowest bit says that a thread
	 * waits for it); 0: none. Where the process ends with it, it is charged by whoever clears the slot.
	 */
#define REGION_BUSY_AWAITED UINT64_C(1)
	_Atomic uint64_t busy_since_ns[REGION_DEVICES];
	/*
	 * Of the slice's ceiling, taken by the process and not charged for work yet; less than 0: it owes. Where it
	 * ends, that goes back.
	 */
	_Atomic int64_t advance_ns[REGION_DEVICES];
	/* Its sign of life (token.h) where the file system does not keep the lock; else 0. */
	_Atomic uint64_t token_place, token_birth;
};

/*
 * Memory that several processes of the slice may hold, and that is charged to none of them (shared.h).
 * Whoever holds the lock REGION_LOCK_SHARED changes it; only holders are also cleared without.
 */
#define REGION_SHARED	    1024
#define REGION_HANDLE_BYTES 64 /* of CUipcMemHandle and CUmemFabricHandle */

struct region_shared {
	/* units << 32 | SHARED_IS_USED | device << 16 | the slot that made it; 0: free */
	_Atomic uint64_t word;
	_Atomic uint64_t
		key; /* by which others find it, with the handle's bytes; 0: nobody can any more */
	_Atomic uint64_t mark;	      /* of the descriptors that keep it, too (base/mark.h); or 0 */
	_Atomic uint64_t file_device; /* of the inode behind these descriptors */
	_Atomic uint64_t file_inode;
	_Atomic uint64_t boot; /* when that was: descriptors do not outlive the kernel */
	uint64_t unused[2];
	_Atomic uint64_t holders[REGION_SLOTS / 64]; /* a bit a slot */
	uint8_t handle[REGION_HANDLE_BYTES]; /* under the lock; zeros where it has a mark alone */
};

/*
 * A device's compute time (busy.h, policy/budget.h). A span of time that the slice kept the device busy is
 * a row of cells in a ring, so that what overlaps is counted once, whoever comes in which order.
 */
#define REGION_BUSY_CELL_NS 4096
#define REGION_BUSY_WORD_CELLS \
	48 /* of 64 bits; the rest tells which lap of the ring they belong to */
#define REGION_BUSY_WORDS 4096
/* The same of longer spans: cells of 262 us, for 12.9 s. */
#define REGION_BUSY_LONG_CELL_NS 262144
#define REGION_BUSY_LONG_WORDS	 1024

/*
 * What the slice says of its turns on a device (turn.h). Its processes go by this; the slice's record is a copy for others,
 * which other programs of its container may write to.
 */
struct region_turn {
	_Atomic uint64_t word;	       /* TURN_WORD() */
	_Atomic uint64_t said;	       /* the last word that the record was seen to say */
	_Atomic uint64_t since_ns;     /* since when it wants the turn, or has it */
	_Atomic uint64_t process_high; /* processes' numbers are below it; it only grows */
	_Atomic uint64_t unknown; /* whose work of unknown length is under way (policy/unknown.h) */
	_Atomic uint64_t ran_on;  /* the longest piece that ran on (policy/overrun.h) */
	_Atomic uint64_t
		queued_until_ns; /* when all that was given should be done (compute/queue.h) */
	/* How often a process of the slice began work for which it had not taken enough in advance (compute/credit.c). */
	_Atomic uint64_t overdrafts;
	/* The end of each process's work, TURN_WANTS, or 0. */
	_Atomic uint64_t busy_until_ns[REGION_SLOTS];
	_Atomic uint64_t name_token; /* a random part of the record's name; 0: not drawn yet */
	uint64_t unused[7];
};

struct region_compute {
	_Atomic uint64_t budget;   /* of what the slice is sure to get; see policy/budget.h */
	_Atomic uint64_t ceiling;  /* of what it never gets more than; likewise */
	_Atomic uint64_t busy_ns;  /* charged since the file was made */
	_Atomic uint64_t launches; /* since then, of whatever is metered */
	_Atomic uint64_t budget_wait_ns, turn_wait_ns; /* of all threads together, since then */
	/* For people, as last applied: cores permille << 48 | cap permille << 32 | weight << 16 |
	 * priority << 8 | enum region_compute_state */
	_Atomic uint64_t limits;
	_Atomic uint64_t lent_ns;    /* of busy_ns, beyond what the slice is sure to get */
	_Atomic uint64_t elapsed_ns; /* what busy_ns would be if every charge counted in full */
	/* Processes that take no turns (policy/untracked.h): what of a charge counts; 0: all. */
	_Atomic uint64_t counted_permille;
	_Atomic uint64_t
		untracked_poller; /* who asks the driver: seconds << 32 | slot + 1; 0: nobody */
	/* Others are at work, as far as known: until seconds << 32 | percent of what the slice leaves them. */
	_Atomic uint64_t contended;
	_Atomic uint64_t full_ns; /* when the ceiling was last seen to grow no more; 0: never */
	_Atomic uint64_t
		overrun; /* of work that ran on when its turn was over; see policy/overrun.h */
	/* Until when work is doubted, and whether some was found to be hidden (policy/doubt.h). */
	_Atomic uint64_t doubted, suspected;
	_Atomic uint64_t cells[REGION_BUSY_WORDS];
	_Atomic uint64_t long_cells[REGION_BUSY_LONG_WORDS];
	_Atomic uint64_t left; /* of processes that ended with work under way (policy/left.h) */
	_Atomic uint64_t
		owed; /* what it could not have while others had the device (policy/owed.h) */
	uint64_t unused[6];
	struct region_turn turn;
};

enum region_compute_state {
	REGION_COMPUTE_LIMITED = 1,   /* time is metered and limited */
	REGION_COMPUTE_SUSPENDED = 2, /* nothing new reaches the device */
	REGION_COMPUTE_BLOCKED = 4,   /* by recent_kernel: a monitor lets others go first */
	REGION_COMPUTE_TURNS = 8,     /* turns are taken with other slices */
};

#define SHARED_IS_USED UINT64_C(0x80000000)

/* A path by which a process of the slice can open the inode behind shared descriptors. */
#define REGION_PATH_BYTES 192

struct region_own {
	_Atomic uint64_t magic; /* stored last, when the file is complete */
	uint32_t version;
	uint32_t size_bytes;	       /* of the whole file */
	_Atomic uint32_t device_count; /* entries at or above this one have no name yet */
	_Atomic uint32_t slot_high;    /* no slot at or above this one was ever taken */
	_Atomic uint32_t shared_high;  /* the same for shared allocations */
	uint32_t unused_word;
	uint64_t unused_token;
	_Atomic uint64_t
		share_ns; /* the share file's time of change, as last applied; 0: none yet */
	/* Of the clock that CLOCK_MONOTONIC is in this file (struct clock_mark); 0: not said yet. */
	_Atomic int64_t clock_ticks_ns, clock_wall_ns;
	struct region_device devices[REGION_DEVICES];
	struct region_slot slots[REGION_SLOTS];
	char shared_path[REGION_PATH_BYTES];
	struct region_shared shared[REGION_SHARED];
	struct region_compute compute[REGION_DEVICES];
	/* When the process of each slot last looked after its work (CLOCK_MONOTONIC); 0: not yet. Of one that does not others charge it. */
	_Atomic uint64_t looked_ns[REGION_SLOTS];
};

struct region_file {
	struct hami_region hami;
	uint8_t gap[4096 * 491 - sizeof(struct hami_region)];
	struct region_own own;
};

PIN(struct region_file, own, 2011136);
PIN(struct region_own, devices, 64);
PIN(struct region_own, slots, 2112);
PIN(struct region_own, shared_path, 2112 + 2112 * REGION_SLOTS);
PIN(struct region_own, compute, 2112 + 2112 * REGION_SLOTS + 192 + 256 * REGION_SHARED);
PIN(struct region_own, looked_ns,
	2112 + 2112 * REGION_SLOTS + 192 + 256 * REGION_SHARED +
		sizeof(struct region_compute) * REGION_DEVICES);
PIN(struct region_compute, cells, 128);
PIN(struct region_compute, long_cells, 128 + 8 * REGION_BUSY_WORDS);
PIN(struct region_compute, turn, 192 + 8 * (REGION_BUSY_WORDS + REGION_BUSY_LONG_WORDS));
_Static_assert(sizeof(struct region_compute) % 64 == 0, "no cache line shared by two devices");
_Static_assert(sizeof(struct region_shared) == 256, "struct region_shared");
_Static_assert(sizeof(struct region_device) == 128,
	"two cache lines each; the ledger's word is in the first");
_Static_assert(sizeof(struct region_slot) % 64 == 0, "no cache line shared by two processes");
PIN(struct region_slot, time_namespace, 20);
PIN(struct region_slot, held, 40);
PIN(struct region_slot, kind_bytes, 168);
#undef PIN

/*
 * Locks are OFD byte locks on the file at offsets behind any data: a byte a slot, one for the shared allocations, a
 * second byte a slot for whoever changes a living process's words from outside (evict.h), a third by which who claims
 * it tries what becomes of a lock, and a fourth that its owner's children of fork() keep (slot.c).
 */
#define REGION_LOCK_SLOTS    (INT64_C(1) << 40)
#define REGION_LOCK_SHARED   (REGION_LOCK_SLOTS + REGION_SLOTS)
#define REGION_LOCK_EVICT    (REGION_LOCK_SHARED + 1)
#define REGION_LOCK_TRIAL    (REGION_LOCK_EVICT + REGION_SLOTS)
#define REGION_LOCK_CHILDREN (REGION_LOCK_TRIAL + REGION_SLOTS)
