/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holdings: what a pointer, handle, array, opening or image was charged for.
 *
 * A holding names what it took: units of its own, a shared allocation (ipc.h), or a part in a chunk. It
 * names the life of the context that it ends with. Its table is chosen by what its key is; all tables end
 * with a context, and are begun anew in a child of fork(), in one place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "region/layout.h"

/* The driver takes device memory in chunks of so many bytes (allocations.h). */
#define CHUNK_BYTES UINT64_C(0x200000)

struct charge;
struct device;
struct pool;
struct ipc_memory;
struct table_entry;

enum holding_table {
	HOLDING_POINTERS, /* key: the pointer */
	HOLDING_OPENED,	  /* the pointer; references are openings */
	HOLDING_EXTERNAL, /* the imported object */
	HOLDING_CREATED, /* the handle; references are handles, mappings and bindings; no context's */
	HOLDING_ARRAYS,	 /* the array */
	HOLDING_SHELVES, /* the life of a context: its small arrays' chunks; references are arrays */
	HOLDING_IMAGES,	 /* a hash of a module's or library's number (managed_data.h) and life */
	HOLDING_CONTEXTS, /* the context, with its own life */
	HOLDING_TABLES
};

enum holding_flags {
	HOLDING_IN_CHUNK = 1 << 0, /* charged once a chunk, for the first of its tenants */
	HOLDING_POOLED = 1 << 1,   /* charged as a whole: the pool stands in the life's place */
	HOLDING_HOST_FALLBACK = 1 << 2, /* managed memory that the program takes for the device's */
	HOLDING_SHARED = 1 << 3,	/* a shared allocation stands in the units' place */
	HOLDING_KEY_ENDS = 1 << 4,   /* nobody can open the shared allocation after this holding */
	HOLDING_MAY_STAY = 1 << 5,   /* something else may keep the memory when the key is gone */
	HOLDING_FOREIGN = 1 << 6,    /* another slice's, by a handle */
	HOLDING_SHELVED = 1 << 7,    /* a small array: charged by its shelf */
	HOLDING_DEFERRED = 1 << 8,   /* an array whose memory is mapped into it later */
	HOLDING_EVERYWHERE = 1 << 9, /* charged on the other devices as well (everywhere.h) */
	HOLDING_OPEN_FOREIGN =
		1 << 10,	      /* another slice's, open by a handle: NVML may show it here */
	HOLDING_OBJECT = 1 << 11,     /* a multicast object, which is not charged (multicast.h) */
	HOLDING_END_UNSEEN = 1 << 12, /* the end of a reference in the driver is not seen */
	HOLDING_NOBODYS = 1 << 13,    /* nothing of ours: a key that calls under way were given */
};

struct holding {
	union {
		uint64_t life; /* of the context that it ends with (contexts.h); 0: of none */
		struct pool *pool;
	};
	uint32_t references; /* one more is refused at the limit */
	uint32_t pins;	     /* calls under way that may make one */
	uint32_t ends;	     /* calls under way that end one */
	union {
		uint32_t units;
		uint32_t shared;
	};
	uint32_t serial; /* tells it from a later one with the same key; 0: there is none */
	uint8_t device;	 /* its ordinal */
	uint8_t kind;	 /* enum charge_kind */
	uint16_t flags;
};

enum {
	_HOLDING_E_SUCCESS = 0,
	HOLDING_E_ABSENT, /* nothing of ours, or about to end in another thread */
	HOLDING_E_LIMIT,  /* no further reference */
};

/* What the charge reserved, or (no device) nothing; one reference. */
struct holding holding_of(const struct charge *charge, uint64_t life, unsigned flags);

/*
 * Enters it. A holding that is there already is of memory that has ended in the driver, or the key would not
 * come again: it is given back. -ENOMEM; then nothing has changed. Where that is not sure since then (charge_since()) the other
 * one may be the later one, and stays charged until its context ends.
 */
int holding_put(
	enum holding_table in, uint64_t key, struct holding holding, uint64_t since) MUST_CHECK;
/* The same, made of a charge as by holding_of(); and of a pool. */
int holding_put_charge(enum holding_table in, uint64_t key, const struct charge *charge,
	uint64_t life, unsigned flags) MUST_CHECK;
int holding_put_pooled(uint64_t pointer, struct pool *pool, uint64_t since) MUST_CHECK;

/*
 * The same for what the driver counts itself: where it is there already, of the same life, it gets one more
 * reference instead, and *ret_is_new is false. HOLDING_E_LIMIT as well. The key does not say that it is of the same memory: *ret_there (or
 * NULL) is what has got the reference, in the same step.
 */
int holding_put_or_refer(enum holding_table in, uint64_t key, struct holding holding,
	uint64_t since, bool *ret_is_new, struct holding *ret_there) MUST_CHECK;

