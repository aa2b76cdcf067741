/* SPDX-License-Identifier: Apache-2.0 */
/* The streams that the driver is asked to end just now. */
#include "tenant/compute/stream_ends.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"

/* Beyond the places each stream that is found meanwhile is taken for one that ends: it may lose its state, and not its work. */
#define ENDS 64

static struct {
	struct lock lock; /* within a meter's */
	_Atomic uint32_t count;
	uint32_t beyond;
	uint64_t tickets;
	struct stream_end at[ENDS];
} ends;

bool stream_ends_has(CUstream stream)
{
	/* relaxed: who ends a stream counts it before he takes the meter's lock */
	if (LIKELY(!atomic_load_explicit(&ends.count, memory_order_relaxed)))
		return false;
	LOCK_SCOPE(&ends.lock);
	if (ends.beyond)
		return true;
	for (unsigned i = 0; i < ENDS; i++)
		if (ends.at[i].ticket && ends.at[i].stream == stream)
			return true;
	return false;
}

void stream_ends_note(CUstream stream, struct stream_end *ret_end)
{
	LOCK_SCOPE(&ends.lock);
	*ret_end = (struct stream_end){.stream = stream, .ticket = ++ends.tickets};
	/* relaxed: as above */
	atomic_fetch_add_explicit(&ends.count, 1, memory_order_relaxed);
	for (unsigned i = 0; i < ENDS; i++)
		if (!ends.at[i].ticket) {
			ends.at[i] = *ret_end;
			return;
		}
	ret_end->is_beyond = true;
	ends.beyond++;
}

void stream_ends_forget(const struct stream_end *end)
{
	LOCK_SCOPE(&ends.lock);
	/* relaxed: as above */
	atomic_fetch_sub_explicit(&ends.count, 1, memory_order_relaxed);
	ends.beyond -= end->is_beyond;
	for (unsigned i = 0; i < ENDS; i++)
		if (ends.at[i].ticket == end->ticket)
			ends.at[i].ticket = 0;
}

void stream_ends_forget_handle(CUstream stream)
{
	LOCK_SCOPE(&ends.lock);
	for (unsigned i = 0; i < ENDS; i++)
		if (ends.at[i].stream == stream)
			ends.at[i].stream = NULL;
}

void stream_ends_reset_after_fork(void)
{
	/* relaxed: the child has one thread */
	atomic_store_explicit(&ends.count, 0, memory_order_relaxed);
	ends.lock = (struct lock)LOCK_INIT;
	ends.beyond = 0;
	memset(ends.at, 0, sizeof(ends.at));
}
