/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of the machine's shared file. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine/event.h"
#include "sim/machine/inject.h"
#include "sim/machine/machine.h"
#include "sim/machine/mig.h"

#define LAYOUT_MAGIC   UINT64_C(0x314d495355504756) /* "VGPUSIM1" */
#define LAYOUT_VERSION 8

/* Byte SLOT of this range of the file is locked by the process in slot SLOT: far past the end. */
#define LAYOUT_LIVE_OFFSET (INT64_C(1) << 40)

/* Byte INDEX of this range is locked for reading by every descriptor of kept memory INDEX. */
#define LAYOUT_KEPT_OFFSET (LAYOUT_LIVE_OFFSET + (INT64_C(1) << 30))

/* History of utilisation: periods of 16.8 ms (16,777,216 ns), 128 of them, so about 2 s. */
#define LAYOUT_PERIOD_SHIFT 24
#define LAYOUT_PERIODS	    128
#define LAYOUT_SEEN	    6

struct layout_period {
	uint64_t index; /* of the time: CLOCK_BOOTTIME >> LAYOUT_PERIOD_SHIFT */
	uint64_t work_ns;
};

/* Work that was done: all of it, and in the latest periods. */
struct layout_utilization {
	uint64_t work_ns;
	struct layout_period period[LAYOUT_PERIODS];
	uint64_t seen[LAYOUT_SEEN]; /* of the moments at which NVML looks, those within work */
};

/* Pieces of work of a process on a device that are told apart; more are taken together. */
#define LAYOUT_SPANS 16

/* Work from start_ns to end_ns of the process's clock. */
struct layout_span {
	uint64_t start_ns;
	uint64_t end_ns;
};

/* Waits for others' clocks that a process has before it on a device. */
#define LAYOUT_HOLDS 32

/* The clock of the process stands still at at_ns until another's shows until_ns, or that one is gone. */
struct layout_hold {
	uint64_t at_ns;
	uint64_t until_ns;
	uint64_t start_time; /* of the other process, with its slot */
	uint32_t slot;
	uint32_t reserved;
};

/* The clock of a process on a device (schedule.h). Under the device's lock. */
struct layout_schedule {
	uint64_t lag_ns;     /* how far it is behind CLOCK_BOOTTIME */
	uint64_t knot_count; /* ever made, see layout_knot */
	uint32_t load;	     /* as schedule_member's, 0 standing still; since the last knot */
	uint32_t span_count;
	struct layout_span span[LAYOUT_SPANS]; /* by time, apart from each other */
	uint64_t hold_count;
	struct layout_hold hold[LAYOUT_HOLDS];
};

/* Where the speed of a process's clock changed: it showed clock_ns at time_ns. The latest ones. */
#define LAYOUT_KNOTS 1024
struct layout_knot {
	uint64_t clock_ns;
	uint64_t time_ns;
};

struct layout_slot_device {
	uint64_t bytes[MACHINE_KINDS_MAX];
	uint32_t contexts;
	uint32_t part;	      /* of the card, as mig_part() makes it; 0: the whole card */
	uint64_t limit_bytes; /* 0: none */
	uint64_t reserved[6];
	struct layout_schedule schedule;
	struct layout_utilization utilization;
};
_Static_assert(sizeof(struct layout_slot_device) ==
		       16 * 8 + 64 + 24 + 256 + 8 + LAYOUT_HOLDS * 32 + 8 + 128 * 16 + 48,
	"slot device");

enum { LAYOUT_SLOT_FREE, LAYOUT_SLOT_USED };

struct layout_slot {
	_Atomic uint32_t state; /* the commit word: all else here counts only while USED */
	int32_t pid;
	uint32_t tag;		/* index */
	_Atomic uint32_t stage; /* enum machine_stage; CHECKPOINTED: what it holds does not count */
	uint64_t start_time;
	uint64_t pid_namespace;
	uint64_t server;  /* the MPS server that it is a client of; 0: none */
	uint32_t percent; /* of a device's processors that it may use beside other clients */
	uint32_t is_lost; /* checkpointed, and never again to be restored */
	uint64_t reserved[2];
	struct layout_slot_device device[MACHINE_DEVICES_MAX];
};
_Static_assert(sizeof(struct layout_slot) == 64 + 16 * sizeof(struct layout_slot_device), "slot");

