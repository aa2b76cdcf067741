/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A map from a word to a holding or three words: shards with a lock each, open addressing with linear probing,
 * removal by shifting back, so that there are no tombstones and a table that was large once stays
 * fast. Memory comes from mmap, not malloc: the program's allocator may be what called us.
 */
#include "tenant/memory/table.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fault.h"

#define FIRST_CAPACITY 128 /* entries: 4 KiB a shard, touched only when used */

static struct table_shard *shard_of(struct table *t, uint64_t hash)
{
	return &t->shards[hash % TABLE_SHARDS];
}

static size_t home(const struct table_shard *s, uint64_t hash)
{
	if (LIKELY(s->capacity == TABLE_FEW))
		return 0;
	return (hash / TABLE_SHARDS) & (s->capacity - 1);
}

/* Where the key is, or the free place where it would be. The shard has a free place. */
static size_t probe(const struct table_shard *s, uint64_t key, uint64_t hash)
{
	size_t i = home(s, hash);

	while (s->entries[i].key != 0 && s->entries[i].key != key)
		i = (i + 1) & (s->capacity - 1);
	return i;
}

static struct table_entry *find(const struct table_shard *s, uint64_t key, uint64_t hash)
{
	size_t i;

	if (s->count == 0 || key == 0)
		return NULL;
	i = probe(s, key, hash);
	return s->entries[i].key ? &s->entries[i] : NULL;
}

static void unmap(const struct table_shard *s, struct table_entry *entries, size_t capacity)
{
	if (entries && entries != s->few)
		munmap(entries, capacity * sizeof(struct table_entry));
}

static void move_all(struct table_shard *s, struct table_entry *to, uint32_t capacity)
{
	struct table_entry *from = s->entries;
	size_t count = s->capacity;

	s->entries = to;
	s->capacity = capacity;
	for (size_t i = 0; i < count; i++)
		if (from[i].key)
			to[probe(s, from[i].key, hash_u64(from[i].key))] = from[i];
	unmap(s, from, count);
}

static int grow(struct table_shard *s)
{
	uint32_t capacity = s->capacity > TABLE_FEW ? s->capacity * 2 : FIRST_CAPACITY;
	void *at;

	if (s->capacity == 0) {
		s->entries = s->few;
		s->capacity = TABLE_FEW;
		return 0;
	}
	at = mmap(NULL, capacity * sizeof(struct table_entry), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -ENOMEM;
	move_all(s, at, capacity);
	return 0;
}

/* The entry with this key, added as zeros where there is none; NULL without memory. */
static struct table_entry *find_or_add(struct table_shard *s, uint64_t key, uint64_t hash)
{
	struct table_entry *e = find(s, key, hash);
	size_t i;

	if (e)
		return e;
	if (FAULT_OUT_OF_MEMORY() ||
		((size_t)(s->count + 1) * 4 > (size_t)s->capacity * 3 && grow(s) < 0))
		return NULL;
	FAULT("table: locked");
	i = probe(s, key, hash);
	s->entries[i] = (struct table_entry){.key = key};
	s->count++;
	return &s->entries[i];
}

/* Moves later entries of the run back over the hole, where their home allows it. */
static void remove_entry(struct table_shard *s, struct table_entry *e)
{
	size_t mask = s->capacity - 1, hole = (size_t)(e - s->entries), i = hole;

	for (;;) {
		size_t wanted;

		i = (i + 1) & mask;
		if (s->entries[i].key == 0)
			break;
		wanted = home(s, hash_u64(s->entries[i].key));
		if (((i - wanted) & mask) < ((i - hole) & mask))
			continue;
		s->entries[hole] = s->entries[i];
		hole = i;
	}
	s->entries[hole].key = 0;
	s->count--;
}

uint64_t table_key_of(uint64_t a, uint64_t b)
{
	uint64_t key = hash_u64(hash_u64(a) + b);

	return key ? key : 1;
}

uint64_t table_number(void)
{
	static _Atomic uint64_t last;

	/* relaxed: each is another one */
	return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

int table_put(struct table *t, struct table_entry entry)
{
	TABLE_SCOPE place = table_enter(t, entry.key, true);

	if (!place.entry)
		return -ENOMEM;
	*place.entry = entry;
	return 0;
}

struct table_place table_enter(struct table *t, uint64_t key, bool may_add)
{
	uint64_t hash = hash_u64(key);
	struct table_place place = {.shard = shard_of(t, hash)};

	lock_enter(&place.shard->lock);
	place.entry = may_add ? find_or_add(place.shard, key, hash) : find(place.shard, key, hash);
	return place;
}

void table_remove(struct table_place *place)
{
	remove_entry(place->shard, place->entry);
	place->entry = NULL;
}

int table_get(struct table *t, uint64_t key, struct table_entry *ret_entry)
{
	TABLE_SCOPE place = table_enter(t, key, false);

	if (!place.entry)
		return TABLE_E_ABSENT;
	if (ret_entry)
		*ret_entry = *place.entry;
	return 0;
}

int table_take(struct table *t, uint64_t key, struct table_entry *ret_entry)
{
	TABLE_SCOPE place = table_enter(t, key, false);

	if (!place.entry)
		return TABLE_E_ABSENT;
	if (ret_entry)
		*ret_entry = *place.entry;
	table_remove(&place);
	return 0;
}

int table_take_next(struct table *t, table_wanted_fn *is_wanted, uint64_t what,
	struct table_cursor *cursor, struct table_entry *ret_entry)
{
	for (; cursor->shard < TABLE_SHARDS; cursor->shard++, cursor->index = 0) {
		struct table_shard *s = &t->shards[cursor->shard];
		LOCK_SCOPE(&s->lock);

		for (; s->count && cursor->index < s->capacity; cursor->index++) {
			struct table_entry *e = &s->entries[cursor->index];

			if (e->key == 0 || !is_wanted(e, what))
				continue;
			/* The cursor stays: removal may move an unseen entry to this place. */
			*ret_entry = *e;
			remove_entry(s, e);
			return 0;
		}
	}
	return TABLE_E_ABSENT;
}

void table_visit(struct table *t, table_visit_fn *visit, void *argument)
{
	for (unsigned i = 0; i < TABLE_SHARDS; i++) {
		struct table_shard *s = &t->shards[i];
		LOCK_SCOPE(&s->lock);

		for (size_t k = 0; s->count && k < s->capacity; k++)
			if (s->entries[k].key)
				visit(&s->entries[k], argument);
	}
}

void table_forget(struct table *t)
{
	for (int i = 0; i < TABLE_SHARDS; i++) {
		struct table_shard *s = &t->shards[i];
		struct table_entry *entries = s->entries;
		size_t capacity = s->capacity;

		/* First empty, then unmapped: a child of this child may be doing the same. */
		s->lock = (struct lock)LOCK_INIT;
		s->entries = NULL;
		s->capacity = s->count = s->serial = 0;
		if (entries)
			memset(s->few, 0, sizeof(s->few));
		unmap(s, entries, capacity);
	}
}
