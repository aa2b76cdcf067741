/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of what has been launched or used. */
#include "tenant/memory/marks.h"

#include "base/lock.h"
#include "tenant/memory/contexts.h"
#include "tenant/memory/managed_data.h"

_Alignas(MARKS_WAYS * sizeof(uintptr_t)) _Atomic uintptr_t marks_places[MARKS_PLACES];
HOT_WORD _Atomic bool marks_has_many_contexts;
/* Guards the setting and forgetting of marks, and the next. */
static struct lock marks_lock;
static uint32_t room_changes; /* under way */
static _Atomic uint32_t generation;
static _Atomic bool has_context_come;

uintptr_t marks_key_slowly(CUfunction function, CUstream stream)
{
	return marks_key(function, contexts_of_stream(stream));
}

/* Where its mark is put: in the place of another one only where there is no other. Under the lock of marks. */
static _Atomic uintptr_t *place_for(uintptr_t key)
{
	uint32_t own = marks_place(key);

	for (uint32_t way = 0; way < MARKS_WAYS; way++) {
		_Atomic uintptr_t *at = &marks_places[own ^ way];
		uintptr_t there = atomic_load(at);

		if (!there || there == key)
			return at;
	}
	return &marks_places[own];
}

/* Marks a function as launched, or a library as used: not where all was forgotten since. */
void marks_put(uintptr_t handle, uint32_t at_generation)
{
	uintptr_t key =
		marks_are_by_context() ? marks_key_slowly((CUfunction)handle, NULL) : handle;
	LOCK_SCOPE(&marks_lock);

	if (room_changes == 0 && atomic_load(&generation) == at_generation)
		atomic_store(place_for(key), key);
}

uint32_t marks_generation(void)
{
	return atomic_load(&generation);
}

/* Under the lock of marks. */
static void forget_launches(void)
{
	atomic_fetch_add(&generation, 1);
	for (unsigned i = 0; i < MARKS_PLACES; i++)
		/* relaxed: whoever sees the old mark launched before the unloading began */
		atomic_store_explicit(&marks_places[i], 0, memory_order_relaxed);
}

/* A function may be gone: each is to be looked at once more. */
static void forget_all(void)
{
	LOCK_SCOPE(&marks_lock);

	forget_launches();
}

void marks_room_begin(void)
{
	LOCK_SCOPE(&marks_lock);

	room_changes++;
	forget_launches();
}

void marks_room_end(void)
{
	LOCK_SCOPE(&marks_lock);

	room_changes--;
	/* A launch that began meanwhile may have found the room as it was. */
	atomic_fetch_add(&generation, 1);
}

uint64_t marks_unload_begin(const void *owner)
{
	marks_room_begin();
	return managed_data_unloading(owner);
}

void marks_unload_end(const void *owner, uint64_t unloading, bool is_gone)
{
	managed_data_unloaded(owner, unloading, is_gone);
	marks_room_end();
}

void marks_context_comes(struct device *device)
{
	(void)device;
	if (!atomic_exchange(&has_context_come, true))
		return;
	/* relaxed: see marks_is_launched() */
	atomic_store_explicit(&marks_has_many_contexts, true, memory_order_relaxed);
	forget_all();
}

void marks_context_ended(struct device *device, CUcontext context)
{
	(void)device;
	(void)context;
	forget_all();
}

void marks_reset_after_fork(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&marks_has_many_contexts, false, memory_order_relaxed);
	atomic_store(&has_context_come, false);
	marks_lock = (struct lock)LOCK_INIT;
	room_changes = 0;
	forget_all();
}
