/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own events, which are unknown to the program. */
#include "tenant/driver/own_events.h"

#include <stdlib.h>

#include "base/fault.h"
#include "base/lock.h"
#include "tenant/driver/attach.h"

/* One of the set. */
struct own_event {
	struct own_event *next; /* in its bucket */
	CUevent event;
	uint64_t stamp; /* 1 for the first one that was put in */
	bool is_ending; /* the driver is asked to destroy it; whoever asks frees this */
	bool is_out;	/* of the set, while it is ending */
};

/* A free whose event cannot be made is charged for until its context ends: these serve where there is no memory of our own. */
#define SPARES 64
static struct own_event spares[SPARES];
static _Atomic bool spares_used[SPARES];

static struct own_event *take_place(void)
{
	struct own_event *own = FAULT_OUT_OF_MEMORY() ? NULL : calloc(1, sizeof(*own));

	/* acquire: pairs with the release in give_place() */
	for (unsigned i = 0; i < SPARES && !own; i++)
		if (!atomic_exchange_explicit(&spares_used[i], true, memory_order_acquire))
			own = &spares[i];
	return own;
}

static void give_place(struct own_event *own)
{
	if (own < spares || own >= spares + SPARES) {
		free(own);
		return;
	}
	*own = (struct own_event){.next = NULL};
	/* release: pairs with the acquire in take_place() */
	atomic_store_explicit(&spares_used[own - spares], false, memory_order_release);
}

#define LANES	(1 << OWN_EVENTS_LANE_BITS)
#define BUCKETS (1 << OWN_EVENTS_BUCKET_BITS)
/* Of handles that were put into graphs: 4 KiB. Of a program that has put in 300, one in a hundred of ours is made anew. */
#define BOUND_BITS 15
/* So many handles are tried: a thread that records all the time spoils one of as many as there are lanes. */
#define TRIES 64

struct own_events_lane own_events_lanes[LANES];
struct own_event *_Atomic own_events_buckets[BUCKETS];
_Atomic uint32_t own_events_count; /* in the set */
static _Atomic uint64_t bound[(1 << BOUND_BITS) / 64];
static struct lock set_lock; /* held for a few memory accesses; changes of the buckets */
static _Atomic uint64_t last_stamp;

static struct own_event *_Atomic *bucket_of(CUevent event)
{
	return &own_events_buckets[hash_place((uintptr_t)event, OWN_EVENTS_BUCKET_BITS)];
}

/* Under the lock. One that is ending is the library's, too, until it has ended. */
static struct own_event *find(CUevent event)
{
	struct own_event *own = atomic_load(bucket_of(event));

	while (own && own->event != event)
		own = own->next;
	return own;
}

bool own_events_has_slowly(CUevent event)
{
	LOCK_SCOPE(&set_lock);

	return find(event);
}

/* Under the lock. */
static void take_out(const struct own_event *own)
{
	struct own_event *_Atomic *bucket = bucket_of(own->event);
	struct own_event *at = atomic_load(bucket);

	atomic_fetch_sub(&own_events_count, 1);
	if (at == own) {
		atomic_store(bucket, own->next);
		return;
	}
	while (at->next != own)
		at = at->next;
	at->next = own->next;
}

/* What the set has of an event that the driver has forgotten. Under the lock. */
static void forget(CUevent event)
{
	struct own_event *own;

	while ((own = find(event))) {
		take_out(own);
		if (own->is_ending)
			own->is_out = true;
		else
			give_place(own);
	}
}

/* The driver has given the event to the library. */
static void put_in(struct own_event *own, CUevent event)
{
	struct own_event *_Atomic *bucket = bucket_of(event);
	LOCK_SCOPE(&set_lock);

	forget(event);
	own->event = event;
	own->stamp = atomic_fetch_add(&last_stamp, 1) + 1;
	own->next = atomic_load(bucket);
	atomic_fetch_add(&own_events_count, 1);
	/* in the one order of all such accesses: pairs with own_events_has() */
	atomic_store(bucket, own);
}

