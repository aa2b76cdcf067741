/* SPDX-License-Identifier: Apache-2.0 */
/* The meters, and how each is made ready. */
#include "tenant/compute/meters.h"

#include "base/fault.h"
#include "tenant/driver/own_thread.h"

struct meter meters[REGION_DEVICES];

struct meter *meter_of(struct device *device)
{
	struct meter *m = &meters[device->entry];

	/* pairs with the release below */
	if (LIKELY(atomic_load_explicit(&m->is_ready, memory_order_acquire)))
		return m;
	LOCK_SCOPE(&m->lock);
	if (!m->is_ready) {
		m->device = device;
		m->books = &state.region.file->own.compute[device->entry];
		m->spans = (struct spans)SPANS_NULL;
		m->limits = (struct limits)LIMITS_NULL;
		FAULT("meter: being made");
		/* pairs with the acquire above */
		atomic_store_explicit(&m->is_ready, true, memory_order_release);
	}
	return m;
}

bool meters_have_region(void)
{
	enum state_mode mode = state_enter();

	return LIKELY(mode == STATE_OPEN) || (mode == STATE_CLOSED && state.region.file);
}

static void publish_since(const struct meter *m)
{
	uint64_t bit = m->waits ? REGION_BUSY_AWAITED : 0;

	/* relaxed: read by others when this process has ended, or by people */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].busy_since_ns[m->device->entry],
		m->since_ns ? (m->since_ns & ~REGION_BUSY_AWAITED) | bit : 0, memory_order_relaxed);
}

void meter_say_busy_since(struct meter *m, uint64_t since_ns)
{
	if (m->since_ns == since_ns)
		return;
	m->since_ns = since_ns;
	publish_since(m);
	if (since_ns)
		own_thread_note_work();
}

void meter_count_wait(struct meter *m, bool is_begin)
{
	m->waits += is_begin ? 1 : UINT32_MAX;
	publish_since(m);
}

void meter_say_busy_until(struct meter *m, uint64_t until_ns)
{
	/* relaxed: for others to wait a little longer or not */
	atomic_store_explicit(
		&state.region.file->own.slots[state.slot].busy_until_ns[m->device->entry], until_ns,
		memory_order_relaxed);
}