/* Copies it, or removes it as well. */
int holding_get(enum holding_table in, uint64_t key, struct holding *ret_holding) MUST_CHECK;
int holding_take(enum holding_table in, uint64_t key, struct holding *ret_holding) MUST_CHECK;

/* One more reference to what the driver counts itself, of this life; and what that is, as above. */
int holding_refer(
	enum holding_table in, uint64_t key, uint64_t life, struct holding *ret_there) MUST_CHECK;

/*
 * A call that may make a reference: pinned before the driver is asked, so that the charge outlives the
 * call. HOLDING_E_ABSENT: the driver must not be asked, as another thread is about to end the memory.
 * Afterwards the pin is dropped or becomes a reference; false where the holding is not there any more: then
 * what the driver made must be undone, as it may be of other memory.
 */
int holding_pin(enum holding_table in, uint64_t key, struct holding *ret_holding) MUST_CHECK;
/*
 * The same where there is none: the key is pinned, so that holding_unpin() says whether the driver has given it to memory of ours meanwhile.
 * -ENOMEM, too. Memory of ours to which the driver gives a key that is pinned may be what that call refers to, whatever it pinned: it stays
 * charged (HOLDING_MAY_STAY).
 */
int holding_pin_key(enum holding_table in, uint64_t key, struct holding *ret_holding) MUST_CHECK;
/* Pins one that has this shared allocation. HOLDING_E_ABSENT: none is found. Takes as long as there are holdings. */
int holding_pin_shared(enum holding_table in, unsigned shared, uint64_t *ret_key,
	struct holding *ret_holding) MUST_CHECK;
bool holding_unpin(enum holding_table in, uint64_t key, uint32_t serial);
bool holding_keep_pin(enum holding_table in, uint64_t key, uint32_t serial) MUST_CHECK;
/* The pin is dropped, and what the call made may keep the memory beyond the holding. */
bool holding_stay_by_pin(enum holding_table in, uint64_t key, uint32_t serial) MUST_CHECK;

/*
 * A reference that ends: taken out before the driver is asked, because the driver may give the key out
 * again before we hear of it; given back, or entered again, afterwards. What has no reference any more is given
 * back with the last call that is under way: one that the driver refuses leaves its reference.
 */
struct holding_end {
	uint64_t key;
	struct holding holding; /* serial 0: none of ours */
	uint8_t in;		/* enum holding_table */
	bool is_last;		/* and no call is under way but this one: it is out of its table */
};
int holding_end_begin(enum holding_table in, uint64_t key, struct holding_end *ret_end) MUST_CHECK;
/* The same of the holding with this serial number alone. */
int holding_end_begin_of(enum holding_table in, uint64_t key, uint32_t serial,
	struct holding_end *ret_end) MUST_CHECK;
void holding_end_done(const struct holding_end *end, bool is_ended);
/* It ends in the driver, and nobody sees when: with the last reference the memory is left to the driver's figure, or stays charged. */
void holding_end_unseen(const struct holding_end *end);

/* A reference of this serial number that has ended in the driver already. */
void holding_drop(enum holding_table in, uint64_t key, uint32_t serial);

/* The same in one step, for all that is wanted. */
void holding_end_all(enum holding_table in,
	bool (*is_wanted)(const struct table_entry *entry, uint64_t what), uint64_t what);

/* Gives back what a holding was charged for, once it is out of its table. */
void holding_give_back(uint64_t key, const struct holding *holding);
/* The same of the last known block of a chunk, where all of the chunk has gone. */
void holding_give_back_whole(uint64_t key, const struct holding *holding);
/*
 * The driver frees it, and nobody sees when: it stays charged as what nobody names, until NVML's figure for this process says that it has
 * gone. False where that tells nothing of such memory, or there is none; then nothing has changed.
 */
bool holding_leave_to_figure(uint64_t key, const struct holding *holding) MUST_CHECK;
/* Or keeps it charged until the process ends, where something else may keep the memory. */
void holding_keep(const struct holding *holding);

/* Puts it back where its end was not to be. */
void holding_put_back(enum holding_table in, uint64_t key, const struct holding *holding);

/*
 * Changes the units and references of a holding by what change() says, as one step, adding it where it is
 * absent and it may be. It is removed without references. False without memory, or where it is absent.
 */
typedef void holding_change_fn(struct holding *holding, void *context);
bool holding_change(enum holding_table in, uint64_t key, bool may_add, holding_change_fn *change,
	void *context);

/*
 * Makes the charge a shared allocation, if it is not one yet, which flags are set for. False where that
 * cannot be: the charge is then as before.
 */
bool holding_share(enum holding_table in, uint64_t key, struct ipc_memory *memory, unsigned flags,
	unsigned *ret_shared);

/* The context's life is over: gives back all holdings that end with it. */
void holding_life_ended(struct device *device, uint64_t life);

/* For a child of fork(). */
void holding_reset_after_fork(void);