static _Atomic uint64_t *bound_word(CUevent event, uint64_t *ret_bit)
{
	uint32_t place = hash_place((uintptr_t)event, BOUND_BITS);

	*ret_bit = UINT64_C(1) << place % 64;
	return &bound[place / 64];
}

bool own_events_bind(CUevent event)
{
	uint64_t bit;
	_Atomic uint64_t *word = bound_word(event, &bit);

	/* in the one order of all such accesses: pairs with is_untouched(), before the set is asked */
	atomic_fetch_or(word, bit);
	return !own_events_has(event);
}

/* Of each lane, before an event is made. */
struct calls {
	uint64_t of[LANES];
};

static void look(struct calls *ret_calls)
{
	/* Pairs with own_events_leave(). */
	for (unsigned i = 0; i < LANES; i++)
		ret_calls->of[i] = atomic_load(&own_events_lanes[i].calls);
}

/*
 * Whether no call of the program's has been under way for it since before it was made, and no graph has its handle. It is in the
 * set: a call that is not seen here has found it there.
 */
static bool is_untouched(const struct calls *before, CUevent event)
{
	uint32_t lane = hash_place((uintptr_t)event, OWN_EVENTS_LANE_BITS);
	uint64_t bit, calls = before->of[lane];
	_Atomic uint64_t *word = bound_word(event, &bit);

	return (uint32_t)calls == 0 && atomic_load(&own_events_lanes[lane].calls) == calls &&
	       !(atomic_load(word) & bit);
}

CUresult own_events_create(CUevent *ret_event, unsigned int flags)
{
	CUevent touched[TRIES], event = NULL;
	unsigned count = 0;
	struct calls before;
	bool is_good = false;
	CUresult r;

	do {
		struct own_event *own = take_place();

		look(&before);
		r = own ? cuda.cuEventCreate(&event, flags) : CUDA_ERROR_OUT_OF_MEMORY;
		if (r != CUDA_SUCCESS) {
			give_place(own);
			break;
		}
		put_in(own, event);
		is_good = is_untouched(&before, event);
		if (!is_good)
			touched[count++] = event;
	} while (!is_good && count < TRIES);
	/* Only now, so that each try was given another handle. */
	while (count > 0)
		own_events_destroy(touched[--count]);
	if (r == CUDA_SUCCESS && !is_good)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (r == CUDA_SUCCESS)
		*ret_event = event;
	return r;
}

static struct own_event *begin_end(CUevent event)
{
	struct own_event *own;
	LOCK_SCOPE(&set_lock);

	own = find(event);
	if (own && own->is_ending)
		own = NULL;
	if (own)
		own->is_ending = true;
	return own;
}

static void end(struct own_event *own)
{
	LOCK_SCOPE(&set_lock);

	if (!own->is_out)
		take_out(own);
}

void own_events_destroy(CUevent event)
{
	struct own_event *own = begin_end(event);

	if (!own)
		return;
	/* In the set until it is gone: nobody else destroys it, and then another one of that handle. */
	cuda.cuEventDestroy_v2(event);
	end(own);
	give_place(own);
}

uint64_t own_events_last(void)
{
	return atomic_load(&last_stamp);
}

static bool give(CUevent event, uint64_t last)
{
	LOCK_SCOPE(&set_lock);

	for (struct own_event *own = atomic_load(bucket_of(event)); own; own = own->next)
		if (own->event == event && own->stamp > last)
			return false;
	forget(event);
	return true;
}

bool own_events_give(CUevent event, uint64_t last)
{
	/* What was put in before the driver was asked is seen: own_events_last() was read in the one order of all. */
	return LIKELY(!atomic_load(bucket_of(event))) || give(event, last);
}

void own_events_reset_after_fork(void)
{
	/* They are the parent's, and so is the memory of the set. */
	set_lock = (struct lock)LOCK_INIT;
	for (unsigned i = 0; i < BUCKETS; i++)
		atomic_store(&own_events_buckets[i], NULL);
	for (unsigned i = 0; i < LANES; i++)
		atomic_store(&own_events_lanes[i].calls, 0);
	atomic_store(&own_events_count, 0);
}
