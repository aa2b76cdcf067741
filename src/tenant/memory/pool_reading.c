/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pool holds, read and booked.
 *
 * Why the invariant of pools.h holds: a call reserves its worst growth, calls the driver, and then,
 * under the pool's lock, reads what the pool holds and replaces the last reading. A reading was begun
 * after the growth of its call, so it includes it, or a later one that was booked before did; so the
 * reservation may go in either case.
 */
#include "tenant/memory/pool_reading.h"

#include "base/fault.h"
#include "base/lock.h"
#include "region/ledger.h"
#include "tenant/driver/attach.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/pool_list.h"

/* Of what is charged as shared NVML shows what the pool holds now; its growth is shown by ipc_grow(). Under the pool's lock. */
static void show_shared(struct pool *p, uint64_t held_bytes)
{
	uint64_t known = atomic_load(&p->held_bytes);

	ipc_show(p->device, (int64_t)((held_bytes < known ? held_bytes : known) - p->shown_bytes));
	p->shown_bytes = held_bytes;
}

/*
 * Replaces the last reading; returns by how much it differs: of a pool that was exported only upwards, and
 * what is more is then to be moved to its shared allocation. Under the pool's lock.
 */
static int64_t replace_reading(struct pool *p, uint64_t held_bytes)
{
	int64_t change = (int64_t)(held_bytes - p->held_bytes);

	FAULT("pool: read");
	if (p->shared) {
		/* It stays charged where it is less, and others are to see all the same that free memory has risen. */
		if (held_bytes != p->shown_bytes)
			ledger_count_change(state.region.file, p->device->entry);
		show_shared(p, held_bytes);
	}
	if (p->shared && change < 0)
		return 0;
	if (change < 0)
		atomic_fetch_add(&p->losses, 1);
	p->held_bytes = held_bytes;
	return change;
}

bool pool_reading_ask(const struct pool *p, CUmemoryPool handle, uint64_t *ret_bytes)
{
	CUresult r = CUDA_ERROR_NOT_FOUND;
	cuuint64_t held = 0;

	if (pool_is_of_graphs(p) && cuda.cuDeviceGetGraphMemAttribute)
		r = cuda.cuDeviceGetGraphMemAttribute(
			p->device->ordinal, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &held);
	else if (!pool_is_of_graphs(p) && cuda.cuMemPoolGetAttribute)
		r = cuda.cuMemPoolGetAttribute(handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &held);
	*ret_bytes = round_up_u64(held, REGION_UNIT_BYTES);
	return r == CUDA_SUCCESS;
}

/* Bytes that the pool holds more than by the last reading. Under its lock. */
static int64_t read_change(struct pool *p, const struct charge *charge)
{
	CUmemoryPool handle = atomic_load(&p->asked);
	uint64_t held;

	FAULT("pool: held");
	if (handle && pool_reading_ask(p, handle, &held))
		return replace_reading(p, held);
	if (!handle && !charge->units)
		return replace_reading(p, 0);
	/* The driver says nothing: all that was reserved counts as taken. */
	held = (uint64_t)charge->units * REGION_UNIT_BYTES;
	p->held_bytes += held;
	if (p->shared)
		p->shown_bytes += held;
	return (int64_t)held;
}

int64_t pool_reading_settle(struct charge *charge, uint64_t taken_bytes)
{
	uint64_t bytes = (uint64_t)charge->units * REGION_UNIT_BYTES;
	uint64_t stays = taken_bytes < bytes ? taken_bytes : bytes;

	if (LIKELY(!charge->shared))
		return 0;
	if (stays < bytes)
		ipc_shrink(charge->shared - 1, bytes - stays);
	FAULT("pool: settled");
	ledger_note(
		state.region.file, state.slot, charge->device->entry, charge->kind, (int64_t)stays);
	charge->units = (uint32_t)((bytes - stays) / REGION_UNIT_BYTES);
	charge->shared = 0;
	return (int64_t)stays;
}

/*
 * The question to the driver, of 10 to 20 ns, is under the pool's lock, so that readings come in order, and so that none
 * uses a handle that is being destroyed. So is the booking: another thread that finds its growth in this reading gives
 * back what it reserved for it.
 */
void pool_reading_book(struct pool *p, struct charge *charge)
{
	int64_t change, more;

	if (!p->device)
		return;
	if (!charge->device)
		*charge = (struct charge){.device = p->device, .kind = p->kind};
	lock_enter(&p->lock);
	/* both pair with pool_reading_is_same(): who has seen none of it sees this number unchanged */
	atomic_fetch_add(&p->changes, 1);
	change = read_change(p, charge);
	more = change - pool_reading_settle(charge, change > 0 ? (uint64_t)change : 0);
	charge_commit(charge, more);
	/* Before another thread, whose growth this may be, gives back what it has reserved there. */
	if (more > 0 && p->shared)
		ipc_grow(p->shared - 1, (uint64_t)more);
	atomic_fetch_add(&p->changes, 1);
	lock_leave(&p->lock);
	FAULT("pool: reading replaced");
}

/*
 * Most allocations leave what was read last as it is. Without the lock no other thread may replace the reading from before our question until after the answer is compared.
 */
bool pool_reading_is_same(const struct pool *p)
{
	/* pairs with pool_reading_book() */
	uint32_t changes = atomic_load_explicit(&p->changes, memory_order_acquire);
	CUmemoryPool handle = atomic_load(&p->asked);
	uint64_t held;
	bool is_same;

	if (changes & 1 || !handle || !pool_reading_ask(p, handle, &held))
		return false;
	is_same = held == atomic_load(&p->held_bytes);
	/* pairs with pool_reading_book(): a reading that was replaced before we compared shows here */
	return is_same && atomic_load(&p->changes) == changes;
}

void pool_reading_renew(struct pool *p)
{
	pool_reading_book(p, &(struct charge)CHARGE_NULL);
}
