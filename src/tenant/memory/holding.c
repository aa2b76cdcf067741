/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holdings.
 *
 * What holds of each at any moment, whatever other threads do:
 *
 *   1. Memory is charged from before the driver is asked for it until after the driver has ended it.
 *   2. A reference is here before the driver is asked to make it, and until the driver has answered
 *	its end. A reference to what is not here any more is not made: another thread is ending it. The last
 *	one is the last when no call that ends one, or may make one, is under way any more.
 *   3. A key is out of its table before the driver is asked to end the last reference, so a key that
 *	the driver gives out again is new here. A serial number tells the two apart.
 *   4. A holding ends with the life of a context, never with a handle that a later context may have.
 *   5. Each holding is given back once: by the thread that took it out of its table.
 *
 * Where one of our own steps fails, the charge stays until the process ends: the books are too high then,
 * never too low.
 */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/holding.h"

#include <errno.h>

#include "base/fault.h"
#include "base/log.h"
#include "tenant/memory/aside.h"
#include "tenant/memory/charge.h"
#include "tenant/memory/chunk.h"
#include "tenant/memory/holding_ended.h"
#include "tenant/memory/holding_tables.h"

struct table holding_tables[HOLDING_TABLES];
struct lock holding_share_lock;

static void say_it_stays(void)
{
	log_warn("memory stays counted until the process ends");
}

static void renew_serial(struct table_place *place)
{
	if (++place->shard->serial == 0)
		place->shard->serial = 1;
	place->entry->holding.serial = place->shard->serial;
}

struct holding holding_of(const struct charge *charge, uint64_t life, unsigned flags)
{
	return (struct holding){.life = life,
		.references = 1,
		.units = charge->units,
		.device = charge->device ? (uint8_t)charge->device->ordinal : 0,
		.kind = (uint8_t)charge->kind,
		.flags = (uint16_t)flags};
}

/* What a new holding is besides, for what is there under its key. */
static uint16_t flags_after(enum holding_table in, const struct holding *there)
{
	return in == HOLDING_CREATED && there->serial && there->pins ? HOLDING_MAY_STAY : 0;
}

static struct holding replace(
	enum holding_table in, struct table_place *place, const struct holding *holding)
{
	struct holding old = place->entry->holding;

	place->entry->holding = *holding;
	place->entry->holding.flags |= flags_after(in, &old);
	renew_serial(place);
	return old;
}

static int add_reference(struct holding *h)
{
	if (h->references == UINT32_MAX)
		return HOLDING_E_LIMIT;
	h->references++;
	return 0;
}

static int refer(struct holding *h, struct holding *ret_there)
{
	int r = add_reference(h);

	if (r == 0 && ret_there)
		*ret_there = *h;
	return r;
}

/* With the lock of its place (aside.h). */
static void set_aside(uint64_t key, struct holding *gone, uint64_t since, unsigned flags)
{
	if (LIKELY(!gone->serial) || gone->flags & HOLDING_NOBODYS ||
		!aside_is_due(gone, since, flags))
		return;
	if (!aside_put(key, gone))
		say_it_stays();
	gone->serial = 0;
}

/*
 * What was replaced: its memory has ended in the driver. Where calls for created memory were under way, nobody knows what
 * they made, and it stays charged.
 */
static void end_replaced(enum holding_table in, uint64_t key, const struct holding *gone)
{
	if (LIKELY(!gone->serial) || gone->flags & HOLDING_NOBODYS)
		return;
	if (in == HOLDING_CREATED && gone->pins)
		say_it_stays();
	else
		holding_end_last(key, gone, HOLDING_ENDED_UNSEEN);
}

int holding_put(enum holding_table in, uint64_t key, struct holding holding, uint64_t since)
{
	struct holding gone;
	struct table_place place = holding_enter(in, key, true);

	if (place.entry) {
		gone = replace(in, &place, &holding);
		set_aside(key, &gone, since, holding.flags);
	}
	table_leave(&place);
	if (!place.entry)
		return -ENOMEM;
	end_replaced(in, key, &gone);
	return 0;
}