struct layout_tag {
	char name[MACHINE_TAG_SIZE];
	uint64_t peak_held_bytes[MACHINE_DEVICES_MAX];
	uint64_t peak_total_bytes[MACHINE_DEVICES_MAX];
};
_Static_assert(sizeof(struct layout_tag) == 64 + 256, "tag");

struct layout_rule {
	uint32_t state; /* the commit word: 0 free, 1 in force */
	uint32_t call;
	int32_t result;
	uint32_t reserved;
	uint64_t seen;
	uint64_t hits;
	uint64_t skip;
	uint64_t times;
	uint64_t delay_ns;
	char tag[MACHINE_TAG_SIZE];
};
_Static_assert(sizeof(struct layout_rule) == 56 + 64, "rule");

struct layout_kernel {
	uint64_t duration_ns; /* the commit word: 0 free */
	char name[INJECT_KERNEL_NAME_SIZE];
};
_Static_assert(sizeof(struct layout_kernel) == 136, "kernel");

/* Memory that processes share: it is there until nobody keeps it. */
struct layout_kept {
	uint64_t bytes;
	uint32_t is_used;    /* the commit word */
	uint32_t generation; /* grows with every use of the place */
	uint16_t device, kind;
	uint16_t tag, maker;	 /* of who made it: index of the tag, slot */
	uint16_t shown;		 /* enum machine_shown */
	uint16_t has_descriptor; /* one was made, and may live still */
	uint32_t part;		 /* of the card, as the slot of who made it has it */
	uint64_t holders[MACHINE_PROCESSES_MAX / 64]; /* a bit a slot */
};
_Static_assert(sizeof(struct layout_kept) == 64, "kept");

/* An event that processes share, until its maker destroys it or ends. Under the file's lock. */
#define LAYOUT_SHARED_EVENTS 256
struct layout_shared_event {
	uint32_t is_used;
	uint32_t generation; /* grows with every use of the place */
	uint32_t maker;	     /* slot */
	uint32_t slot;	     /* of who recorded it last */
	uint64_t maker_start_time;
	uint64_t start_time;
	uint64_t clock_ns; /* of the recorder on the device; 0: nobody has */
	uint32_t device;
	uint32_t reserved;
};

/* What a process lock takes at most on any libc we know (40 bytes on x86-64, 48 on aarch64). */
#define LAYOUT_LOCK_SIZE 128

/* Whom a device works for. Under its lock, which is taken after that of the machine. */
struct layout_device {
	union {
		pthread_mutex_t mutex;
		uint8_t bytes[LAYOUT_LOCK_SIZE];
	} lock;
	uint64_t at_ns; /* until when all this is brought forward */
	uint64_t slice_end_ns;
	uint64_t ready_ns; /* from then on it works for its owner */
	uint64_t owner_party;
	uint32_t owner_slot;
	uint32_t reserved;
	_Atomic uint64_t reaped_ns;		      /* when somebody last looked who is dead */
	uint64_t members[MACHINE_PROCESSES_MAX / 64]; /* a bit a slot: those that may have work */
	struct layout_utilization utilization;	      /* of all processes */
};

/* What a card reported, and its errors of memory: [0] uncorrected, [1] corrected. */
struct layout_event_log {
	uint64_t count; /* ever */
	uint64_t ecc_errors[2];
	struct event_report report[EVENT_KEPT_MAX];
};

/* Which cards are there, and whether the driver is: sim/machine/presence.h. */
struct layout_presence {
	_Atomic uint32_t lost; /* a bit a card */
	_Atomic uint32_t is_stopped;
	_Atomic uint32_t starts;
	_Atomic uint32_t all_losses;
	_Atomic uint32_t losses[MACHINE_DEVICES_MAX]; /* ever */
};

/* What works for one process at a time: a card, or each instance of one by its id. */
#define LAYOUT_INSTANCE_IDS 16
#define LAYOUT_UNITS	    (MACHINE_DEVICES_MAX * (1 + LAYOUT_INSTANCE_IDS))

