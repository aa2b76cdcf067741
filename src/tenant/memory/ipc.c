/* SPDX-License-Identifier: Apache-2.0 */
/* This process's part in the region's shared allocations. */
#define LOG_TOPIC LOG_MEMORY
#include "tenant/memory/ipc.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mark.h"
#include "region/ledger.h"

/* Of 50 ms each, where another process has the lock: what has no place or mark is not given out or opened, so a slow machine is waited for. */
#define BUSY_TRIES 20
#define WHILE_BUSY(call)                             \
	({                                           \
		unsigned left_ = BUSY_TRIES;         \
		int r_;                              \
                                                     \
		do                                   \
			r_ = (call);                 \
		while (r_ == -EBUSY && --left_ > 0); \
		r_;                                  \
	})

/* What this process knows of a shared allocation that it holds. */
struct part {
	uint32_t holds; /* 0: not held */
	uint32_t units; /* as of the making or the first opening */
	uint8_t entry;	/* the device's, in the region */
	uint8_t kind;
	bool is_shown; /* for this process, which made it */
};

/* Guards the rest; held while the region's shared allocations are changed, for some 10 us, or 50 ms where another process is stopped with them. */
static struct lock parts_lock;
static struct part parts[REGION_SHARED];
static _Atomic uint64_t made_bytes[REGION_DEVICES], foreign_bytes[REGION_DEVICES];
/* What is open by a handle: units << 8 | the device's entry + 1; 0: it is not. Written under the lock. */
static _Atomic uint64_t opened[REGION_SHARED];

struct shared_name ipc_name(const void *handle)
{
	struct shared_name name = {.key = 0};

	memcpy(name.handle, handle, sizeof(name.handle));
	for (size_t i = 0; i < sizeof(name.handle); i++)
		name.key = hash_u64(name.key ^ name.handle[i] ^ (uint64_t)i << 8);
	/* Marks are below: a handle is never taken for one. */
	name.key |= UINT64_C(1) << 63;
	return name;
}

/* What is made is added before it leaves the slot, so reconcile.h never knows of less than is in the books. */
static void add_to_sum(const struct part *p, uint64_t units)
{
	/* relaxed: compared before and after the question to NVML */
	atomic_fetch_add_explicit(
		&made_bytes[p->entry], units * REGION_UNIT_BYTES, memory_order_relaxed);
}

/* Whether another attempt may find a place: processes that have ended leave theirs to who looks for them. */
static bool has_freed_places(struct device *device)
{
	static _Atomic uint64_t next_ns;

	if (!clock_is_due(&next_ns, CHARGE_LOOK_NS))
		return false;
	charge_reap(device);
	return true;
}

static int make(const struct ipc_memory *m, unsigned *ret_shared)
{
	struct shared_memory memory = {.slot = state.slot,
		.device = m->device->entry,
		.units = ledger_units(m->bytes),
		.name = m->name,
		.mark = m->mark,
		.fd = m->fd};
	struct part part = {.holds = 1,
		.units = (uint32_t)memory.units,
		.entry = (uint8_t)m->device->entry,
		.kind = (uint8_t)m->kind,
		.is_shown = !m->is_beyond};
	int saved_errno = errno, r;
	CHARGE_SCOPE();
	LOCK_SCOPE(&parts_lock);

	if (part.is_shown)
		add_to_sum(&part, part.units);
	r = shared_make(&state.region, &memory, ret_shared);
	if (r == SHARED_E_FULL && has_freed_places(m->device))
		r = shared_make(&state.region, &memory, ret_shared);
	errno = saved_errno;
	if (r) {
		if (part.is_shown)
			add_to_sum(&part, -(uint64_t)part.units);
		return r;
	}
	parts[*ret_shared] = part;
	/* The figures by kind stay with this process for as long as it holds the memory. */
	return 0;
}

bool ipc_make(const struct ipc_memory *m, unsigned *ret_shared)
{
	int r = WHILE_BUSY(make(m, ret_shared));

	if (r)
		log_debug("shared memory is not entered as such", U64("bytes", m->bytes));
	return r == 0;
}

void ipc_grow(unsigned shared, uint64_t bytes)
{
	uint64_t units = ledger_units(bytes);
	struct part *p = &parts[shared];
	CHARGE_SCOPE();
	LOCK_SCOPE(&parts_lock);

	add_to_sum(p, units);
	shared_grow(&state.region, state.slot, shared, units);
	p->units += (uint32_t)units;
}

void ipc_shrink(unsigned shared, uint64_t bytes)
{
	uint64_t units = ledger_units(bytes);
	struct part *p = &parts[shared];
	CHARGE_SCOPE();
	LOCK_SCOPE(&parts_lock);

	shared_shrink(&state.region, state.slot, shared, units);
	p->units -= (uint32_t)units;
	add_to_sum(p, -units);
}

uint32_t ipc_steps(unsigned shared)
{
	uint64_t word = atomic_load(&state.region.file->own.shared[shared].word);
	uint64_t bytes = ledger_shared_units(word) * REGION_UNIT_BYTES;

	return (uint32_t)(round_up_u64(bytes, MARK_STEP_BYTES) / MARK_STEP_BYTES);
}

bool ipc_set_mark(unsigned shared, uint64_t mark, int fd)
{
	int saved_errno = errno;
	int r = WHILE_BUSY(shared_set_mark(&state.region, shared, mark, fd));

	errno = saved_errno;
	return r == 0;
}

bool ipc_is_named(unsigned shared, const struct shared_name *name)
{
	int saved_errno = errno;
	bool is_named = false;
	int r = WHILE_BUSY(shared_is_named(&state.region, shared, name, &is_named));

	errno = saved_errno;
	return r == 0 && is_named;
}

