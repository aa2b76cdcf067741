/* SPDX-License-Identifier: Apache-2.0 */
/* A pool is exported: what it holds becomes a shared allocation of the slice. */
#define LOG_TOPIC LOG_MEMORY
#include "base/clock.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "tenant/driver/patience.h"
#include "tenant/memory/ipc.h"
#include "tenant/memory/pool_list.h"
#include "tenant/memory/pools.h"

/* Longest wait for allocations under way in other threads. */
#define SHARE_WAIT_NS UINT64_C(1000000000)

static bool set_mark(int fd, uint64_t id)
{
	if (id && mark_set(fd, (struct mark){.id = id}) == 0)
		return true;
	log_error("a pool's descriptor cannot be marked, so it is not exported");
	return false;
}

/* One more descriptor or handle of a pool opens what the first one opens. */
static bool share_again(unsigned shared, int fd, const struct shared_name *name, uint64_t *ret_mark)
{
	uint64_t known = atomic_load(&state.region.file->own.shared[shared].mark);

	if (fd < 0)
		return ipc_set_name(shared, name);
	*ret_mark = known ? known : mark_new_id(MARK_OF_POOL);
	return known || (*ret_mark && ipc_set_mark(shared, *ret_mark, fd));
}

static bool share(struct pool *p, int fd, const struct shared_name *name, uint64_t *ret_mark)
{
	struct ipc_memory memory = {.kind = CHARGE_POOL, .device = p->device, .fd = fd};
	unsigned shared;
	LOCK_SCOPE(&p->lock);

	if (p->shared)
		return share_again(p->shared - 1, fd, name, ret_mark);
	if (fd >= 0) {
		memory.name.key = memory.mark = *ret_mark = mark_new_id(MARK_OF_POOL);
		if (!memory.mark)
			return false;
	} else {
		memory.name = *name;
	}
	memory.bytes = p->held_bytes;
	if (!ipc_make(&memory, &shared))
		return false;
	p->shown_bytes = p->held_bytes;
	atomic_store(&p->shared, shared + 1);
	return true;
}

/* What is being allocated was reserved before the pool was shared. None comes anew (reserve()). */
static bool are_unshared_over(const struct pool *p)
{
	struct patience patience = patience_begin(SHARE_WAIT_NS);

	return patience_wait_for_zero(&p->unshared, &patience);
}

bool pools_share(CUmemoryPool handle, int fd, const struct shared_name *name)
{
	struct pool *p = pool_list_find_anywhere(handle);
	uint64_t mark = 0;

	if (!p || !p->device)
		return p != NULL;
	if (!share(p, fd, name, &mark))
		return false;
	FAULT("pool: shared");
	if (!are_unshared_over(p)) {
		log_error("an allocation from a pool does not end, so it is not exported");
		return false;
	}
	/* Last: without a mark nobody imports it. */
	return fd < 0 || set_mark(fd, mark);
}
