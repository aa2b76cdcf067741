/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from a word to a holding, or to four words, for the threads of one process. Every operation
 * takes constant time, whatever the number of entries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/lock.h"
#include "tenant/memory/holding.h"

#define TABLE_SHARDS 64
#define TABLE_FEW    8 /* entries of a shard, of which three quarters are used */

enum {
	_TABLE_E_SUCCESS = 0,
	TABLE_E_ABSENT, /* no entry with this key */
};

struct table_entry {
	uint64_t key; /* never 0 */
	union {
		struct holding holding;
		struct {
			uint64_t a, b, c, d;
		};
	};
};

struct table_shard {
	struct lock lock;
	uint32_t count;
	uint32_t serial;   /* of the last holding that was put here */
	uint32_t capacity; /* a power of two, or 0 */
	struct table_entry *entries;
	/* For as long as they suffice. The first is in the lock's cache line, and is tried first. */
	struct table_entry few[TABLE_FEW];
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* All zero is an empty table. */
struct table {
	struct table_shard shards[TABLE_SHARDS];
};

/* The key of two words. */
uint64_t table_key_of(uint64_t a, uint64_t b);

/* A number that was not given before, and never 0: it tells apart what has one key after the other, as handles come again. */
uint64_t table_number(void);

/* Adds the entry, or replaces the one with its key. -ENOMEM; the table is then as before. */
int table_put(struct table *t, struct table_entry entry) MUST_CHECK;

/* Copies the entry, or removes it as well. ret_entry may be NULL. */
int table_get(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;
int table_take(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;

/*
 * An entry under its shard's lock, to be looked at and changed as one step. NULL where there is none:
 * one that may be added is added as zeros, and NULL without memory.
 */
struct table_place {
	struct table_shard *shard;
	struct table_entry *entry;
};
struct table_place table_enter(struct table *t, uint64_t key, bool may_add) MUST_CHECK;
void table_remove(struct table_place *place); /* the entry is NULL afterwards */
static inline void table_leave(const struct table_place *place)
{
	lock_leave(&place->shard->lock);
}

/* A place that is left at the end of the enclosing scope. */
#define TABLE_SCOPE __attribute__((cleanup(table_leave))) struct table_place

/*
 * Removes one entry that is_wanted() and says which; TABLE_E_ABSENT where none is left. The cursor starts
 * as zero and makes a whole sweep cost one pass through the table.
 */
struct table_cursor {
	unsigned shard;
	size_t index;
};
typedef bool table_wanted_fn(const struct table_entry *entry, uint64_t what);
int table_take_next(struct table *t, table_wanted_fn *is_wanted, uint64_t what,
	struct table_cursor *cursor, struct table_entry *ret_entry) MUST_CHECK;

/* Shows every entry, those of a shard under its lock: each that is there all the while is shown once. */
typedef void table_visit_fn(const struct table_entry *entry, void *argument);
void table_visit(struct table *t, table_visit_fn *visit, void *argument);

/* Drops everything without touching the locks' owners: for a child of fork(). */
void table_forget(struct table *t);
