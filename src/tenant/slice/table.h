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

/* The same; *ret_old is what was there, with a and b 0 where nothing was. */
int table_replace(
	struct table *t, struct table_entry entry, struct table_entry *ret_old) MUST_CHECK;

/* Copies the entry, or removes it as well. ret_entry may be NULL. */
int table_get(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;
int table_take(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;

/*
 * Entries whose a is a count. Up adds one to it, and adds the entry itself, with a and b 0, where it
 * is absent and may be added (-ENOMEM then); down takes one away, and the entry with the last.
 * *ret_entry is the entry afterwards.
 */
int table_count_up(
	struct table *t, uint64_t key, bool may_add, struct table_entry *ret_entry) MUST_CHECK;
int table_count_down(struct table *t, uint64_t key, struct table_entry *ret_entry) MUST_CHECK;

/* Makes an entry's b the new one, if it is still the old one; TABLE_E_ABSENT where it is not. */
int table_change_b(struct table *t, uint64_t key, uint64_t old, uint64_t new) MUST_CHECK;

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