struct layout {
	uint64_t magic;
	uint32_t version;
	uint32_t size;
	uint64_t calls_hash; /* of the names behind the counts: builds that differ do not mix */
	uint64_t reserved0[5];
	union {
		pthread_mutex_t mutex;
		uint8_t bytes[LAYOUT_LOCK_SIZE];
	} lock;
	union {
		struct board board;
		uint8_t bytes[1024];
	} board;

	uint32_t tag_count;	       /* the commit word of tag[] */
	uint32_t slots_used;	       /* no slot at or above was ever used */
	_Atomic uint32_t rule_count;   /* rules in force; 0 is the fast path of every call */
	_Atomic uint32_t kernels_fill; /* each kernel a device */
	_Atomic uint64_t kernel_epoch;
	uint64_t reserved2[5];
	struct layout_rule rule[INJECT_RULES_MAX];
	struct layout_kernel kernel[INJECT_KERNELS_MAX];
	_Atomic uint64_t calls[CALLS_MAX];
	struct layout_tag tag[MACHINE_TAGS_MAX];
	struct layout_slot slot[MACHINE_PROCESSES_MAX];
	uint32_t kept_used; /* no place at or above was ever used */
	uint32_t reserved3;
	struct layout_kept kept[MACHINE_KEPT_MAX];
	struct layout_shared_event shared_event[LAYOUT_SHARED_EVENTS];
	struct layout_device device[LAYOUT_UNITS];
	struct layout_event_log events[MACHINE_DEVICES_MAX];
	struct layout_presence presence;
	struct mig_card mig[MACHINE_DEVICES_MAX];
	/* Last, for it is large and nearly all of it is never touched. */
	struct layout_knot knot[MACHINE_PROCESSES_MAX][MACHINE_DEVICES_MAX][LAYOUT_KNOTS];
};
_Static_assert(sizeof(struct board) <= 1024, "board");
_Static_assert(sizeof(pthread_mutex_t) <= LAYOUT_LOCK_SIZE, "lock");
_Static_assert(offsetof(struct layout, lock) == 64, "lock");
_Static_assert(offsetof(struct layout, board) == 192, "board");
_Static_assert(offsetof(struct layout, tag_count) == 1216, "tag_count");
_Static_assert(offsetof(struct layout, rule) == 1280, "rule");
_Static_assert(offsetof(struct layout, slot) % 8 == 0, "slot");

/*
 * Between what a commit word stands for and the commit: the compiler must not swap them. A process that
 * is killed needs no more, for the next one takes the lock.
 */
static inline void layout_fence(void)
{
	atomic_signal_fence(memory_order_seq_cst);
}

/* Relaxed, all three: these words change under the file's lock; who reads without comes before or after. */
static inline bool layout_is_used(const struct layout_slot *slot)
{
	return atomic_load_explicit(&slot->state, memory_order_relaxed) == LAYOUT_SLOT_USED;
}

static inline void layout_set_state(struct layout_slot *slot, uint32_t state)
{
	layout_fence();
	atomic_store_explicit(&slot->state, state, memory_order_relaxed);
}

static inline enum machine_stage layout_stage(const struct layout_slot *slot)
{
	return (enum machine_stage)atomic_load_explicit(&slot->stage, memory_order_relaxed);
}

/* What works for the slot on a card, and the card of that. */
static inline int layout_unit(const struct layout_slot *slot, int device)
{
	uint32_t part = slot->device[device].part;

	return part ? MACHINE_DEVICES_MAX + device * LAYOUT_INSTANCE_IDS + (int)((part - 1) >> 8)
		    : device;
}

static inline int layout_card(int unit)
{
	return unit < MACHINE_DEVICES_MAX ? unit
					  : (unit - MACHINE_DEVICES_MAX) / LAYOUT_INSTANCE_IDS;
}

/* Whether anything may work there: a card of the machine, or an instance of one that is cut. */
static inline bool layout_has_unit(const struct layout *layout, int unit)
{
	int card = layout_card(unit);

	return card < layout->board.board.device_count &&
	       (unit < MACHINE_DEVICES_MAX || layout->mig[card].is_enabled);
}