/* Field by field: a whole struct that was just written in parts is read slowly. */
static int put_fields(enum holding_table in, uint64_t key, uint64_t life, uint32_t units,
	const struct charge *charge, unsigned flags)
{
	struct table_place place = holding_enter(in, key, true);
	struct holding *h = &place.entry->holding, gone;
	bool is_there;

	if (UNLIKELY(!place.entry)) {
		table_leave(&place);
		return -ENOMEM;
	}
	is_there = h->serial != 0;
	if (UNLIKELY(is_there)) {
		gone = *h;
		flags |= flags_after(in, &gone);
	}
	h->life = life;
	h->references = 1;
	h->pins = 0;
	h->ends = 0;
	h->units = units;
	h->device = charge->device ? (uint8_t)charge->device->ordinal : 0;
	h->kind = (uint8_t)charge->kind;
	h->flags = (uint16_t)flags;
	renew_serial(&place);
	if (UNLIKELY(is_there))
		set_aside(key, &gone, charge->since, flags);
	table_leave(&place);
	if (UNLIKELY(is_there))
		end_replaced(in, key, &gone);
	return 0;
}

int holding_put_charge(enum holding_table in, uint64_t key, const struct charge *charge,
	uint64_t life, unsigned flags)
{
	return put_fields(
		in, key, life, flags & HOLDING_IN_CHUNK ? 0 : charge->units, charge, flags);
}

int holding_put_pooled(uint64_t pointer, struct pool *pool, uint64_t since)
{
	const struct charge none = {.device = NULL, .since = since};

	return put_fields(HOLDING_POINTERS, pointer, (uintptr_t)pool, 0, &none, HOLDING_POOLED);
}

/* Whether there is one that is the same in the driver. */
static bool is_same(const struct holding *there, const struct holding *new)
{
	return there->serial && there->references && there->life == new->life &&
	       !((there->flags ^ new->flags) & HOLDING_OBJECT);
}

int holding_put_or_refer(enum holding_table in, uint64_t key, struct holding holding,
	uint64_t since, bool *ret_is_new, struct holding *ret_there)
{
	struct holding gone = {.serial = 0};
	struct table_place place = holding_enter(in, key, true);
	int r = place.entry ? 0 : -ENOMEM;

	*ret_is_new = place.entry && !is_same(&place.entry->holding, &holding);
	if (*ret_is_new) {
		gone = replace(in, &place, &holding);
		if (!gone.ends)
			set_aside(key, &gone, since, holding.flags);
	} else if (place.entry) {
		r = refer(&place.entry->holding, ret_there);
	}
	table_leave(&place);
	/* Where an end is under way, nobody knows whether it is the same in the driver. */
	if (gone.ends)
		say_it_stays();
	else
		end_replaced(in, key, &gone);
	return r;
}

int holding_get(enum holding_table in, uint64_t key, struct holding *ret_holding)
{
	TABLE_SCOPE place = holding_enter(in, key, false);

	if (!place.entry)
		return HOLDING_E_ABSENT;
	*ret_holding = place.entry->holding;
	return 0;
}

int holding_take(enum holding_table in, uint64_t key, struct holding *ret_holding)
{
	TABLE_SCOPE place = holding_enter(in, key, false);

	if (!place.entry)
		return HOLDING_E_ABSENT;
	*ret_holding = place.entry->holding;
	table_remove(&place);
	return 0;
}

int holding_refer(enum holding_table in, uint64_t key, uint64_t life, struct holding *ret_there)
{
	TABLE_SCOPE place = holding_enter(in, key, false);

	if (!place.entry || place.entry->holding.life != life || !place.entry->holding.references)
		return HOLDING_E_ABSENT;
	return refer(&place.entry->holding, ret_there);
}

