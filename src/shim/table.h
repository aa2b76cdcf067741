/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from a word to two words, for the threads of one process: what a pointer or a handle was
 * charged for. Every operation takes constant time, whatever the number of entries.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/lock.h"

#define TABLE_SHARDS 64

enum {
	_TABLE_E_SUCCESS = 0,
	TABLE_E_ABSENT, /* no entry with this key */
};

struct table_entry {
	uint64_t key; /* never 0 */
	uint64_t a, b;
};

struct table_shard {
	struct lock lock;
	uint32_t count;
	size_t capacity; /* a power of two, or 0 */
	struct table_entry *entries;
} __attribute__((aligned(CACHE_LINE_BYTES)));

/* All zero is an empty table. */
struct table {
	struct table_shard shards[TABLE_SHARDS];
};

/* Adds the entry, or replaces the one with its key. -ENOMEM; the table is then as before. */
int table_put(struct table *t, struct table_entry entry) MUST_CHECK;

/* Copies the entry, or removes it as well. ret_entry may be NULL. */
int table_get(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;
int table_take(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;

/*
 * Lets change() alter a and b while nobody else can see the entry; where it returns false the entry
 * is removed. *ret_entry is the entry afterwards. change() must be short and call nothing of ours.
 */
typedef bool table_change_fn(struct table_entry *entry, uint64_t argument);
int table_update(struct table *t, uint64_t key, table_change_fn *change, uint64_t argument,
	struct table_entry *ret_entry) MUST_CHECK;

/* Like table_update(), but an absent entry is added first with a and b 0. -ENOMEM. */
int table_upsert(struct table *t, uint64_t key, table_change_fn *change, uint64_t argument,
	struct table_entry *ret_entry) MUST_CHECK;

/*
 * Removes one entry whose a is the given one and says which; TABLE_E_ABSENT where none is left. The
 * cursor starts as zero and makes a whole sweep cost one look at the table.
 */
struct table_cursor {
	unsigned shard;
	size_t index;
};
int table_take_by_a(struct table *t, uint64_t a, struct table_cursor *cursor,
	struct table_entry *ret_entry) MUST_CHECK;

/* Drops everything without touching the locks' owners: for a child of fork(). */
void table_forget(struct table *t);