bool ipc_set_name(unsigned shared, const struct shared_name *name)
{
	int saved_errno = errno;
	int r = WHILE_BUSY(shared_set_name(&state.region, shared, name));

	errno = saved_errno;
	return r == 0;
}

unsigned ipc_holds(unsigned shared)
{
	LOCK_SCOPE(&parts_lock);

	return parts[shared].holds;
}

void ipc_hold_again(unsigned shared)
{
	LOCK_SCOPE(&parts_lock);

	parts[shared].holds++;
}

/* relaxed: as in add_to_sum() */
static void set_opened(unsigned shared, uint64_t word)
{
	atomic_store_explicit(&opened[shared], word, memory_order_relaxed);
}

static int hold(const struct shared_name *name, bool is_opened, unsigned *ret_shared)
{
	int saved_errno = errno, r;
	uint64_t word;
	struct part *p;
	LOCK_SCOPE(&parts_lock);

	r = shared_hold(&state.region, state.slot, name, ret_shared);
	errno = saved_errno;
	if (r)
		return r;
	p = &parts[*ret_shared];
	if (p->holds) {
		p->holds++;
		return 0;
	}
	word = atomic_load(&state.region.file->own.shared[*ret_shared].word);
	*p = (struct part){.holds = 1,
		.units = (uint32_t)ledger_shared_units(word),
		.entry = (uint8_t)ledger_shared_device(word),
		.kind = CHARGE_KIND_COUNT};
	if (is_opened)
		set_opened(*ret_shared, (uint64_t)p->units << 8 | (p->entry + 1u));
	return 0;
}

bool ipc_hold(const struct shared_name *name, bool is_opened, unsigned *ret_shared)
{
	return WHILE_BUSY(hold(name, is_opened, ret_shared)) == 0;
}

void ipc_let_go(unsigned shared, bool is_over)
{
	struct part *p = &parts[shared];
	int saved_errno = errno;
	uint64_t bytes;
	LOCK_SCOPE(&parts_lock);

	if (is_over)
		shared_retire(&state.region, shared);
	if (--p->holds > 0)
		return;
	bytes = (uint64_t)p->units * REGION_UNIT_BYTES;
	if (p->is_shown)
		add_to_sum(p, -(uint64_t)p->units);
	set_opened(shared, 0);
	shared_let_go(&state.region, state.slot, shared);
	if (p->kind < CHARGE_KIND_COUNT)
		ledger_note(state.region.file, state.slot, p->entry, (enum charge_kind)p->kind,
			-(int64_t)bytes);
	errno = saved_errno;
}

void ipc_hide(unsigned shared)
{
	struct part *p = &parts[shared];
	LOCK_SCOPE(&parts_lock);

	if (p->is_shown)
		add_to_sum(p, -(uint64_t)p->units);
	p->is_shown = false;
}

void ipc_show_again(unsigned shared)
{
	struct part *p = &parts[shared];
	LOCK_SCOPE(&parts_lock);

	if (!p->is_shown)
		add_to_sum(p, p->units);
	p->is_shown = true;
}

int ipc_own_entry(unsigned shared)
{
	uint64_t word = atomic_load(&state.region.file->own.shared[shared].word);

	return word && ledger_shared_slot(word) == state.slot ? (int)ledger_shared_device(word)
							      : -1;
}

void ipc_show(const struct device *device, int64_t bytes)
{
	/* relaxed: as in add_to_sum() */
	atomic_fetch_add_explicit(
		&made_bytes[device->entry], (uint64_t)bytes, memory_order_relaxed);
}

void ipc_open_foreign(const struct device *device, int64_t bytes)
{
	/* relaxed: as in add_to_sum() */
	atomic_fetch_add_explicit(
		&foreign_bytes[device->entry], (uint64_t)bytes, memory_order_relaxed);
}

/*
 * Where others have it open, too, the driver shows it for one of them, and nothing tells for which. Were it taken for
 * shown here, as much that nobody names would be hidden.
 */
static uint64_t opened_bytes(const struct device *device, bool is_alone)
{
	const struct region_own *own = &state.region.file->own;
	unsigned high = atomic_load(&own->shared_high);
	uint64_t units = 0;

	for (unsigned i = 0; i < high && i < REGION_SHARED; i++) {
		/* relaxed: as in add_to_sum() */
		uint64_t word = atomic_load_explicit(&opened[i], memory_order_relaxed);

		if (word && (word & 0xff) == device->entry + 1u &&
			shared_is_held_alone(&own->shared[i], state.slot) == is_alone)
			units += word >> 8;
	}
	return units * REGION_UNIT_BYTES;
}

uint64_t ipc_shown_bytes(const struct device *device)
{
	/* relaxed: as in add_to_sum() */
	return atomic_load_explicit(&made_bytes[device->entry], memory_order_relaxed) +
	       opened_bytes(device, true);
}

bool ipc_is_open_elsewhere(const struct device *device)
{
	return opened_bytes(device, false) > 0;
}

uint64_t ipc_foreign_bytes(const struct device *device)
{
	/* relaxed: as in add_to_sum() */
	return atomic_load_explicit(&foreign_bytes[device->entry], memory_order_relaxed);
}

void ipc_reset_after_fork(void)
{
	parts_lock = (struct lock)LOCK_INIT;
	for (unsigned i = 0; i < REGION_SHARED; i++) {
		parts[i] = (struct part){.holds = 0};
		set_opened(i, 0);
	}
	for (unsigned i = 0; i < REGION_DEVICES; i++) {
		atomic_store(&made_bytes[i], 0);
		atomic_store(&foreign_bytes[i], 0);
	}
}