int holding_pin(enum holding_table in, uint64_t key, struct holding *ret_holding)
{
	TABLE_SCOPE place = holding_enter(in, key, false);

	if (!place.entry || !place.entry->holding.references)
		return HOLDING_E_ABSENT;
	place.entry->holding.pins++;
	*ret_holding = place.entry->holding;
	return 0;
}

int holding_pin_key(enum holding_table in, uint64_t key, struct holding *ret_holding)
{
	TABLE_SCOPE place = holding_enter(in, key, true);
	struct holding *h = place.entry ? &place.entry->holding : NULL;

	if (!h)
		return -ENOMEM;
	if (!h->serial) {
		*h = (struct holding){.flags = HOLDING_NOBODYS};
		renew_serial(&place);
	}
	/* Another thread is about to end it. */
	if (!h->references && !(h->flags & HOLDING_NOBODYS))
		return HOLDING_E_ABSENT;
	h->pins++;
	*ret_holding = *h;
	return 0;
}

/* A call that is not under way any more, and what it leaves. */
struct call_end {
	unsigned pins, ends; /* which of the two it was */
	bool has_reference;
	unsigned flag;
};

/* What is left without any call and reference is taken out and given back. False where it is not there any more. */
static bool end_call(
	enum holding_table in, uint64_t key, uint32_t serial, const struct call_end *call)
{
	struct table_place place = holding_enter(in, key, false);
	struct holding *h = place.entry ? &place.entry->holding : NULL, gone = {.serial = 0};
	bool is_there = h && h->serial == serial;

	if (is_there) {
		h->pins -= call->pins;
		h->ends -= call->ends;
		h->flags |= (uint16_t)call->flag;
		if (call->has_reference)
			is_there = add_reference(h) == 0;
		if (!h->references && !h->pins && !h->ends) {
			gone = *h;
			table_remove(&place);
		}
	}
	table_leave(&place);
	if (gone.serial && !(gone.flags & HOLDING_NOBODYS))
		holding_end_last(key, &gone, HOLDING_ENDED_SEEN);
	return is_there;
}

bool holding_unpin(enum holding_table in, uint64_t key, uint32_t serial)
{
	bool is_there = end_call(in, key, serial, &(struct call_end){.pins = 1});

	if (!is_there)
		log_debug("memory ended while a call for it was under way");
	return is_there;
}

bool holding_keep_pin(enum holding_table in, uint64_t key, uint32_t serial)
{
	return end_call(in, key, serial, &(struct call_end){.pins = 1, .has_reference = true});
}

bool holding_stay_by_pin(enum holding_table in, uint64_t key, uint32_t serial)
{
	return end_call(in, key, serial, &(struct call_end){.pins = 1, .flag = HOLDING_MAY_STAY});
}

/* serial 0: whichever is there */
static int begin_end(
	enum holding_table in, uint64_t key, uint32_t serial, struct holding_end *ret_end)
{
	TABLE_SCOPE place = holding_enter(in, key, false);
	struct holding *h = place.entry ? &place.entry->holding : NULL;

	*ret_end = (struct holding_end){.key = key, .in = (uint8_t)in};
	if (!h || !h->references || (serial && h->serial != serial))
		return HOLDING_E_ABSENT;
	h->references--;
	ret_end->holding = *h;
	ret_end->is_last = !h->references && !h->pins && !h->ends;
	if (ret_end->is_last)
		table_remove(&place);
	else
		h->ends++;
	return 0;
}

int holding_end_begin(enum holding_table in, uint64_t key, struct holding_end *ret_end)
{
	return begin_end(in, key, 0, ret_end);
}

int holding_end_begin_of(
	enum holding_table in, uint64_t key, uint32_t serial, struct holding_end *ret_end)
{
	*ret_end = (struct holding_end){.key = key};
	return serial ? begin_end(in, key, serial, ret_end) : HOLDING_E_ABSENT;
}

void holding_put_back(enum holding_table in, uint64_t key, const struct holding *holding)
{
	/* Its place was freed a moment ago, so this needs no memory unless others took it since. */
	TABLE_SCOPE place = holding_enter(in, key, true);

	if (place.entry &&
		(place.entry->holding.serial == 0 || place.entry->holding.flags & HOLDING_NOBODYS))
		place.entry->holding = *holding;
	else
		say_it_stays();
}

void holding_end_done(const struct holding_end *end, bool is_ended)
{
	struct holding holding = end->holding;

	if (!holding.serial)
		return;
	FAULT("holding: the driver was called");
	if (end->is_last && is_ended) {
		holding_end_last(end->key, &holding, HOLDING_ENDED_SEEN);
	} else if (end->is_last) {
		holding.references = 1;
		holding_put_back(end->in, end->key, &holding);
	} else if (!end_call(end->in, end->key, holding.serial,
			   &(struct call_end){.ends = 1, .has_reference = !is_ended}) &&
		   !is_ended) {
		say_it_stays();
	}
}

void holding_end_unseen(const struct holding_end *end)
{
	struct holding holding = end->holding;

	if (!holding.serial)
		return;
	holding.flags |= HOLDING_END_UNSEEN;
	if (end->is_last)
		holding_end_last(end->key, &holding, HOLDING_ENDED_SEEN);
	else if (!end_call(end->in, end->key, holding.serial,
			 &(struct call_end){.ends = 1, .flag = HOLDING_END_UNSEEN}))
		log_debug("memory ended while a reference to it did");
}

void holding_drop(enum holding_table in, uint64_t key, uint32_t serial)
{
	struct holding_end end;

	if (holding_end_begin_of(in, key, serial, &end) == 0)
		holding_end_done(&end, true);
}

static void end_all(enum holding_table in,
	bool (*is_wanted)(const struct table_entry *entry, uint64_t what), uint64_t what,
	enum holding_ended how)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	while (table_take_next(&holding_tables[in], is_wanted, what, &cursor, &entry) == 0) {
		if (entry.holding.pins)
			say_it_stays();
		else
			holding_end_last(entry.key, &entry.holding, how);
	}
}

void holding_end_all(enum holding_table in,
	bool (*is_wanted)(const struct table_entry *entry, uint64_t what), uint64_t what)
{
	end_all(in, is_wanted, what, HOLDING_ENDED_SEEN);
}

bool holding_change(
	enum holding_table in, uint64_t key, bool may_add, holding_change_fn *change, void *context)
{
	TABLE_SCOPE place = holding_enter(in, key, may_add);

	if (!place.entry)
		return false;
	if (place.entry->holding.serial == 0)
		renew_serial(&place);
	change(&place.entry->holding, context);
	if (place.entry->holding.references == 0)
		table_remove(&place);
	return true;
}

static bool is_of_life(const struct table_entry *entry, uint64_t life)
{
	return entry->holding.life == life && !(entry->holding.flags & HOLDING_POOLED);
}

void holding_life_ended(struct device *device, uint64_t life)
{
	struct table_cursor cursor = {.shard = 0};
	struct table_entry entry;

	(void)device;
	for (unsigned i = 0; life && i < HOLDING_TABLES; i++)
		end_all(i, is_of_life, life, HOLDING_ENDED_WHOLE);
	while (life && aside_take_next(life, &cursor, &entry) == 0)
		holding_end_last(entry.key, &entry.holding, HOLDING_ENDED_UNSEEN);
}

void holding_reset_after_fork(void)
{
	for (unsigned i = 0; i < HOLDING_TABLES; i++)
		table_forget(&holding_tables[i]);
	chunk_reset_after_fork();
	aside_reset_after_fork();
	holding_share_lock = (struct lock)LOCK_INIT;
}
